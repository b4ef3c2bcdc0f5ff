// Serves requests by "opencode serve": each line is {verb, dir, prompt}, and is
// answered by a line {ok, said}. "work" sends the prompt to a new session of the
// folder, and "undo" takes it back, by the request that /undo sends. The argument
// is the program of opencode.
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { readFileSync, writeFileSync } from "node:fs"

const at = "http://127.0.0.1:4199"
spawn(process.argv[2], ["serve", "--port", "4199"], { stdio: "ignore" })

async function ask(dir, path, body) {
  const answer = await fetch(`${at}${path}?directory=${encodeURIComponent(dir)}`, {
    method: body ? "POST" : "GET", body: body && JSON.stringify(body), headers: { "content-type": "application/json" }, signal: AbortSignal.timeout(60000),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`)
  return JSON.parse(text)
}

async function ready() {
  for (let i = 0; ; i++) {
    try {
      return await fetch(at + "/global/health", { signal: AbortSignal.timeout(5000) })
    } catch (err) {
      if (i === 300) throw err
      await new Promise((done) => setTimeout(done, 100))
    }
  }
}

async function work({ dir, prompt }) {
  const session = await ask(dir, "/session", { title: "work" })
  writeFileSync(dir + ".session", session.id)
  await ask(dir, `/session/${session.id}/message`, { parts: [{ type: "text", text: prompt }] })
}

async function undo({ dir }) {
  const id = readFileSync(dir + ".session", "utf8")
  const messages = await ask(dir, `/session/${id}/message`)
  const prompt = messages.filter((m) => m.info.role === "user").at(-1)
  const now = await ask(dir, `/session/${id}/revert`, { messageID: prompt.info.id })
  if (!now.revert) throw new Error("nothing was reverted")
  return now.revert.diff ?? "reverted"
}

await ready()
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line)
  try {
    console.log(JSON.stringify({ ok: true, said: (await (order.verb === "work" ? work : undo)(order)) ?? "" }))
  } catch (err) {
    console.log(JSON.stringify({ ok: false, said: String(err) }))
  }
}

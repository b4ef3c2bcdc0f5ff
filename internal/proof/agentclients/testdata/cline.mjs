// Serves requests by the core of Cline: each line is {verb, dir, prompt}, and is
// answered by a line {ok, said}. "work" sends the prompt to a new session of the
// folder, and "undo" restores the checkpoint before it. The argument is the
// folder of modules.
import { pathToFileURL } from "node:url"
import { createInterface } from "node:readline"
import path from "node:path"

const { ClineCore } = await import(pathToFileURL(path.join(process.argv[2], "@cline/core/dist/index.js")))
const cline = await ClineCore.create({ clientName: "undo-bench", backendMode: "local" })

async function work({ dir, prompt }) {
  const config = {
    providerId: "anthropic", modelId: "claude-sonnet-4-5", apiKey: "stand-in", baseUrl: "http://127.0.0.1:4141/v1",
    cwd: dir, workspaceRoot: dir, systemPrompt: "You are a coding agent.", mode: "act", enableTools: true,
    enableSpawnAgent: false, enableAgentTeams: false, checkpoint: { enabled: true }, sessionId: path.basename(path.dirname(path.dirname(dir))),
  }
  await cline.start({ config, prompt, interactive: false, source: "cli" })
}

async function undo({ dir }) {
  const sessionId = path.basename(path.dirname(path.dirname(dir)))
  const done = await cline.restore({ sessionId, checkpointRunCount: 1, cwd: dir, restore: { messages: false, workspace: true } })
  return JSON.stringify(done.checkpoint)
}

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line)
  try {
    process.stdout.write(JSON.stringify({ ok: true, said: (await (order.verb === "work" ? work : undo)(order)) ?? "" }) + "\n")
  } catch (err) {
    process.stdout.write(JSON.stringify({ ok: false, said: String(err) }) + "\n")
  }
}

// remit connect wrote this file, and remit disconnect opencode removes it. It
// lets remit decide, record and revert what opencode does with its own tools.
//
// For each event it starts `remit hook opencode` with one JSON object on
// standard input:
//
//   hook_event_name   SessionStart, UserPromptSubmit, PreToolUse, PostToolUse,
//                     Stop or SessionEnd
//   session_id        session of opencode
//   parent_session_id session that started this one, for a subagent
//   prompt_id         last message of the user in the session
//   cwd               folder of the session
//   workspace         root of the project (git worktree, or else the folder)
//   prompt            text of the message (UserPromptSubmit)
//   tool_name, tool_input, tool_use_id   (PreToolUse, PostToolUse)
//   tool_response     {title, output, metadata} (PostToolUse)
//
// remit answers with nothing, or with one JSON object on standard output:
//
//   decision    "allow" or "deny"
//   reason      text for the model, with "deny"
//   tool_input  arguments that replace those of the call, with "allow"
//
// Exit code 2 denies, with the reason on standard error. PreToolUse fails
// closed: if remit does not start, fails or does not answer in time, the call
// does not run. opencode sends no event after a call that failed.
import { spawn } from "node:child_process"

const remit = "REMIT"
const timeout = { PreToolUse: 120_000, PostToolUse: 120_000 }

function hook(event) {
  return new Promise((resolve, reject) => {
    const fail = (why) => reject(new Error(`remit: ${why}`))
    const child = spawn(remit, ["hook", "opencode"], { cwd: event.cwd, stdio: ["pipe", "pipe", "pipe"] })
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      fail(`${remit} did not answer in time`)
    }, timeout[event.hook_event_name] ?? 30_000)
    let out = ""
    let err = ""
    child.stdout.setEncoding("utf8")
    child.stderr.setEncoding("utf8")
    child.stdout.on("data", (chunk) => (out += chunk))
    child.stderr.on("data", (chunk) => (err += chunk))
    child.stdin.on("error", () => {}) // it ended before it read everything
    child.on("error", (e) => {
      clearTimeout(timer)
      fail(`${remit} cannot be started: ${e.message}`)
    })
    child.on("close", (code) => {
      clearTimeout(timer)
      if (code === 2) return resolve({ decision: "deny", reason: err.trim() })
      if (code !== 0) return fail(`${remit} hook opencode failed (${code}): ${err.trim()}`)
      if (out.trim() === "") return resolve({})
      try {
        resolve(JSON.parse(out))
      } catch {
        fail("the answer is not JSON")
      }
    })
    child.stdin.end(JSON.stringify(event))
  })
}

// tell sends an event that decides nothing.
const tell = (event) => hook(event).catch(() => {})

export const Remit = async ({ directory, worktree }) => {
  const prompts = new Map() // session: last message of the user
  const parents = new Map() // session: session that started it
  const base = (name, session) => ({
    hook_event_name: name,
    session_id: session,
    parent_session_id: parents.get(session),
    prompt_id: prompts.get(session),
    cwd: directory,
    workspace: worktree && worktree !== "/" ? worktree : directory,
  })
  return {
    event: async ({ event }) => {
      const info = event.properties?.info
      switch (event.type) {
        case "session.created":
          if (info.parentID) parents.set(info.id, info.parentID)
          return tell(base("SessionStart", info.id))
        case "session.idle":
          return tell(base("Stop", event.properties.sessionID))
        case "session.deleted":
          await tell(base("SessionEnd", info.id))
          prompts.delete(info.id)
          parents.delete(info.id)
      }
    },
    "chat.message": async (input, output) => {
      prompts.set(input.sessionID, output.message.id)
      const text = output.parts.filter((p) => p.type === "text" && !p.synthetic).map((p) => p.text)
      const answer = await tell({ ...base("UserPromptSubmit", input.sessionID), prompt: text.join("\n") })
      if (answer?.decision === "deny") throw new Error(answer.reason || "remit denied the message")
    },
    "tool.execute.before": async (input, output) => {
      const answer = await hook({
        ...base("PreToolUse", input.sessionID),
        tool_name: input.tool,
        tool_input: output.args,
        tool_use_id: input.callID,
      })
      if (answer.decision === "deny") throw new Error(answer.reason || "remit denied the call")
      if (answer.decision !== undefined && answer.decision !== "allow") {
        throw new Error(`remit: unknown decision ${JSON.stringify(answer.decision)}`)
      }
      if (answer.tool_input !== undefined) {
        for (const name of Object.keys(output.args)) delete output.args[name]
        Object.assign(output.args, answer.tool_input)
      }
    },
    "tool.execute.after": (input, output) =>
      tell({
        ...base("PostToolUse", input.sessionID),
        tool_name: input.tool,
        tool_input: input.args,
        tool_use_id: input.callID,
        tool_response: { title: output.title, output: output.output, metadata: output.metadata },
      }),
  }
}

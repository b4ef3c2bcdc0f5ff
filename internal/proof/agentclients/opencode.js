// A plugin of opencode that gives each event to a command, as other agents do
// with their hooks. Exit code 2 blocks: the plugin throws. An output with
// "args" replaces the arguments.
import { spawnSync } from "node:child_process";

const command = "COMMAND";
const kept = ["session.created", "session.idle", "session.error", "session.deleted", "file.edited", "command.executed", "permission.asked", "permission.replied", "server.instance.disposed"];

function tell(event, tool, more) {
  const input = JSON.stringify({ hook_event_name: event, tool_name: tool, ...more });
  const r = spawnSync("/bin/sh", ["-c", command], { input, encoding: "utf8" });
  if (r.status === 2) throw new Error(r.stderr);
  try {
    return JSON.parse(r.stdout);
  } catch {
    return {};
  }
}

export const Hook = async ({ directory, worktree }) => ({
  "chat.message": async (input, output) => {
    tell("chat.message", undefined, { directory, worktree, input, output });
  },
  "tool.execute.before": async (input, output) => {
    const told = tell("tool.execute.before", input.tool, { directory, input, output });
    if (told.args) output.args = told.args;
    if (told.assign) Object.assign(output.args, told.assign);
  },
  "tool.execute.after": async (input, output) => {
    const told = tell("tool.execute.after", input.tool, { directory, input, output });
    if (told.output) output.output = told.output;
  },
  "permission.ask": async (input, output) => {
    const told = tell("permission.ask", undefined, { directory, input, output });
    if (told.status) output.status = told.status;
  },
  "shell.env": async (input, output) => {
    const told = tell("shell.env", undefined, { directory, input, output });
    Object.assign(output.env, told.env);
  },
  event: async ({ event }) => {
    if (kept.includes(event.type)) tell("event", undefined, { directory, event });
  },
});

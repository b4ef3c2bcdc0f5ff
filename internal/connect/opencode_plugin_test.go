package connect_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pluginScript plays opencode: it loads the plugin, sends the events of one
// message with one call, and tells what came of the call.
const pluginScript = `
const { Remit } = await import(process.argv[2])
const hooks = await Remit({ directory: process.cwd(), worktree: "/" })
await hooks.event({ event: { type: "session.created", properties: { info: { id: "child", parentID: "ses" } } } })
await hooks["chat.message"]({ sessionID: "ses" }, { message: { id: "msg" }, parts: [{ type: "text", text: "hello" }, { type: "text", synthetic: true, text: "more" }] })
const output = { args: { command: "rm x", description: "d" } }
const args = output.args
try {
  await hooks["tool.execute.before"]({ tool: "bash", sessionID: "ses", callID: "call" }, output)
  console.log("runs " + JSON.stringify(args))
} catch (e) {
  console.log("blocked " + e.message)
}
await hooks["tool.execute.after"]({ tool: "bash", sessionID: "ses", callID: "call", args }, { title: "t", output: "out", metadata: {} })
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "ses" } } })
await hooks.event({ event: { type: "session.deleted", properties: { info: { id: "ses" } } } })
`

// TestOpencodePlugin runs the plugin with a stand-in for remit.
func TestOpencodePlugin(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node")
	}
	w := hookHome(t)
	w.Command = w.at("my remit")
	w.connect("opencode")
	w.write("play.mjs", pluginScript)
	plugin := w.at("plugin.mjs") // opencode needs no package.json; node does
	w.write("plugin.mjs", w.read("home/.config/opencode/plugins/remit.js"))
	play := func(answer string) string {
		if answer != "" {
			script := "#!/bin/sh\nread -r event\necho \"$* $event\" >> '" + w.at("events") + "'\ncase $event in *PreToolUse*) " + answer + ";; esac\n"
			require.NoError(t, os.WriteFile(w.Command, []byte(script), 0o755))
		} else {
			require.NoError(t, os.Remove(w.Command))
		}
		cmd := exec.Command(node, w.at("play.mjs"), plugin)
		cmd.Dir = w.Project
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	const as = `runs {"command":"rm x","description":"d"}`
	require.Equal(t, as, play(":"))
	var names []string
	for line := range strings.Lines(w.read("events")) {
		text, ok := strings.CutPrefix(line, "hook opencode ")
		require.True(t, ok, line)
		var event map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &event))
		name, ok := event["hook_event_name"].(string)
		require.True(t, ok, line)
		names = append(names, name)
		require.Equal(t, w.Project, event["cwd"])
		require.Equal(t, w.Project, event["workspace"])
		switch event["hook_event_name"] {
		case "SessionStart":
			require.Equal(t, "ses", event["parent_session_id"])
		case "UserPromptSubmit":
			require.Equal(t, "hello", event["prompt"])
		case "PreToolUse", "PostToolUse":
			require.Equal(t, []any{"ses", "msg", "bash", "call"}, []any{event["session_id"], event["prompt_id"], event["tool_name"], event["tool_use_id"]})
			require.Equal(t, map[string]any{"command": "rm x", "description": "d"}, event["tool_input"])
		}
	}
	require.Equal(t, []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"}, names)

	require.Equal(t, `runs {"command":"rm y"}`, play(`echo '{"decision":"allow","tool_input":{"command":"rm y"}}'`))
	require.Equal(t, as, play(`echo '{"decision":"allow"}'`))
	require.Equal(t, "blocked because", play(`echo '{"decision":"deny","reason":"because"}'`))
	require.Equal(t, "blocked stderr", play(`echo stderr >&2; exit 2`))
	require.Equal(t, `blocked remit: unknown decision "perhaps"`, play(`echo '{"decision":"perhaps"}'`))
	require.Equal(t, "blocked remit: the answer is not JSON", play(`echo yes`))
	require.Contains(t, play(`exit 7`), "blocked remit: "+w.Command+" hook opencode failed (7)")
	require.Contains(t, play(`kill -9 $$`), "blocked remit: "+w.Command+" hook opencode failed")
	require.Contains(t, play(`echo null`), "blocked ")
	require.Contains(t, play(""), "blocked remit: "+w.Command+" cannot be started")
}

package agentclients_test

import (
	"testing"

	"github.com/remit-dev/remit/internal/proof/agentclients"
	"github.com/remit-dev/remit/internal/proof/fakemodel"
)

// codexTools are scenarios with each tool of Codex, without an answer of the
// hook.
func codexTools() []scenario {
	call := agentclients.Call
	patch := func(text string) fakemodel.Call {
		return call("apply_patch", "*** Begin Patch\n"+text+"*** End Patch\n")
	}
	return []scenario{
		{name: "shell", prompts: func(string) []agentclients.Prompt {
			return one(call("exec_command", object{"cmd": "echo made > made.txt; echo out"}))
		}},
		{name: "shell-fails", prompts: func(string) []agentclients.Prompt {
			return one(call("exec_command", object{"cmd": "echo made > made.txt; echo out; exit 3"}))
		}},
		{name: "shell-folder", prompts: func(dir string) []agentclients.Prompt {
			return one(call("exec_command", object{"cmd": "mkdir sub; pwd"}), call("exec_command", object{"cmd": "pwd", "workdir": dir + "/sub"}))
		}},
		{name: "shell-background", racy: true, prompts: func(string) []agentclients.Prompt { // its first call returns while the command runs
			return one(call("exec_command", object{"cmd": "echo out; while [ ! -e go ]; do sleep 0.1; done; echo late > late.txt", "yield_time_ms": 250}),
				call("exec_command", object{"cmd": "touch go; while [ ! -e late.txt ]; do sleep 0.1; done"}))
		}},
		{name: "shell-stdin", racy: true, prompts: func(string) []agentclients.Prompt {
			return one(call("exec_command", object{"cmd": "bash", "tty": true, "yield_time_ms": 250}),
				call("write_stdin", object{"session_id": "{{session ID ([0-9]+)}}", "chars": "echo made > made.txt; exit 3\n"}))
		}},
		{name: "apply-patch", prompts: func(string) []agentclients.Prompt {
			return one(patch("*** Add File: made.txt\n+made\n"), patch("*** Update File: notes.txt\n@@\n one\n-two\n+TWO\n three\n"),
				patch("*** Update File: notes.txt\n*** Move to: moved.txt\n@@\n-one\n+1\n"), patch("*** Delete File: made.txt\n"))
		}},
		{name: "apply-patch-fails", prompts: func(string) []agentclients.Prompt {
			return one(patch("*** Update File: notes.txt\n@@\n-missing\n+x\n"))
		}},
		{name: "apply-patch-in-shell", prompts: func(string) []agentclients.Prompt {
			return one(call("exec_command", object{"cmd": "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\nEOF\n"}))
		}},
		{name: "view-image", prompts: func(dir string) []agentclients.Prompt {
			return one(call("view_image", object{"path": dir + "/notes.txt"}))
		}},
		{name: "code-mode", prompts: func(string) []agentclients.Prompt {
			return one(call("exec", `const r = await tools.exec_command({cmd: "echo made > made.txt; echo out"}); text(r.output); `+
				`await tools.apply_patch("*** Begin Patch\n*** Add File: patched.txt\n+x\n*** End Patch\n"); text("end");`))
		}, setUp: func(_ *testing.T, s *agentclients.Session) { s.Flags = []string{"-c", "model=gpt-6-sol"} }},
		{name: "code-mode-at-once", racy: true, prompts: func(string) []agentclients.Prompt {
			return one(call("exec", `await Promise.all([1, 2, 3].map(n => tools.exec_command({cmd: "echo " + n + " > " + n + ".txt"}))); text("end");`))
		}, setUp: func(_ *testing.T, s *agentclients.Session) { s.Flags = []string{"-c", "model=gpt-6-sol"} }},
		{name: "one-message", racy: true, prompts: func(string) []agentclients.Prompt {
			return []agentclients.Prompt{{Text: "do the work", Turns: []turn{agentclients.Turn(
				call("exec_command", object{"cmd": "echo 1 > 1.txt"}), call("exec_command", object{"cmd": "echo 2 > 2.txt"}),
				patch("*** Add File: 3.txt\n+3\n"),
			)}}}
		}},
		{name: "two-prompts", prompts: func(string) []agentclients.Prompt {
			return []agentclients.Prompt{
				{Text: "first work", Turns: []turn{agentclients.Turn(call("exec_command", object{"cmd": "echo 1 > 1.txt"}))}},
				{Text: "second work", Turns: []turn{agentclients.Turn(call("exec_command", object{"cmd": "echo 2 > 2.txt"}))}},
			}
		}},
		{name: "sub-agent", racy: true, prompts: func(string) []agentclients.Prompt {
			return one(call("multi_agent_v1/spawn_agent", object{"message": "help with it"}),
				call("multi_agent_v1/wait_agent", object{"targets": []string{`{{agent_id.:.([0-9a-f-]+)}}`}, "timeout_ms": 20000}))
		}, helpers: func(string) []agentclients.Prompt {
			return []agentclients.Prompt{{Text: "help with it", Turns: []turn{agentclients.Turn(call("exec_command", object{"cmd": "echo made > made.txt"}))}}}
		}},
		{name: "sub-agent-code-mode", racy: true, prompts: func(string) []agentclients.Prompt {
			return one(call("collaboration/spawn_agent", object{"task_name": "help", "message": "help with it", "fork_turns": "none"}),
				call("collaboration/wait_agent", object{"timeout_ms": 10000}))
		}, helpers: func(string) []agentclients.Prompt {
			return []agentclients.Prompt{{Text: "help with it", Turns: []turn{agentclients.Turn(call("exec", `text(await tools.exec_command({cmd: "echo made > made.txt"}));`))}}}
		}, setUp: func(_ *testing.T, s *agentclients.Session) { s.Flags = []string{"-c", "model=gpt-6-sol"} }},
	}
}

// codexAnswers are scenarios with an answer of the hook.
func codexAnswers() []scenario {
	shell := func(string) []agentclients.Prompt {
		return one(agentclients.Call("exec_command", object{"cmd": "echo ran > ran.txt; echo out"}))
	}
	return append(answerScenarios(names{
		prompt: "UserPromptSubmit", before: "PreToolUse", after: "PostToolUse", shell: "Bash",
		command: func(command string) fakemodel.Call { return agentclients.Call("exec_command", object{"cmd": command}) },
	}, map[string]agentclients.Answer{
		"deny": decision("deny", ""), "ask": decision("ask", ""), "allow": decision("allow", ""),
		"updates":       decision("allow", `,"updatedInput":{"command":"echo updated > updated.txt"}`),
		"only-updates":  {Stdout: `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"echo updated > updated.txt"}}}`},
		"adds-context":  {Stdout: `{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"the hook adds this"}}`},
		"old-block":     {Stdout: `{"decision":"block","reason":"the hook says no"}`},
		"no-continue":   {Stdout: `{"continue":false,"stopReason":"the hook stops"}`},
		"exit-2-silent": {Code: 2},
	}),
		scenario{name: "after-block", answers: []agentclients.Answer{{Event: "PostToolUse", Stdout: `{"decision":"block","reason":"the hook says no"}`}}, prompts: shell},
		scenario{name: "prompt-block", answers: []agentclients.Answer{{Event: "UserPromptSubmit", Stdout: `{"decision":"block","reason":"the hook says no"}`}}, prompts: shell},
		scenario{name: "prompt-context", answers: []agentclients.Answer{{
			Event: "UserPromptSubmit", Stdout: `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"the hook adds this"}}`,
		}}, prompts: shell},
		scenario{name: "untrusted", prompts: shell, setUp: func(_ *testing.T, s *agentclients.Session) { s.AskForTrust = true }},
		scenario{name: "trusted", prompts: shell, setUp: func(t *testing.T, s *agentclients.Session) {
			s.AskForTrust = true
			agentclients.Clients()[1].Install(t).TrustCodexHooks(t, s.Home, s.Dir)
		}},
		scenario{name: "before-patch-updates", answers: []agentclients.Answer{{
			Event: "PreToolUse", Tool: "apply_patch", Stdout: decision("allow", `,"updatedInput":{"command":"*** Begin Patch\n*** Add File: updated.txt\n+updated\n*** End Patch\n"}`).Stdout,
		}}, prompts: func(string) []agentclients.Prompt {
			return one(agentclients.Call("apply_patch", "*** Begin Patch\n*** Add File: ran.txt\n+ran\n*** End Patch\n"))
		}},
		scenario{name: "before-code-mode-denies", answers: []agentclients.Answer{{Event: "PreToolUse", Tool: "Bash", Stdout: decision("deny", "").Stdout}}, prompts: func(string) []agentclients.Prompt {
			return one(agentclients.Call("exec", `text(await tools.exec_command({cmd: "echo ran > ran.txt"}));`))
		}, setUp: func(_ *testing.T, s *agentclients.Session) { s.Flags = []string{"-c", "model=gpt-6-sol"} }},
	)
}

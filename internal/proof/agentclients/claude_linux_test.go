package agentclients_test

import (
	"testing"

	"github.com/remit-dev/remit/internal/proof/agentclients"
	"github.com/remit-dev/remit/internal/proof/fakemodel"
)

type object = map[string]any

// claudeTools are scenarios with each tool of Claude Code, without an answer
// of the hook.
func claudeTools() []scenario {
	call := agentclients.Call
	return []scenario{
		{name: "bash", prompts: func(string) []agentclients.Prompt {
			return one(call("Bash", object{"command": "echo made > made.txt; echo out; echo err >&2", "description": "Make a file"}))
		}},
		{name: "bash-fails", prompts: func(string) []agentclients.Prompt {
			return one(call("Bash", object{"command": "echo made > made.txt; echo out; echo err >&2; exit 3"}))
		}},
		{name: "bash-folder", prompts: func(string) []agentclients.Prompt {
			return one(call("Bash", object{"command": "mkdir sub; cd sub"}), call("Bash", object{"command": "pwd"}))
		}},
		{name: "bash-timeout", racy: true, prompts: func(string) []agentclients.Prompt {
			return one(call("Bash", object{"command": "echo out; while [ ! -e go ]; do sleep 0.1; done; echo late > late.txt", "timeout": 1000}),
				call("Bash", object{"command": "touch go; while [ ! -e late.txt ]; do sleep 0.1; done"}))
		}},
		{name: "bash-background", racy: true, prompts: func(string) []agentclients.Prompt {
			return one(call("Bash", object{"command": "while [ ! -e go ]; do sleep 0.1; done; echo late > late.txt", "run_in_background": true}),
				call("Bash", object{"command": "touch go; while [ ! -e late.txt ]; do sleep 0.1; done"}))
		}},
		{name: "write", prompts: func(dir string) []agentclients.Prompt {
			return one(call("Write", object{"file_path": dir + "/made.txt", "content": "made\n"}), call("Read", object{"file_path": dir + "/notes.txt"}),
				call("Write", object{"file_path": dir + "/notes.txt", "content": "again\n"}))
		}},
		{name: "write-unread", prompts: func(dir string) []agentclients.Prompt { // the tool itself refuses
			return one(call("Write", object{"file_path": dir + "/notes.txt", "content": "again\n"}))
		}},
		{name: "edit", prompts: func(dir string) []agentclients.Prompt {
			return one(call("Read", object{"file_path": dir + "/notes.txt"}),
				call("Edit", object{"file_path": dir + "/notes.txt", "old_string": "two", "new_string": "TWO"}),
				call("Edit", object{"file_path": dir + "/notes.txt", "old_string": "missing", "new_string": "x"}))
		}},
		{name: "multi-edit", prompts: func(dir string) []agentclients.Prompt {
			return one(call("Read", object{"file_path": dir + "/notes.txt"}),
				call("MultiEdit", object{"file_path": dir + "/notes.txt", "edits": []object{{"old_string": "one", "new_string": "1"}}}))
		}},
		{name: "notebook-edit", prompts: func(dir string) []agentclients.Prompt {
			return one(call("Read", object{"file_path": dir + "/n.ipynb"}),
				call("NotebookEdit", object{"notebook_path": dir + "/n.ipynb", "cell_id": "a", "new_source": "2"}))
		}, setUp: func(t *testing.T, s *agentclients.Session) {
			write(t, s.Dir+"/n.ipynb", `{"cells":[{"cell_type":"code","id":"a","source":"1","metadata":{},"outputs":[],"execution_count":null}],"metadata":{"language_info":{"name":"python"}},"nbformat":4,"nbformat_minor":5}`)
		}},
		{name: "search", prompts: func(dir string) []agentclients.Prompt {
			return one(call("Grep", object{"pattern": "two"}), call("Glob", object{"pattern": "*.txt"}), call("LS", object{"path": dir}))
		}},
		{name: "fetch", prompts: func(string) []agentclients.Prompt {
			return one(call("WebFetch", object{"url": "http://127.0.0.1:4141/page", "prompt": "what"}), call("WebSearch", object{"query": "remit"}))
		}},
		{name: "sub-agent", prompts: func(string) []agentclients.Prompt {
			return one(call("Agent", object{"description": "Help", "prompt": "help with it", "subagent_type": "general-purpose", "run_in_background": false}))
		}, helpers: func(string) []agentclients.Prompt {
			return []agentclients.Prompt{{Text: "help with it", Turns: []turn{agentclients.Turn(call("Bash", object{"command": "echo made > made.txt"}))}}}
		}},
		{name: "one-message", prompts: func(dir string) []agentclients.Prompt {
			return []agentclients.Prompt{{Text: "do the work", Turns: []turn{agentclients.Turn(
				call("Bash", object{"command": "echo 1 > 1.txt"}), call("Bash", object{"command": "echo 2 > 2.txt"}),
				call("Write", object{"file_path": dir + "/3.txt", "content": "3\n"}),
			)}}}
		}},
		{name: "two-prompts", prompts: func(string) []agentclients.Prompt {
			return []agentclients.Prompt{
				{Text: "first work", Turns: []turn{agentclients.Turn(call("Bash", object{"command": "echo 1 > 1.txt"}))}},
				{Text: "second work", Turns: []turn{agentclients.Turn(call("Bash", object{"command": "echo 2 > 2.txt"}))}},
			}
		}},
	}
}

// claudeAnswers are scenarios with an answer of the hook.
func claudeAnswers() []scenario {
	all := answerScenarios(names{
		prompt: "UserPromptSubmit", before: "PreToolUse", after: "PostToolUse", shell: "Bash",
		command: func(command string) fakemodel.Call { return agentclients.Call("Bash", object{"command": command}) },
	}, map[string]agentclients.Answer{
		"deny": decision("deny", ""), "ask": decision("ask", ""), "allow": decision("allow", ""), "defer": decision("defer", ""),
		"updates":       decision("allow", `,"updatedInput":{"command":"echo updated > updated.txt"}`),
		"only-updates":  {Stdout: `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"echo updated > updated.txt"}}}`},
		"ask-updates":   decision("ask", `,"updatedInput":{"command":"echo updated > updated.txt"}`),
		"adds-context":  decision("allow", `,"additionalContext":"the hook adds this"`),
		"old-block":     {Stdout: `{"decision":"block","reason":"the hook says no"}`},
		"no-continue":   {Stdout: `{"continue":false,"stopReason":"the hook stops"}`},
		"exit-2-stdout": {Stdout: `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`, Code: 2},
	})
	for _, sc := range all { // what onFailure changes
		switch sc.name {
		case "before-exit-7", "before-bad-json", "before-no-json", "before-hangs", "before-crashes", "before-missing", "after-exit-7":
			sc.name, sc.hook.Block = "block-"+sc.name, true
			all = append(all, sc)
		}
	}
	shell := func(string) []agentclients.Prompt {
		return one(agentclients.Call("Bash", object{"command": "echo ran > ran.txt; echo out"}))
	}
	return append(all,
		scenario{name: "after-block", answers: []agentclients.Answer{{Event: "PostToolUse", Stdout: `{"decision":"block","reason":"the hook says no"}`}}, prompts: shell},
		scenario{name: "after-output", answers: []agentclients.Answer{{
			Event:  "PostToolUse",
			Stdout: `{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"the hook adds this","updatedToolOutput":{"stdout":"other","stderr":"","interrupted":false,"isImage":false}}}`,
		}}, prompts: shell},
		scenario{name: "prompt-block", answers: []agentclients.Answer{{Event: "UserPromptSubmit", Stdout: `{"decision":"block","reason":"the hook says no"}`}}, prompts: shell},
		scenario{name: "prompt-context", answers: []agentclients.Answer{{
			Event: "UserPromptSubmit", Stdout: `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"the hook adds this"}}`,
		}}, prompts: shell},
	)
}

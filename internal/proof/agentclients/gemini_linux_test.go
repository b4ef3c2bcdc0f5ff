package agentclients_test

import (
	"github.com/remit-dev/remit/internal/proof/agentclients"
	"github.com/remit-dev/remit/internal/proof/fakemodel"
)

// geminiTools are scenarios with each tool of Gemini CLI, without an answer of
// the hook.
func geminiTools() []scenario {
	call := agentclients.Call
	return []scenario{
		{name: "shell", prompts: func(string) []agentclients.Prompt {
			return one(call("run_shell_command", object{"command": "echo made > made.txt; echo out; echo err >&2", "description": "Make a file"}),
				call("run_shell_command", object{"command": "mkdir sub; echo out; exit 3"}), call("run_shell_command", object{"command": "pwd", "dir_path": "sub"}))
		}},
		{name: "shell-background", racy: true, prompts: func(string) []agentclients.Prompt {
			return one(call("run_shell_command", object{"command": "while [ ! -e go ]; do sleep 0.1; done; echo late > late.txt", "is_background": true}),
				call("run_shell_command", object{"command": "touch go; while [ ! -e late.txt ]; do sleep 0.1; done"}))
		}},
		{name: "files", prompts: func(dir string) []agentclients.Prompt {
			return one(call("write_file", object{"file_path": dir + "/made.txt", "content": "made\n"}), call("read_file", object{"file_path": "notes.txt"}),
				call("replace", object{"file_path": dir + "/notes.txt", "instruction": "change", "old_string": "two", "new_string": "TWO"}))
		}},
		{name: "replace-fails", racy: true, prompts: func(dir string) []agentclients.Prompt {
			return one(call("replace", object{"file_path": dir + "/notes.txt", "instruction": "change", "old_string": "missing", "new_string": "x"}))
		}},
		{name: "search", prompts: func(string) []agentclients.Prompt {
			return one(call("grep_search", object{"pattern": "two"}), call("glob", object{"pattern": "*.txt"}), call("list_directory", object{"dir_path": "."}))
		}},
		{name: "one-message", racy: true, prompts: func(dir string) []agentclients.Prompt {
			return []agentclients.Prompt{{Text: "do the work", Turns: []turn{agentclients.Turn(
				call("run_shell_command", object{"command": "echo 1 > 1.txt"}), call("run_shell_command", object{"command": "echo 2 > 2.txt"}),
				call("write_file", object{"file_path": dir + "/3.txt", "content": "3\n"}),
			)}}}
		}},
		{name: "two-prompts", prompts: func(string) []agentclients.Prompt {
			return []agentclients.Prompt{
				{Text: "first work", Turns: []turn{agentclients.Turn(call("run_shell_command", object{"command": "echo 1 > 1.txt"}))}},
				{Text: "second work", Turns: []turn{agentclients.Turn(call("run_shell_command", object{"command": "echo 2 > 2.txt"}))}},
			}
		}},
		{name: "sub-agent", racy: true, prompts: func(string) []agentclients.Prompt {
			return one(call("invoke_agent", object{"agent_name": "generalist", "prompt": "help with it"}))
		}, helpers: func(string) []agentclients.Prompt {
			return []agentclients.Prompt{{Text: "help with it", Turns: []turn{
				agentclients.Turn(call("run_shell_command", object{"command": "echo made > made.txt"})), agentclients.Turn(call("complete_task", object{"result": object{"response": "helped"}})),
			}}}
		}},
	}
}

func geminiDecision(kind, more string) agentclients.Answer {
	return agentclients.Answer{Stdout: `{"decision":"` + kind + `","reason":"the hook says ` + kind + `"` + more + `}`}
}

// geminiAnswers are scenarios with an answer of the hook.
func geminiAnswers() []scenario {
	return answerScenarios(names{
		prompt: "BeforeAgent", before: "BeforeTool", after: "AfterTool", shell: "run_shell_command",
		command: func(command string) fakemodel.Call {
			return agentclients.Call("run_shell_command", object{"command": command})
		},
	}, map[string]agentclients.Answer{
		"deny": geminiDecision("deny", ""), "block": geminiDecision("block", ""), // not "ask", after which a run without a person does not end
		"updates":       geminiDecision("allow", `,"hookSpecificOutput":{"tool_input":{"command":"echo updated > updated.txt"}}`),
		"exit-1":        {Stderr: "the hook is broken", Code: 1},
		"exit-7-silent": {Code: 7},
		"exit-2-silent": {Code: 2},
		"no-continue":   {Stdout: `{"continue":false,"stopReason":"the hook stops"}`},
	})
}

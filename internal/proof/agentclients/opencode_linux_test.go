package agentclients_test

import (
	"github.com/remit-dev/remit/internal/proof/agentclients"
	"github.com/remit-dev/remit/internal/proof/fakemodel"
)

// opencodeTools are scenarios with each tool of opencode, without an answer of
// the hook.
func opencodeTools() []scenario {
	call := agentclients.Call
	return []scenario{
		{name: "bash", prompts: func(dir string) []agentclients.Prompt {
			return one(call("bash", object{"command": "echo made > made.txt; echo out"}), call("bash", object{"command": "mkdir sub; echo out; exit 3"}),
				call("bash", object{"command": "pwd", "workdir": dir + "/sub"}), call("bash", object{"command": "echo out; sleep 1000", "timeout": 1000}))
		}},
		{name: "files", prompts: func(dir string) []agentclients.Prompt {
			return one(call("write", object{"filePath": dir + "/made.txt", "content": "made\n"}), call("read", object{"filePath": dir + "/notes.txt"}),
				call("edit", object{"filePath": dir + "/notes.txt", "oldString": "two", "newString": "TWO"}),
				call("edit", object{"filePath": dir + "/notes.txt", "oldString": "missing", "newString": "x"}),
				call("grep", object{"pattern": "TWO"}), call("glob", object{"pattern": "*.txt"}),
				call("webfetch", object{"url": "http://127.0.0.1:4141/page", "format": "text"}))
		}},
		{name: "one-message", racy: true, prompts: func(dir string) []agentclients.Prompt {
			return []agentclients.Prompt{{Text: "do the work", Turns: []turn{agentclients.Turn(
				call("bash", object{"command": "echo 1 > 1.txt"}), call("bash", object{"command": "echo 2 > 2.txt"}),
				call("write", object{"filePath": dir + "/3.txt", "content": "3\n"}),
			)}}}
		}},
		{name: "two-prompts", racy: true, prompts: func(string) []agentclients.Prompt {
			return []agentclients.Prompt{
				{Text: "first work", Turns: []turn{agentclients.Turn(call("bash", object{"command": "echo 1 > 1.txt"}))}},
				{Text: "second work", Turns: []turn{agentclients.Turn(call("bash", object{"command": "echo 2 > 2.txt"}))}},
			}
		}},
		{name: "sub-agent", racy: true, prompts: func(string) []agentclients.Prompt {
			return one(call("task", object{"description": "Help", "prompt": "help with it", "subagent_type": "general"}))
		}, helpers: func(string) []agentclients.Prompt {
			return []agentclients.Prompt{{Text: "help with it", Turns: []turn{agentclients.Turn(call("bash", object{"command": "echo made > made.txt"}))}}}
		}},
	}
}

// opencodeAnswers are scenarios in which the plugin does what a hook tells it.
func opencodeAnswers() []scenario {
	shell := func(string) []agentclients.Prompt {
		return one(agentclients.Call("bash", object{"command": "echo ran > ran.txt"}))
	}
	before := func(name string, a agentclients.Answer) scenario {
		a.Event, a.Tool = "tool.execute.before", "bash"
		return scenario{name: name, answers: []agentclients.Answer{a}, prompts: shell}
	}
	return []scenario{
		before("before-throws", agentclients.Answer{Stderr: "the hook says no", Code: 2}),
		before("before-assigns", agentclients.Answer{Stdout: `{"assign":{"command":"echo updated > updated.txt"}}`}),
		before("before-replaces", agentclients.Answer{Stdout: `{"args":{"command":"echo updated > updated.txt"}}`}),
		{name: "after-throws", answers: []agentclients.Answer{{Event: "tool.execute.after", Stderr: "the hook says no", Code: 2}}, prompts: shell},
		{name: "after-replaces", answers: []agentclients.Answer{{Event: "tool.execute.after", Stdout: `{"output":"the hook adds this"}`}}, prompts: shell},
		{name: "prompt-throws", answers: []agentclients.Answer{{Event: "chat.message", Stderr: "the hook says no", Code: 2}}, prompts: shell},
		{name: "shell-env", answers: []agentclients.Answer{{Event: "shell.env", Stdout: `{"env":{"FROM_HOOK":"yes"}}`}}, prompts: func(string) []agentclients.Prompt {
			return one(fakemodel.Call{Tool: "bash", Args: `{"command":"echo $FROM_HOOK > ran.txt"}`})
		}},
		{name: "killed-while", prompts: func(string) []agentclients.Prompt {
			return one(agentclients.Call("bash", object{"command": `echo ran > ran.txt; kill -9 $(cat "$REMIT_AGENT_RUN/pid")`}))
		}},
	}
}

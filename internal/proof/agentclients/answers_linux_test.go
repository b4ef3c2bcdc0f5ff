package agentclients_test

import (
	"fmt"

	"github.com/remit-dev/remit/internal/proof/agentclients"
	"github.com/remit-dev/remit/internal/proof/fakemodel"
)

// names are an agent's own names of what the answers are about.
type names struct {
	prompt, before, after, shell string
	// command returns a call of the shell.
	command func(command string) fakemodel.Call
}

// answerScenarios are the ways in which a hook answers or fails before one
// command, which leaves ran.txt if it runs.
func answerScenarios(n names, replies map[string]agentclients.Answer) (all []scenario) {
	run := func(string) []agentclients.Prompt { return one(n.command("echo ran > ran.txt")) }
	failures := map[string]agentclients.Answer{
		"exit-2":   {Stderr: "the hook says no", Code: 2},
		"exit-7":   {Stderr: "the hook is broken", Code: 7},
		"bad-json": {Stdout: `{"hookSpecificOutput": `},
		"no-json":  {Stdout: "only words"},
		"hangs":    {Hang: true},
		"crashes":  {Crash: true},
	}
	for _, some := range []map[string]agentclients.Answer{failures, replies} {
		for name, a := range some {
			a.Event, a.Tool = n.before, n.shell
			all = append(all, scenario{name: "before-" + name, hook: agentclients.Hook{Timeout: 1}, answers: []agentclients.Answer{a}, prompts: run})
		}
	}
	all = append(all,
		scenario{name: "before-missing", hook: agentclients.Hook{Command: "/nowhere/remit"}, prompts: run},
		scenario{name: "prompt-exit-2", answers: []agentclients.Answer{{Event: n.prompt, Stderr: "the hook says no", Code: 2}}, prompts: run},
		scenario{name: "after-exit-2", answers: []agentclients.Answer{{Event: n.after, Stderr: "the hook says no", Code: 2}}, prompts: run},
		scenario{name: "after-exit-7", answers: []agentclients.Answer{{Event: n.after, Stderr: "the hook is broken", Code: 7}}, prompts: run},
		scenario{name: "killed-before", answers: []agentclients.Answer{{Event: n.before, Kill: true}}, prompts: run},
		scenario{name: "killed-after", answers: []agentclients.Answer{{Event: n.after, Kill: true}}, prompts: run},
		scenario{name: "killed-while", prompts: func(string) []agentclients.Prompt {
			return one(n.command(`echo ran > ran.txt; xargs kill -9 < "$REMIT_AGENT_RUN/pid"`))
		}},
	)
	return all
}

// decision is an answer in the format that Claude Code has and Codex shares.
func decision(kind, more string) agentclients.Answer {
	return agentclients.Answer{Stdout: fmt.Sprintf(
		`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":%q,"permissionDecisionReason":"the hook says %s"%s}}`, kind, kind, more)}
}

package agentclients_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/agentclients"
)

// pending is a line of remit pending --json.
type pending struct{ Call, Question string }

// pending returns the calls that wait, oldest first.
func (g *guarded) pending() (all []pending) {
	out, _ := g.remit("pending", "--json")
	for line := range strings.Lines(out) {
		var p pending
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			g.t.Errorf("%v: %s", err, out)
		}
		all = append(all, p)
	}
	return all
}

// approves approves the newest call that waits, as a person in a terminal of
// their own.
func (g *guarded) approves() {
	all := g.pending()
	if len(all) == 0 {
		g.t.Error("no call waits")
		return
	}
	p := all[len(all)-1]
	line := g.program + " approve " + p.Call
	if p.Question != "" {
		line += " --request " + p.Question
	}
	if out, code, err := g.terminal.Run(line); err != nil || code != 0 {
		g.t.Errorf("%v, exit code %d: %s", err, code, out)
	}
}

// TestApproval lets a person approve what the policy asks about. The repetition
// of the call by the model passes, once. Claude Code, which could ask its user,
// runs in a mode that asks nothing.
func TestApproval(t *testing.T) {
	prove(t)
	for _, c := range agentclients.Clients() {
		t.Run(c.Name, func(t *testing.T) {
			g := newGuarded(t, c.Install(t))
			var err error
			g.terminal, err = agentclients.OpenTerminal(g.dir, g.command().Env)
			require.NoError(t, err)
			defer g.terminal.Close()
			g.unattended()
			was := g.tree()
			g.approvalWithin("write", ".mcp.json", writes(".mcp.json", "{}\n"))
			g.approvalWithin("command", "lefthook.yml", sh("echo x > lefthook.yml"))
			g.approvalBetween()
			out, code := g.remit("undo", "-n", "10")
			require.Zero(t, code, out)
			require.Empty(t, g.differences(was), out)
		})
	}
}

// unattended writes the setting of remit approval allow-unattended. The command
// itself counts for no agent that the test started, because the test is above
// the terminal, too. Approvals by programs of the agent stay refused.
func (g *guarded) unattended() {
	g.t.Helper()
	g.apart = true
	g.event(g.client.Name, "first", "", "SessionStart", "", "", object{}) // makes the folder
	all, err := filepath.Glob(filepath.Join(g.state(), "remit", "src-*"))
	require.NoError(g.t, err)
	require.Len(g.t, all, 1)
	write(g.t, filepath.Join(all[0], "approval.json"), `{"unattended": true}`)
}

// approvalWithin approves a call while the agent works on the prompt.
func (g *guarded) approvalWithin(name, made string, s step) {
	g.t.Helper()
	use := s.call(g.client.Name, g.dir)
	repeated, again := agentclients.Turn(use), agentclients.Turn(use)
	repeated.Before = func() {
		if _, err := os.Stat(filepath.Join(g.dir, made)); err == nil {
			g.t.Errorf("%s: %s was made before the approval", name, made)
		}
		g.approves()
	}
	tr := g.run(agentclients.Prompt{Text: "within: " + name, Turns: []turn{agentclients.Turn(use), repeated, again}})
	calls := tr.Outcomes[0].Calls
	require.Len(g.t, calls, 3, "%s", tr.Stderr)
	g.mustWait(calls[0])
	require.NotContains(g.t, calls[1].Result, "a person must approve")
	require.FileExists(g.t, filepath.Join(g.dir, made))
	g.mustWait(calls[2])
}

// approvalBetween approves a call between two prompts. All agents but Claude
// Code run a process for each.
func (g *guarded) approvalBetween() {
	g.t.Helper()
	const made = ".pre-commit-config.yaml"
	use := writes(made, "x\n").call(g.client.Name, g.dir)
	tr := g.client.Run(g.t, agentclients.Session{
		Dir: g.dir, Home: g.home, Env: []string{"XDG_STATE_HOME=" + g.state()},
		Prompts: []agentclients.Prompt{
			{Text: "between: first", Turns: []turn{agentclients.Turn(use)}}, {Text: "between: second", Turns: []turn{agentclients.Turn(use), agentclients.Turn(use)}},
		},
		Before: func(i int) {
			if i == 1 {
				require.NoFileExists(g.t, filepath.Join(g.dir, made))
				g.approves()
			}
		},
	})
	g.mustWait(tr.Outcomes[0].Calls[0])
	calls := tr.Outcomes[1].Calls
	require.Len(g.t, calls, 2, "%s", tr.Stderr)
	require.NotContains(g.t, calls[0].Result, "a person must approve")
	require.FileExists(g.t, filepath.Join(g.dir, made))
	g.mustWait(calls[1])
}

// mustWait requires that a call did not run, and that its result says what a
// person must do, but not how.
func (g *guarded) mustWait(e exchange) {
	g.t.Helper()
	require.Contains(g.t, e.Result, "a person must approve")
	require.Contains(g.t, e.Result, "remit pending lists it")
	require.NotContains(g.t, e.Result, "remit approve")
}

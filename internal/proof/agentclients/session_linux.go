package agentclients

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/remit-dev/remit/internal/proof/fakemodel"
	"github.com/stretchr/testify/require"
)

// Prompt is one prompt of the user, and what the model does after it.
type Prompt struct {
	// Text is unique in its session.
	Text  string
	Turns []fakemodel.Turn
}

// Session is one session of an agent.
type Session struct {
	// Dir is the folder in which the agent works, and Home its home folder,
	// with the files that configure its hooks.
	Dir, Home string
	Prompts   []Prompt
	// Helpers are prompts that the agent writes itself, to its sub-agents.
	Helpers []Prompt
	// Env is added to the environment.
	Env []string
	// Flags are added to the command line.
	Flags []string
	// Beside runs beside the session. kill kills the agent with SIGKILL.
	Beside func(kill func())
	// AskForTrust leaves out the flag of an agent that makes it run hooks that
	// nobody has trusted.
	AskForTrust bool
	// Before is called before the prompt of a number starts, if set. The agent
	// works on nothing then.
	Before func(prompt int)
	// Limit is the time that the session has. Default: 2 minutes.
	Limit time.Duration
}

// starts tells that a prompt starts.
func (s Session) starts(prompt int) {
	if s.Before != nil {
		s.Before(prompt)
	}
}

// Outcome is what came of one prompt.
type Outcome struct {
	// Calls are those that the model requested, with what the agent answered.
	Calls []fakemodel.Exchange
	// Output is what the agent wrote on its standard output.
	Output string
	// Code is the exit code of the agent's process. Agents that run several
	// prompts in one process have the same for each. 128 and a signal: killed.
	Code int
	// CPU is the time that the agent's process computed, with the processes
	// that it waited for. Agents that run several prompts in one process have
	// the same for each.
	CPU time.Duration
}

// Transcript is what came of a session.
type Transcript struct {
	Outcomes []Outcome
	// Stderr is what the agent wrote on its standard error.
	Stderr string
	// Requests are all that the stand-in received.
	Requests []fakemodel.Request
}

// Call returns a call of a tool with arguments.
func Call(tool string, args any) fakemodel.Call {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return fakemodel.Call{Tool: tool, Args: string(raw)}
}

// Turn returns a turn with some calls.
func Turn(calls ...fakemodel.Call) fakemodel.Turn { return fakemodel.Turn{Calls: calls} }

// place is where a session runs.
type place struct {
	client Client
	socket string // of the stand-in
	log    string // standard error of all processes
	env    []string
}

// Run runs a session. It ends all processes of the session at the test's end.
func (c Client) Run(t *testing.T, s Session) Transcript {
	t.Helper()
	require.NotEmpty(t, c.dir, "Install comes first")
	var scenes []fakemodel.Scene
	for _, p := range append(append([]Prompt{}, s.Prompts...), s.Helpers...) {
		scenes = append(scenes, fakemodel.Scene{Prompt: p.Text, Turns: p.Turns})
	}
	model := fakemodel.NewStandIn(scenes...)
	p := c.place(t, s, model)
	if s.Beside != nil {
		over := make(chan struct{})
		go func() { defer close(over); s.Beside(p.kill) }()
		defer func() { <-over }()
	}
	mark := p.env[0]
	limit := time.AfterFunc(cmp.Or(s.Limit, 2*time.Minute), func() { endAll(mark) }) // so that an agent that waits for ever does not stop all tests
	outcomes := c.driver.run(t, p, s)
	require.True(t, limit.Stop(), "the session did not end")
	said, _ := os.ReadFile(p.log)
	for i, o := range outcomes {
		for _, e := range model.Exchanges() {
			if e.Prompt == s.Prompts[i].Text {
				o.Calls = append(o.Calls, e)
			}
		}
		outcomes[i] = o
	}
	return Transcript{Outcomes: outcomes, Stderr: string(said), Requests: model.Requests()}
}

// place returns a new place. It ends all processes there at the test's end.
func (c Client) place(t *testing.T, s Session, model http.Handler) *place {
	run, err := os.MkdirTemp("", "agent") // short: the path of a socket has at most 108 bytes
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(run) })
	p := &place{client: c, socket: filepath.Join(run, "model"), log: filepath.Join(run, "stderr")}
	serve(t, p.socket, model)
	mark := "REMIT_AGENT_RUN=" + run
	t.Cleanup(func() { endAll(mark) })
	p.env = append([]string{
		mark, "HOME=" + s.Home, "PATH=" + c.node() + ":" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb",
		"TMPDIR=" + run, "NO_PROXY=127.0.0.1",
	}, c.driver.env(s)...)
	p.env = append(p.env, s.Env...)
	return p
}

// kill kills the process of the agent that was started last.
func (p *place) kill() {
	var pid int
	raw, _ := os.ReadFile(pidFile(filepath.Dir(p.socket)))
	if _, err := fmt.Sscan(string(raw), &pid); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func serve(t *testing.T, socket string, model http.Handler) {
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := &http.Server{Handler: model}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

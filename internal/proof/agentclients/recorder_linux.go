package agentclients

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const hookArg = "agentclients-hook"

// Answer is what the recording hook does at some events.
type Answer struct {
	// Event and Tool choose events by the agent's own names. Empty: each.
	Event, Tool string
	// Stdout, Stderr and Code are the answer.
	Stdout, Stderr string
	Code           int
	// Hang never answers, and Crash dies by SIGSEGV.
	Hang, Crash bool
	// Kill kills the agent first, with SIGKILL.
	Kill bool
}

// Event is one hook event.
type Event struct {
	// Name is the agent's own name of the event, and Tool of the tool, if any.
	Name, Tool string
	// JSON is what the hook read.
	JSON json.RawMessage
	// Dir is the working folder of the hook, and Env its environment.
	Dir string
	Env []string
}

// Recorder is a hook that records each event and answers as it was told.
type Recorder struct {
	// Command is the hook as it is configured.
	Command string

	dir string
	t   *testing.T
}

// Hook is a command that an agent runs at each event.
type Hook struct {
	Command string
	// Timeout is in seconds. Default: 60.
	Timeout int
	// Block asks the agent to deny the call when the hook fails, if it can.
	Block bool
}

// Record configures the recording hook with the settings of how.
func (c Client) Record(t *testing.T, home string, how Hook, answers ...Answer) *Recorder {
	t.Helper()
	r := &Recorder{dir: t.TempDir(), t: t}
	raw, err := json.Marshal(answers)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "answers"), raw, 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	how.Command = cmp.Or(how.Command, fmt.Sprintf("'%s' %s '%s'", self, hookArg, r.dir))
	r.Command = how.Command
	c.Hook(t, home, how)
	return r
}

// Hook configures a hook at each event of an agent with a home.
func (c Client) Hook(t *testing.T, home string, h Hook) {
	t.Helper()
	h.Timeout = cmp.Or(h.Timeout, 60)
	for name, text := range c.driver.hooks(h) {
		name = filepath.Join(home, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
}

// Events returns the recorded events in order.
func (r *Recorder) Events() (all []Event) {
	r.t.Helper()
	raw, err := os.ReadFile(filepath.Join(r.dir, "events"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(r.t, err)
	for line := range bytes.Lines(raw) {
		var e Event
		require.NoError(r.t, json.Unmarshal(line, &e))
		all = append(all, e)
	}
	return all
}

// hook is the program: it records one event, and answers.
func hook(dir string) int {
	in, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 99
	}
	e := Event{JSON: in, Env: os.Environ()}
	e.Dir, _ = os.Getwd()
	var named struct {
		Event string `json:"hook_event_name"`
		Tool  string `json:"tool_name"`
	}
	if err := json.Unmarshal(in, &named); err != nil {
		e.JSON, _ = json.Marshal(string(in))
	}
	e.Name, e.Tool = named.Event, named.Tool
	if err := e.write(filepath.Join(dir, "events")); err != nil {
		return 98
	}
	var answers []Answer
	raw, err := os.ReadFile(filepath.Join(dir, "answers"))
	if err != nil || json.Unmarshal(raw, &answers) != nil {
		return 97
	}
	for _, a := range answers {
		if (a.Event == "" || a.Event == e.Name) && (a.Tool == "" || a.Tool == e.Tool) {
			return a.give()
		}
	}
	return 0
}

// write appends the event in one write, since agents run hooks at the same
// time.
func (e Event) write(name string) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = f.Write(append(line, '\n'))
	return err
}

func (a Answer) give() int {
	if a.Kill {
		var pid int
		raw, _ := os.ReadFile(pidFile(os.Getenv("REMIT_AGENT_RUN")))
		if _, err := fmt.Sscan(strings.TrimSpace(string(raw)), &pid); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if a.Crash {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	for a.Hang {
		_ = syscall.Pause()
	}
	_, _ = os.Stdout.WriteString(a.Stdout)
	_, _ = os.Stderr.WriteString(a.Stderr)
	return a.Code
}

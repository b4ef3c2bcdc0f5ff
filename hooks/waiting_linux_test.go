package hooks_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
)

var callID = regexp.MustCompile(`c_[a-z0-9]+`)

// lateHost is the machine with a clock that a test can put forward.
type lateHost struct {
	revert.Host
	by time.Duration
}

func (h *lateHost) Now() time.Time { return h.Host.Now().Add(h.by) }

// asksForFile lets a client write a file about which the pack asks, and returns
// the call that waits.
func (c *coder) asksForFile(content string) string {
	c.t.Helper()
	one := c.edits("Write", ".mcp.json", content)
	require.Equal(c.t, hooks.Deny, one.before.Verdict)
	require.Contains(c.t, one.before.Reason, "a person must approve it")
	require.NotContains(c.t, one.before.Reason, "remit approve")
	call := callID.FindString(one.before.Reason)
	require.NotEmpty(c.t, call, one.before.Reason)
	return call
}

// unasked is a client in a mode without questions.
func (d *project) unasked(session string) *coder {
	c := d.coder("claude-code", session)
	c.mode = "bypassPermissions" // no question
	return c
}

// TestWaitingCallAfterRestart kills the resident process at each moment between
// a question and the repeated call. The approval counts once, for this call.
func TestWaitingCallAfterRestart(t *testing.T) {
	moments := map[string]struct{ asked, approved bool }{
		"after the question": {asked: true}, "after the approval": {approved: true}, "after both": {true, true}, "never": {},
	}
	for name, kill := range moments {
		t.Run(name, func(t *testing.T) {
			d := newProject(t, true, "")
			c := d.unasked("s")
			made := filepath.Join(d.dir, ".mcp.json")
			c.says("write")
			call := c.asksForFile("{}")
			if kill.asked {
				d.restarts()
			}
			require.NoError(t, d.rt.Answer(t.Context(), approve(call)))
			if kill.approved {
				d.restarts()
			}
			c.says("it is approved")
			one := c.edits("Write", ".mcp.json", "{}")
			require.Equal(t, hooks.Allow, one.before.Verdict, one.before.Reason)
			require.FileExists(t, made)
			require.Equal(t, revert.PhaseDone, d.phase(call), "the call that waited has run")
			again := c.asksForFile("{}")
			require.NotEqual(t, call, again, "one approval is for one call")
			d.restarts()
			require.Equal(t, again, c.asksForFile("{}"), "the same call still waits")
			c.stops()
			undone := d.undo(d.txnOf(call))
			require.True(t, undone.Complete())
			require.NoFileExists(t, made)
		})
	}
}

// TestApprovalThatDoesNotCount changes one thing before the repeated call.
func TestApprovalThatDoesNotCount(t *testing.T) {
	for name, change := range map[string]func(d *project, c *coder, call string){
		"another content": func(_ *project, c *coder, call string) { require.NotEqual(c.t, call, c.asksForFile("{}\n")) },
		"another session": func(d *project, c *coder, call string) {
			require.NotEqual(c.t, call, d.unasked("s2").asksForFile("{}"))
		},
		"another client": func(d *project, c *coder, call string) {
			other := d.coder("codex", "s")
			_, a := other.event("PreToolUse", map[string]any{"tool_name": "apply_patch", "tool_use_id": "x", "tool_input": map[string]any{"command": "*** Begin Patch\n*** Add File: .mcp.json\n+{}\n*** End Patch\n"}})
			require.Equal(c.t, hooks.Deny, a.Verdict)
			require.NotContains(c.t, a.Reason, call)
		},
		"expired": func(d *project, c *coder, call string) {
			d.host.by = 48 * time.Hour
			d.restarts()
			require.NotEqual(c.t, call, c.asksForFile("{}"))
		},
		"expired in the process": func(d *project, c *coder, call string) {
			c.says("continue") // the session has found the call
			d.host.by = 48 * time.Hour
			require.Equal(c.t, hooks.Deny, c.edits("Write", ".mcp.json", "{}").before.Verdict)
			require.NotEqual(c.t, call, c.asksForFile("{}"))
		},
		"rejected": func(d *project, c *coder, call string) {
			no := approve(call)
			no.Approved = false
			require.NoError(c.t, d.rt.Answer(c.t.Context(), no))
			require.Equal(c.t, hooks.Deny, c.edits("Write", ".mcp.json", "{}").before.Verdict)
		},
		"another policy": func(d *project, c *coder, call string) {
			engine, err := rego.New(rego.Options{Sources: []rego.Source{{FS: policies.CodingAgent(), NoTests: true}}, Modules: map[string]string{"own.rego": "package remit\n\nhint contains \"x\" if false\n"}, Timeout: time.Minute})
			require.NoError(c.t, err)
			d.engine = engine
			d.restarts()
			require.Equal(c.t, hooks.Deny, c.edits("Write", ".mcp.json", "{}").before.Verdict)
		},
		"an answer to another question": func(d *project, c *coder, call string) {
			txn := d.txnOf(call)
			t, err := d.rt.Load(c.t.Context(), txn)
			require.NoError(c.t, err)
			w := revert.Write{Records: []revert.CallRecord{{Txn: txn, Call: call, Body: &record.Answered{Approved: true, By: "person", Digest: "sha256:other"}}}, Durable: true}
			require.NoError(c.t, revert.NewRecorder(d.journal, d.host, t.Session).Write(c.t.Context(), w))
			require.Equal(c.t, hooks.Deny, c.edits("Write", ".mcp.json", "{}").before.Verdict)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newProject(t, true, "")
			c := d.unasked("s")
			c.says("write")
			call := c.asksForFile("{}")
			require.NoError(t, d.rt.Answer(t.Context(), approve(call)))
			d.restarts()
			change(d, c, call)
			c.stops()
			require.NoFileExists(t, filepath.Join(d.dir, ".mcp.json"))
		})
	}
}

// TestWaitingChangesAfterRestart: the changes of a command wait in the
// transaction of its prompt, beside other calls.
func TestWaitingChangesAfterRestart(t *testing.T) {
	const command = "echo {} > .mcp.json"
	setup := func(t *testing.T) (*project, *coder, string) {
		d := newProject(t, true, "")
		c := d.coder("codex", "s")
		c.says("write")
		require.Zero(t, c.runs("echo 1 > a.txt").code)
		one := c.runs(command)
		require.Equal(t, 126, one.code)
		return d, c, callID.FindString(one.out)
	}
	t.Run("the prompt continues", func(t *testing.T) {
		d, c, call := setup(t)
		d.restarts()
		require.NoError(t, d.rt.Answer(t.Context(), answered(t, d, call)))
		one := c.runs(command)
		require.Zero(t, one.code, one.out+one.before.Reason)
		require.FileExists(t, filepath.Join(d.dir, ".mcp.json"))
		c.stops()
		require.True(t, d.undo(d.txnOf(call)).Complete(), "of one prompt")
		require.NoFileExists(t, filepath.Join(d.dir, "a.txt"))
	})
	t.Run("another session begins", func(t *testing.T) {
		d, _, call := setup(t)
		d.restarts()
		other := d.coder("codex", "s2")
		other.says("go on")
		one := other.runs("echo 2 > a.txt")
		require.Zero(t, one.code, "no prompt of a dead process holds the file: %s", one.out)
		other.stops()
		require.Error(t, d.rt.Answer(t.Context(), answered(t, d, call)), "nobody can approve it any more")
		require.NoFileExists(t, filepath.Join(d.dir, ".mcp.json"))
	})
	t.Run("another prompt", func(t *testing.T) {
		d, c, call := setup(t)
		require.NoError(t, d.rt.Answer(t.Context(), answered(t, d, call)))
		d.restarts()
		c.says("next")
		require.Equal(t, 126, c.runs(command).code, "as in one process, it asks anew, and alone")
		require.NoFileExists(t, filepath.Join(d.dir, ".mcp.json"))
		c.stops()
	})
}

// TestWaitingCallOfAClosedSession: a client ends a session and continues it.
func TestWaitingCallOfAClosedSession(t *testing.T) {
	d := newProject(t, true, "")
	c := d.unasked("s")
	c.says("write")
	call := c.asksForFile("{}")
	c.event("SessionEnd", nil)
	require.NoError(t, d.rt.Answer(t.Context(), approve(call)))
	c.says("it is approved")
	require.Equal(t, hooks.Allow, c.edits("Write", ".mcp.json", "{}").before.Verdict)
	c.stops()
	require.NoError(t, os.Remove(filepath.Join(d.dir, ".mcp.json")))
}

func (d *project) txnOf(call string) string {
	d.t.Helper()
	t, _, err := revert.LoadCall(d.t.Context(), d.journal, call)
	require.NoError(d.t, err)
	return t.ID
}

func (d *project) phase(call string) revert.Phase {
	d.t.Helper()
	_, c, err := revert.LoadCall(d.t.Context(), d.journal, call)
	require.NoError(d.t, err)
	return c.Phase
}

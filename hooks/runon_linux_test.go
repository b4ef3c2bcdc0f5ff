package hooks_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/revert"
)

// holding starts a sandboxed command that waits for the end of its input.
func (c *coder) holding() (release func(), wait func() (string, int)) {
	c.t.Helper()
	_, a := c.asks("Bash", map[string]any{"command": "echo x > made.txt; cat"})
	require.Equal(c.t, hooks.Allow, a.Verdict)
	read, write, err := os.Pipe()
	require.NoError(c.t, err)
	c.stdin = read
	return func() { require.NoError(c.t, write.Close()) }, c.starts(a.Input)
}

// background counts the calls that recorded what changed in the background.
func (d *project) background() (n int) {
	d.t.Helper()
	for _, txn := range d.txns() {
		t, err := d.rt.Load(d.t.Context(), txn)
		require.NoError(d.t, err)
		for _, c := range t.Calls {
			if c.Tool.Name == "client_background" {
				n++
			}
		}
	}
	return n
}

// Codex ends a prompt while a command of it runs, and reports no end of the
// command. The end of the prompt does not wait for the command.
func TestPromptEndsBeforeItsCommand(t *testing.T) {
	d := newProject(t, true, "")
	was := d.tree()
	c := d.coder("codex", "s1")
	c.says("start the server")
	release, wait := c.holding()
	c.stops()
	first := d.last()
	c.says("next")
	require.Equal(t, hooks.Answer{}, c.edits("apply_patch", "a.txt", "x").after)
	c.stops()
	d.undo(d.last())
	require.NoFileExists(t, filepath.Join(d.dir, "made.txt"))
	release()
	_, code := wait()
	require.Zero(t, code)
	require.FileExists(t, filepath.Join(d.dir, "made.txt"))
	require.NoError(t, d.srv.Close(t.Context()), "waits for the commit")
	require.True(t, d.undo(first).Complete())
	d.same(was)
}

// A client that was killed leaves its command in the sandbox without a user.
func TestSessionEndsBeforeItsCommand(t *testing.T) {
	for name, end := range map[string]func(c *coder){
		"killed": func(c *coder) { require.NoError(c.t, c.srv.End(c.t.Context(), "codex", "s1")) },
		"ended":  func(c *coder) { c.event("SessionEnd", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newProject(t, true, "")
			was := d.tree()
			c := d.coder("codex", "s1")
			c.says("start the server")
			release, wait := c.holding()
			end(c)
			_, code := wait()
			require.NotZero(t, code)
			release()
			d.same(was)
			require.NoError(t, d.srv.Close(t.Context()), "waits for the commit")
			txn, err := d.rt.Load(t.Context(), d.last())
			require.NoError(t, err)
			require.Equal(t, revert.TxnCommitted, txn.State())
		})
	}
}

// A session that ends while the process of a command comes either takes the command or refuses it. It never leaves the process
// waiting for an exit code.
func TestSessionEndsWhileItsCommandBegins(t *testing.T) {
	d := newProject(t, true, "")
	for n := range 20 {
		c := d.coder("codex", fmt.Sprint("s", n))
		c.says("start the server")
		_, a := c.asks("Bash", map[string]any{"command": "true"})
		require.Equal(t, hooks.Allow, a.Verdict)
		ended := make(chan error)
		go func() { ended <- d.srv.End(t.Context(), "codex", c.session) }()
		null, err := os.Open(os.DevNull)
		require.NoError(t, err)
		exit := make(chan hooks.Exit, 1)
		if d.srv.Attach(token(t, a.Input), &hooks.Command{Dir: c.dir, Stdin: null, Stdout: os.Stderr, Stderr: os.Stderr, Gone: make(chan struct{}), Exit: exit}) == nil {
			<-exit
		}
		require.NoError(t, <-ended)
		require.NoError(t, null.Close())
	}
}

// What an observed command does after the prompt of which it is left is found
// when the session ends.
func TestPromptEndsBeforeItsObservedCommand(t *testing.T) {
	d := newProject(t, false, allowAll)
	was := d.tree()
	c := d.coder("codex", "s1")
	c.says("start the server")
	c.asks("Bash", map[string]any{"command": "make serve"})
	d.write("log", "started\n")
	c.stops()
	d.write("late", "x\n")
	c.event("SessionEnd", nil)
	for _, txn := range d.txns() {
		d.undo(txn)
	}
	d.same(was)
}

// An observed command that took too long goes on in the background.
func TestObservedCommandThatRunsOn(t *testing.T) {
	d := newProject(t, false, allowAll)
	was := d.tree()
	c := d.coder("claude-code", "s1")
	c.says("go")
	in := map[string]any{"command": "make serve"}
	id, _ := c.asks("Bash", in)
	require.Equal(t, hooks.Answer{}, c.reports("Bash", id, in, map[string]any{"backgroundTaskId": "b1"}))
	d.write("late", "x\n")
	c.event("Stop", map[string]any{"background_tasks": []any{map[string]any{"id": "b1"}}})
	d.undo(d.last())
	d.same(was)
}

// A command in the background that does not run leaves nothing to look for.
func TestRefusedBackgroundCommand(t *testing.T) {
	d := newProject(t, false, "package remit\n\ndeny contains \"no\" if input.tool.name == \"client_shell_observed\"\n")
	c := d.coder("claude-code", "s1")
	c.says("go")
	_, a := c.asks("Bash", map[string]any{"command": "make serve", "run_in_background": true})
	require.Equal(t, hooks.Deny, a.Verdict)
	c.edits("Write", "a.txt", "x")
	c.stops()
	require.Zero(t, d.background())
}

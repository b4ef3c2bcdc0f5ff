package hooks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/hooks"
)

// allowAll is a policy of its own, without the pack.
const allowAll = "package remit\n\nallow contains \"all\"\n"

// TestSubAgents: a second agent of the session writes and runs while an observed command of the first one is at work. No use waits for the
// other, and the revert of the prompt is whole.
func TestSubAgents(t *testing.T) {
	d := newProject(t, false, allowAll)
	d.write("a.txt", "one\n")
	was := d.tree()
	c := d.coder("claude-code", "s1")
	c.says("do two things")
	in := map[string]any{"command": "make"}
	first, a := c.asks("Bash", in)
	require.NotEqual(t, hooks.Deny, a.Verdict)
	d.write("made.txt", "by the first\n")

	c.agent = "helper"
	require.Equal(t, hooks.Answer{}, c.edits("Write", "a.txt", "two\n").after)
	require.Equal(t, hooks.Answer{}, c.runs("echo three >> a.txt; mkdir d; echo x > d/x").after)
	c.agent = ""
	d.write("made.txt", "again by the first\n")
	require.Equal(t, hooks.Answer{}, c.reports("Bash", first, in, map[string]any{"stdout": ""}))
	c.stops()
	d.undo(d.last())
	d.same(was)
}

// TestBackgroundObserved: what an observed command does after the client reported its start is found at the next event.
func TestBackgroundObserved(t *testing.T) {
	d := newProject(t, false, allowAll)
	was := d.tree()
	c := d.coder("claude-code", "s1")
	c.says("start the server")
	in := map[string]any{"command": "make serve", "run_in_background": true}
	id, _ := c.asks("Bash", in)
	d.write("log", "started\n")
	c.reports("Bash", id, in, map[string]any{"backgroundTaskId": "b1"})
	d.write("log", "started\nrequest\n")
	c.edits("Write", "a.txt", "x")
	d.write("cache", "1\n")
	_, a := c.event("Stop", map[string]any{"background_tasks": []any{map[string]any{"id": "b1"}}})
	require.Equal(t, hooks.Answer{}, a)
	first := d.last()
	c.says("next")
	d.write("cache", "2\n")
	c.edits("Write", "b.txt", "x")
	_, a = c.event("Stop", map[string]any{"background_tasks": []any{}})
	require.Equal(t, hooks.Answer{}, a)
	second := d.last()
	require.NotEqual(t, first, second)
	d.undo(second)
	content, err := os.ReadFile(filepath.Join(d.dir, "cache"))
	require.NoError(t, err)
	require.Equal(t, "1\n", string(content))
	d.undo(first)
	d.same(was)

	c.says("quiet")
	d.write("mine.txt", "of the person\n")
	c.edits("Write", "c.txt", "x")
	c.stops()
	d.undo(d.last())
	require.FileExists(t, filepath.Join(d.dir, "mine.txt"), "nothing runs in the background any more")
}

// TestBackgroundSandboxed: a sandboxed command in the background has a transaction of its own. It ends with its process, or with the
// session, which drops its changes.
func TestBackgroundSandboxed(t *testing.T) {
	d := newProject(t, true, allowAll)
	was := d.tree()
	c := d.coder("claude-code", "s1")
	c.says("go")
	in := map[string]any{"command": "echo x > made.txt; read line; echo y >> made.txt", "run_in_background": true}
	id, a := c.asks("Bash", in)
	require.Equal(t, hooks.Allow, a.Verdict)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	c.stdin = read
	wait := c.starts(a.Input)
	require.Equal(t, hooks.Answer{}, c.reports("Bash", id, in, map[string]any{"backgroundTaskId": "b1"}))
	require.Equal(t, hooks.Answer{}, c.edits("Write", "a.txt", "x").after)
	c.stops()
	require.NoFileExists(t, filepath.Join(d.dir, "made.txt"), "it still runs")
	_, err = write.WriteString("go\n")
	require.NoError(t, err)
	require.NoError(t, write.Close())
	_, code := wait()
	require.Zero(t, code)
	require.FileExists(t, filepath.Join(d.dir, "made.txt"))
	for _, txn := range d.txns() {
		require.True(t, d.undo(txn).Complete())
	}
	d.same(was)

	c.says("again")
	hang, hold, err := os.Pipe()
	require.NoError(t, err)
	c.stdin = hang
	_, a = c.asks("Bash", in)
	wait = c.starts(a.Input)
	require.NoError(t, d.srv.End(t.Context(), "claude-code", "s1"))
	_, code = wait()
	require.NotZero(t, code)
	require.NoError(t, hold.Close())
	d.same(was)
}

// TestSettle: a person who interrupted the client reverts its prompt at once.
func TestSettle(t *testing.T) {
	d := newProject(t, false, allowAll)
	was := d.tree()
	c := d.coder("claude-code", "s1")
	c.says("go")
	in := map[string]any{"command": "make"}
	id, _ := c.asks("Bash", in)
	d.write("made.txt", "x")
	require.NoError(t, d.srv.Settle(t.Context(), d.dir))
	d.undo(d.last())
	d.same(was)
	require.Equal(t, hooks.Answer{}, c.reports("Bash", id, in, nil), "the call has ended")
	require.Equal(t, hooks.Answer{}, c.edits("Write", "a.txt", "x").after)
	c.stops()
	require.Len(t, d.txns(), 3, "of the prompt, of its revert, and of the rest of the prompt")
}

// TestParallelUses: a client that gives no IDs runs two uses of one tool at once, and reports them in any order.
func TestParallelUses(t *testing.T) {
	d := newProject(t, true, "")
	was := d.tree()
	c := d.coder("gemini-cli", "s1")
	c.event("BeforeAgent", map[string]any{"prompt": "two at once"})
	var ins []map[string]any
	var wait []func() (string, int)
	for _, command := range []string{"echo a > a.txt", "echo b > b.txt; exit 4"} {
		in := map[string]any{"command": command}
		_, a := c.event("BeforeTool", map[string]any{"tool_name": "run_shell_command", "tool_input": in})
		require.Equal(t, hooks.Allow, a.Verdict)
		ins, wait = append(ins, in), append(wait, c.starts(a.Input))
	}
	for i := range wait {
		_, code := wait[i]()
		require.Equal(t, i*4, code)
	}
	for _, i := range []int{1, 0} {
		_, a := c.event("AfterTool", map[string]any{"tool_name": "run_shell_command", "tool_input": ins[i], "tool_response": map[string]any{"llmContent": "done"}})
		require.Equal(t, hooks.Answer{}, a)
	}
	require.FileExists(t, filepath.Join(d.dir, "a.txt"))
	c.event("AfterAgent", nil)
	require.True(t, d.undo(d.last()).Complete())
	d.same(was)
}

// TestCommandThatRunsOn: a client that waited long enough lets a command go on in the background. Its prompt ends, and commits once the
// command has ended.
func TestCommandThatRunsOn(t *testing.T) {
	d := newProject(t, true, "")
	was := d.tree()
	c := d.coder("claude-code", "s1")
	c.says("go")
	in := map[string]any{"command": "echo x > made.txt; read line"}
	id, a := c.asks("Bash", in)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	c.stdin = read
	wait := c.starts(a.Input)
	require.Error(t, d.srv.Attach(token(t, a.Input), &hooks.Command{}), "a token counts once, also while its command runs")
	require.Equal(t, hooks.Answer{}, c.reports("Bash", id, in, map[string]any{"backgroundTaskId": "b1"}))
	c.stops()
	first := d.last()
	c.says("again")
	require.Equal(t, hooks.Answer{}, c.edits("Write", "a.txt", "x").after)
	c.stops()
	require.NoError(t, write.Close())
	wait()
	require.FileExists(t, filepath.Join(d.dir, "made.txt"))
	require.Eventually(t, func() bool {
		txn, err := d.rt.Load(t.Context(), first)
		return err == nil && txn.End != ""
	}, time.Minute, time.Millisecond)
	d.undo(d.last())
	d.undo(first)
	d.same(was)
}

// TestNotices: Claude Code reports the end of background work as a prompt, with the ID of the one that it works on.
func TestNotices(t *testing.T) {
	d := newProject(t, true, "")
	c := d.coder("claude-code", "s1")
	c.says("go")
	c.edits("Write", "a.txt", "x")
	c.event("UserPromptSubmit", map[string]any{"prompt": "<task-notification>done</task-notification>"})
	c.edits("Write", "b.txt", "x")
	c.stops()
	require.Len(t, d.txns(), 1)
}

// TestParallelReports: reports without IDs reach the use with the same input.
func TestParallelReports(t *testing.T) {
	d := newProject(t, false, allowAll)
	c := d.coder("gemini-cli", "s1")
	c.event("BeforeAgent", map[string]any{"prompt": "two at once"})
	use := func(n string) map[string]any {
		return map[string]any{"tool_name": "run_shell_command", "tool_input": map[string]any{"command": n}, "tool_response": "output of " + n}
	}
	c.event("BeforeTool", use("one"))
	c.event("BeforeTool", use("two"))
	c.event("AfterTool", use("two"))
	c.event("AfterTool", use("one"))
	c.event("AfterAgent", nil)
	txn, err := d.rt.Load(t.Context(), d.last())
	require.NoError(t, err)
	require.Len(t, txn.Calls, 2)
	for _, call := range txn.Calls {
		require.Contains(t, string(call.Done.Output), "output of ")
		for _, n := range []string{"one", "two"} {
			require.Equal(t, strings.Contains(string(call.Started.Input), `"`+n+`"`), strings.Contains(string(call.Done.Output), "output of "+n))
		}
	}
}

package hooks_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/revert"
)

// appends uses a tool of an MCP server, which adds a line to a file.
func (c *coder) appends(name, line string) did {
	c.t.Helper()
	in := map[string]any{"line": line}
	id, a := c.asks("mcp__x__y", in)
	one := did{before: a, id: id}
	was, err := os.ReadFile(filepath.Join(c.dir, name))
	require.NoError(c.t, err)
	c.write(name, string(was)+line)
	one.after = c.reports("mcp__x__y", id, in, map[string]any{})
	return one
}

// asked checks that the client asked about a use, and that its end was recorded.
func asked(t *testing.T, one did) {
	t.Helper()
	require.Equal(t, hooks.Ask, one.before.Verdict, one.before.Reason)
	require.Equal(t, hooks.Answer{}, one.after)
}

// committed checks that no transaction is open.
func (d *project) committed() {
	d.t.Helper()
	for _, id := range d.txns() {
		txn, err := d.rt.Load(d.t.Context(), id)
		require.NoError(d.t, err)
		require.Equal(d.t, revert.TxnCommitted, txn.State(), id)
	}
}

// undoAll reverts all transactions, the newest first.
func (d *project) undoAll() (all []revert.Report) {
	d.t.Helper()
	ids := d.txns()
	slices.Reverse(ids)
	for _, id := range ids {
		all = append(all, d.undo(id))
	}
	return all
}

// After a yes at the client's own prompt, a call belongs to its prompt: it
// commits with it, holds no file after it, and is undone in order with the calls
// about which nobody was asked.
func TestAgreedCallsCommitWithTheirPrompt(t *testing.T) {
	for name, end := range map[string]func(c *coder){
		"stop":        func(c *coder) { c.stops() },
		"next prompt": func(c *coder) { c.says("next") },
		"session end": func(c *coder) { c.event("SessionEnd", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newProject(t, false, "")
			d.write("main.go", "package main\n")
			d.write(".mcp.json", "{}\n")
			was := d.tree()
			c := d.coder("claude-code", "s")
			c.mode = "default"
			c.says("work")
			require.Equal(t, hooks.Allow, c.edits("Write", "main.go", "package one\n").before.Verdict)
			asked(t, c.runs("echo '// shell' >> main.go; echo x > made.txt"))
			require.Equal(t, hooks.Answer{}, c.edits("Write", "main.go", "package two\n").after)
			asked(t, c.appends("main.go", "// tool\n"))
			asked(t, c.edits("Write", ".mcp.json", "{1}\n"))
			asked(t, c.edits("Write", ".mcp.json", "{2}\n"))
			require.Equal(t, hooks.Answer{}, c.edits("Write", "main.go", "package three\n").after)
			end(c)
			d.committed()

			other := d.coder("claude-code", "other")
			other.says("edit the same files")
			require.Equal(t, hooks.Answer{}, other.edits("Write", "main.go", "package other\n").after)
			asked(t, other.edits("Write", ".mcp.json", "{3}\n"))
			other.stops()
			d.committed()
			d.undoAll()
			d.same(was)
		})
	}
}

// A person who declines leaves no call that holds a file.
func TestDeclinedCallsEnd(t *testing.T) {
	d := newProject(t, false, "")
	d.write(".mcp.json", "{}\n")
	was := d.tree()
	c := d.coder("claude-code", "s")
	c.mode = "default"
	c.says("work")
	for range 2 {
		for tool, in := range map[string]map[string]any{
			"Bash":  {"command": "echo x > made.txt"},
			"Write": {"file_path": filepath.Join(d.dir, ".mcp.json"), "content": "{1}\n"},
		} {
			_, a := c.asks(tool, in)
			require.Equal(t, hooks.Ask, a.Verdict, a.Reason)
		}
	}
	asked(t, c.edits("Write", ".mcp.json", "{1}\n"))
	_, a := c.asks("mcp__x__y", map[string]any{"q": 2})
	require.Equal(t, hooks.Ask, a.Verdict)
	c.stops()
	d.committed()
	c.says("next")
	asked(t, c.edits("Write", ".mcp.json", "{2}\n"))
	c.stops()
	d.committed()
	d.undoAll()
	d.same(was)
}

// A command about which the client asked can also ask about what it changed.
// That waits alone, also after its prompt, for a person who looks at it.
func TestAgreedCommandAsksAboutItsChanges(t *testing.T) {
	const command = "test -e curl && curl -s https://example.org/; echo {} > .mcp.json"
	d := newProject(t, true, "")
	c := d.coder("claude-code", "s")
	c.mode = "default"
	c.says("work")
	one := c.runs(command)
	require.Equal(t, hooks.Ask, one.before.Verdict, one.before.Reason)
	require.Equal(t, 126, one.code, one.out)
	c.stops()
	require.NoError(t, d.rt.Answer(t.Context(), answered(t, d, callID.FindString(one.out))))
	c.says("it is approved")
	one = c.runs(command)
	require.Zero(t, one.code, one.out+one.before.Reason)
	require.FileExists(t, filepath.Join(d.dir, ".mcp.json"))
	c.stops()
	d.committed()
}

// What a command in the background changes after its start is recorded at the
// next event, under the rules of the pack, and is undone.
func TestBackgroundChangesUnderThePack(t *testing.T) {
	d := newProject(t, true, "")
	was := d.tree()
	c := d.coder("claude-code", "s")
	c.mode = "default"
	c.says("start the server")
	in := map[string]any{"command": "make serve", "run_in_background": true}
	id, a := c.asks("Bash", in)
	require.Equal(t, hooks.Ask, a.Verdict, a.Reason)
	d.write("log", "started\n")
	c.reports("Bash", id, in, map[string]any{"backgroundTaskId": "b1"})
	d.write("log", "started\nserved\n")
	d.write("late.txt", "x\n")
	c.edits("Write", "a.txt", "x")
	require.Equal(t, 1, d.background())
	d.write("later.txt", "x\n")
	c.event("Stop", map[string]any{"background_tasks": []any{map[string]any{"id": "b1"}}})
	require.Equal(t, 2, d.background())
	d.committed()
	d.undoAll()
	d.same(was)
}

// The reason of a person who rejects a waiting call reaches the agent when it
// repeats the call.
func TestReasonOfARejectionReachesTheAgent(t *testing.T) {
	for name, restart := range map[string]bool{"same process": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			d := newProject(t, true, "")
			c := d.unasked("s")
			c.says("write")
			no := approve(c.asksForFile("{}"))
			no.Approved, no.Why = false, "use the other file"
			require.NoError(t, d.rt.Answer(t.Context(), no))
			if restart {
				d.restarts()
			}
			one := c.edits("Write", ".mcp.json", "{}")
			require.Equal(t, hooks.Deny, one.before.Verdict)
			require.Contains(t, one.before.Reason, "use the other file")
			require.NotContains(t, one.before.Reason, ".rego")
			c.stops()
		})
	}
}

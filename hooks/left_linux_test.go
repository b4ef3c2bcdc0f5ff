package hooks_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/hooks"
)

// The model must know that a process which it started in the background ended
// with its command.
func TestProcessesEndWithTheirCommand(t *testing.T) {
	d := newProject(t, true, "")
	c := d.coder("claude-code", "s")
	c.says("serve")
	for command, told := range map[string]bool{
		"nohup sleep 600 >log 2>&1 &": true, "(sleep 600 &)": true, "sleep 600 & echo started": true,
		"sleep 0 & wait": false, "true && echo a 2>&1": false, "echo a &> log": false,
		`bash -c "$(printf 'sleep 600 \x26')"`: false, // nothing in the text says so
	} {
		one := c.runs(command)
		require.Zero(t, one.code, command)
		if told {
			require.Contains(t, one.out, "were ended with it", command)
		} else {
			require.NotContains(t, one.out, "ended", command)
		}
	}
	c.stops()
}

// In acceptEdits, Claude Code lets edits of its folder pass, and some commands
// with them. The person answers about everything else.
func TestAskWhileEditsAreAccepted(t *testing.T) {
	for _, test := range []struct {
		tool    string
		in      map[string]any
		verdict hooks.Verdict
	}{
		{"Edit", map[string]any{"file_path": ".mcp.json", "old_string": "a", "new_string": "b"}, hooks.Deny},
		{"Bash", map[string]any{"command": "docker stop web"}, hooks.Ask},
		{"Bash", map[string]any{"command": "docker stop web && rm -r data"}, hooks.Deny},
		{"mcp__tracker__close", map[string]any{"issue": 1}, hooks.Ask},
		{"WebFetch", map[string]any{"url": "https://example.com/a"}, hooks.Ask},
	} {
		d := newProject(t, true, "")
		d.write(".mcp.json", "a")
		c := d.coder("claude-code", "s")
		c.mode = "acceptEdits"
		c.says("work")
		if name, ok := test.in["file_path"].(string); ok {
			test.in["file_path"] = filepath.Join(d.dir, name)
		}
		_, a := c.asks(test.tool, test.in)
		require.Equal(t, test.verdict, a.Verdict, "%v: %s", test, a.Reason)
		c.stops()
	}
}

// A client reports no end of a use that the person declined. Claude Code runs an
// edit alone, so what was open before it is over.
func TestEditAfterADeclinedTool(t *testing.T) {
	d := newProject(t, true, "")
	c := d.coder("claude-code", "s")
	c.says("work")
	_, a := c.asks("mcp__tracker__close", map[string]any{"issue": 1})
	require.Equal(t, hooks.Ask, a.Verdict)
	declined := d.lastCall()
	one := c.edits("Write", "a.txt", "a\n")
	require.Equal(t, hooks.Allow, one.before.Verdict, one.before.Reason)
	require.Equal(t, hooks.Answer{}, one.after)
	require.Equal(t, "done", string(d.phase(declined)))
	c.stops()
	require.True(t, d.undo(d.last()).Complete())
	require.NoFileExists(t, filepath.Join(d.dir, "a.txt"))
}

// A command can delete a tree with a pipe, which no revert could make again: the
// pipe stays, and the model knows.
func TestDeletedPipeStays(t *testing.T) {
	d := newProject(t, true, "")
	require.NoError(t, os.Mkdir(filepath.Join(d.dir, "run"), 0o755))
	pipe := filepath.Join(d.dir, "run/pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o644))
	for _, name := range []string{"run/a.txt", "run/d/b.txt"} {
		d.write(name, "a\n")
	}
	was := d.tree()
	c := d.coder("codex", "s")
	c.says("clean")
	for _, command := range []string{"rm -rf run", "rm run/pipe", "rm -rf run && mkdir run", "rm run/pipe && mkfifo run/other"} {
		one := c.runs(command)
		require.Zero(t, one.code, one.out)
		require.Contains(t, one.out, "not applied: workspace/run/pipe", command)
	}
	require.FileExists(t, pipe)
	require.NoFileExists(t, filepath.Join(d.dir, "run/a.txt"))
	require.NoDirExists(t, filepath.Join(d.dir, "run/d"))
	one := c.runs("rm -rf run && echo a > run")
	require.Equal(t, 125, one.code)
	require.Contains(t, one.out, "could not be made again")
	c.stops()
	require.True(t, d.undo(d.last()).Complete())
	d.same(was)
}

//go:build unix

package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestUndoOfPrompts undoes prompts of a coding agent by number, by ID and by
// file, redoes them, and lists them. A prompt that a living process follows is
// left alone.
func TestUndoOfPrompts(t *testing.T) {
	ctx := t.Context()
	workspace, state := testPlace(t)
	j, err := sqlite.Open(ctx, state)
	require.NoError(t, err)
	rt, err := agent.New(agent.Journal(j), agent.Log(slog.New(slog.DiscardHandler)), agent.Tools(builtin.Files()...), agent.Root("workspace", workspace))
	require.NoError(t, err)
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	require.NoError(t, err)
	prompt := func(id, text string, files ...string) *agent.Txn {
		tx, err := s.Begin(ctx, agent.ForPrompt(agent.Prompt{Client: "claude-code", ID: id, Text: text}))
		require.NoError(t, err)
		for _, f := range files {
			_, err := tx.Invoke(ctx, "file_write", tool.Args{"path": f, "content": id})
			require.NoError(t, err)
		}
		return tx
	}
	require.NoError(t, prompt("aa-1", "make two files", "a", "b").Commit(ctx))
	require.NoError(t, prompt("ab-2", "change one", "b", "c").Commit(ctx))
	require.NoError(t, prompt("bb-3", "and more", "d", "e", "f", "g").Commit(ctx))
	open := prompt("zz-4", "still at it", "z")
	code := 0
	says := func(args ...string) string {
		t.Helper()
		got, out := command(t, append(args, "--workspace", workspace, "--state", state)...)
		require.Equal(t, code, int(got), out)
		return out
	}
	files := func() (all string) {
		entries, err := os.ReadDir(workspace)
		require.NoError(t, err)
		for _, e := range entries {
			content, err := os.ReadFile(filepath.Join(workspace, e.Name()))
			require.NoError(t, err)
			all += e.Name() + "=" + string(content) + " "
		}
		return all
	}
	whole := "a=aa-1 b=ab-2 c=ab-2 d=bb-3 e=bb-3 f=bb-3 g=bb-3 z=zz-4 "
	require.Equal(t, whole, files())

	listed := says("log")
	require.Contains(t, listed, "  prompt bb-3 of claude-code: and more\n  4 calls, 4 changed files: d, e, f and 1 more\n")
	require.NotContains(t, listed, "file_write")
	require.Contains(t, says("log", "ab"), "file_write")
	require.Contains(t, says("log", "--calls"), "file_write")
	require.Contains(t, says("log", "--json", "aa-1"), `"prompt":{"client":"claude-code","id":"aa-1","text":"make two files","state":"committed","calls":2,"files":["file://workspace/a","file://workspace/b"]}`)
	require.Contains(t, says("diff", "bb"), "+bb-3")
	require.Contains(t, says("show", "bb-3"), "file_write")

	require.Contains(t, says("undo", "--file", "b"), "prompt ab-2 of claude-code: change one\n")
	require.Equal(t, "a=aa-1 b=aa-1 c=ab-2 d=bb-3 e=bb-3 f=bb-3 g=bb-3 z=zz-4 ", files())
	require.Contains(t, says("log"), "2 calls, 2 changed files: b, c; partly reverted\n")
	says("redo")
	require.Equal(t, whole, files())
	says("undo", "bb-3", "--file", "e", "--file", filepath.Join(workspace, "f"))
	require.Equal(t, "a=aa-1 b=ab-2 c=ab-2 d=bb-3 g=bb-3 z=zz-4 ", files())
	out := says("undo", "-n", "2")
	require.Contains(t, out, "prompt bb-3 of claude-code: and more\n")
	require.Contains(t, out, "skipped: call")
	require.Equal(t, "a=aa-1 b=aa-1 z=zz-4 ", files())
	says("redo", "ab-2")
	require.Equal(t, "a=aa-1 b=ab-2 c=ab-2 z=zz-4 ", files())

	code = 6
	require.Contains(t, says("undo", "aa", "--file", "b"), "changed it later")
	code = 2
	says("undo", "zzz")
	says("undo", "a")
	says("undo", "--file", "../x")
	says("undo", "--file", "nothing")
	says("undo", "-n", "2", "aa-1")
	code = 0
	says("undo")
	require.Equal(t, "a=aa-1 b=aa-1 z=zz-4 ", files())
	says("revert")
	require.Equal(t, "z=zz-4 ", files())
	require.Contains(t, says("undo"), "there is nothing to revert")
	require.NoError(t, open.Commit(ctx))
	require.NoError(t, rt.Close())
	require.NoError(t, j.Close())
	says("undo")
	require.Empty(t, files())
}

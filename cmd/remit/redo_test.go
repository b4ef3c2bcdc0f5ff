//go:build unix

package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestRedoOfTheNewestUndo: one redo takes back the newest undo as a whole, also
// of a prompt with several transactions and of several prompts. What it cannot
// redo is the next redo's again, before an older undo.
func TestRedoOfTheNewestUndo(t *testing.T) {
	ctx := t.Context()
	workspace, state := testPlace(t)
	j, err := sqlite.Open(ctx, state)
	require.NoError(t, err)
	rt, err := agent.New(agent.Journal(j), agent.Log(slog.New(slog.DiscardHandler)), agent.Tools(builtin.Files()...), agent.Root("workspace", workspace))
	require.NoError(t, err)
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	require.NoError(t, err)
	for _, file := range []string{"1.x", "2.a", "2.b", "2.c"} { // each call has a transaction of its own
		tx, err := s.Begin(ctx, agent.ForPrompt(agent.Prompt{Client: "claude-code", ID: "prompt-" + file[:1]}))
		require.NoError(t, err)
		_, err = tx.Invoke(ctx, "file_write", tool.Args{"path": file, "content": file})
		require.NoError(t, err)
		require.NoError(t, tx.Commit(ctx))
	}
	require.NoError(t, rt.Close())
	require.NoError(t, j.Close())
	says := func(code int, args ...string) string {
		t.Helper()
		got, out := command(t, append(args, "--workspace", workspace, "--state", state)...)
		require.Equal(t, code, int(got), out)
		return out
	}
	files := func() string {
		entries, err := os.ReadDir(workspace)
		require.NoError(t, err)
		var all []string
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return strings.Join(all, " ")
	}
	whole := "1.x 2.a 2.b 2.c"

	out := says(0, "undo")
	require.Equal(t, "1.x", files())
	require.Equal(t, 1, strings.Count(out, "redo these changes: remit redo --state"), out)
	out = says(0, "redo")
	require.Equal(t, whole, files())
	require.Less(t, strings.Index(out, "2.a"), strings.Index(out, "2.c"), "the transaction that was reverted last comes first")
	require.Contains(t, says(0, "redo"), "there is nothing to redo")

	require.Equal(t, 1, strings.Count(says(0, "undo", "-n", "2"), "redo these changes"))
	require.Empty(t, files())
	says(0, "redo")
	require.Equal(t, whole, files())

	says(0, "undo", "prompt-1") // two undos
	says(0, "undo")
	require.Empty(t, files())
	mine := filepath.Join(workspace, "2.b")
	require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o600))
	require.Contains(t, says(6, "redo"), "conflict  2.b")
	require.Equal(t, "2.a 2.b 2.c", files())
	require.Contains(t, says(6, "redo"), "conflict  2.b")
	require.Equal(t, "2.a 2.b 2.c", files(), "the older undo stays")
	require.NoError(t, os.Remove(mine))
	says(0, "redo")
	require.Equal(t, "2.a 2.b 2.c", files())
	says(0, "redo")
	require.Equal(t, whole, files())
}

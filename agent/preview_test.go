package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// TestUndoByHand goes through what a program can ask of a session: a call alone
// with what lies on it, shown before it is done; force in the name of a person; and
// that force reverted, with the foreign bytes exactly as they were.
func TestUndoByHand(t *testing.T) {
	ctx := context.Background()
	dir := workspace(t)
	rt := filesOn(t, dir)
	s, other := newSession(t, rt), newSession(t, rt)
	tx := begin(t, s)
	first := invoke(t, tx, "file_write", tool.Args{"path": "a.txt", "content": "one"})
	invoke(t, tx, "file_write", tool.Args{"path": "b.txt", "content": "kept"})
	second := invoke(t, tx, "file_edit", tool.Args{"path": "a.txt", "old": "one", "new": "two"})
	require.NoError(t, tx.Commit(ctx))

	before := tree(t, dir)
	foreseen, err := s.Preview(ctx, first.Call, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, []revert.Dependent{{Txn: tx.ID(), Call: second.Call, Tool: "file_edit", Included: true}}, foreseen.Dependents)
	require.Equal(t, before, tree(t, dir), "nothing was touched")
	_, err = other.Preview(ctx, first.Call, revert.Options{})
	require.ErrorIs(t, err, journal.ErrNotFound)

	theirs := filepath.Join(dir, "a.txt")
	require.NoError(t, os.WriteFile(theirs, []byte("theirs\x00\xff"), 0o600))
	foreign := tree(t, dir)
	_, err = s.Revert(ctx, first.Call, revert.Options{})
	require.Error(t, err)
	require.Equal(t, foreign, tree(t, dir))
	rep, err := s.Revert(ctx, first.Call, revert.Options{Force: true, By: "kim"})
	require.NoError(t, err)
	require.Equal(t, "alpha", content(t, dir, "a.txt"))
	require.Equal(t, "kept", content(t, dir, "b.txt"))
	txn, err := revert.Load(ctx, rt.Journal(), tx.ID())
	require.NoError(t, err)
	c, _ := txn.Call(first.Call)
	require.Equal(t, "kim", c.Reversal.Reverting.By)

	back, err := rt.Redo(ctx, rep.RevertTxn, "kim")
	require.NoError(t, err, "%+v", back)
	require.Equal(t, foreign, tree(t, dir), "exactly what they had left")
	_, err = s.Revert(ctx, first.Call, revert.Options{Force: true, By: "kim"})
	require.NoError(t, err)
	_, err = s.Revert(ctx, tx.ID(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, "beta", content(t, dir, "b.txt"))
}

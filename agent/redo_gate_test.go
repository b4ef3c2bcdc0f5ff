package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// TestRedoOfWhatNeverCommitted: a session cannot redo a transaction about whose commit nothing decided.
func TestRedoOfWhatNeverCommitted(t *testing.T) {
	rt, dir := gatedRuntime(t, oneLook)
	s := newSession(t, rt)
	tx := begin(t, s)
	saves(t, tx, "a", "bad\n")
	_, err := tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	_, err = s.Redo(t.Context(), tx.ID())
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Equal(t, "one\n", contentOf(t, dir, "a"))

	tx = begin(t, s) // one that was approved, committed and reverted
	saves(t, tx, "a", "good\n")
	approveCommit(t, rt, commitWaits(t, tx))
	require.NoError(t, tx.Commit(t.Context()))
	_, err = s.Revert(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err)
	_, err = s.Redo(t.Context(), tx.ID())
	require.NoError(t, err)
	require.Equal(t, "good\n", contentOf(t, dir, "a"))

	rt, dir = gatedRuntime(t, "package remit\n\nallow contains \"all\" if true\n") // nothing decides commits
	s = newSession(t, rt)
	tx = begin(t, s)
	saves(t, tx, "a", "new\n")
	_, err = tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	_, err = s.Redo(t.Context(), tx.ID())
	require.NoError(t, err)
	require.Equal(t, "new\n", contentOf(t, dir, "a"))
}

// TestApprovalOfOtherReasons: an answer to a request does not count for a reason that the person did not see.
func TestApprovalOfOtherReasons(t *testing.T) {
	rt, _ := gatedRuntime(t, oneLook+"\nask_commit contains \"the session read b\" if \"readb\" in input.session.labels\n\nlabel contains \"readb\" if {\n\tinput.access.action == \"read\"\n\tinput.access.resource.name == \"b\"\n}\n")
	s := newSession(t, rt)
	tx := begin(t, s)
	saves(t, tx, "a", "new\n")
	approveCommit(t, rt, commitWaits(t, tx))
	_, err := s.Call(t.Context(), "file_read", tool.Args{"path": "b"})
	require.NoError(t, err)
	gate := commitWaits(t, tx)
	require.Contains(t, gate.Why, "the session read b")
	approveCommit(t, rt, gate)
	require.NoError(t, tx.Commit(t.Context()))
}

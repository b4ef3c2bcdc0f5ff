package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestOwn: a session finds its own open transactions and calls, and no others.
func TestOwn(t *testing.T) {
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", t.TempDir()), agent.Policy(allowAll()))
	mine := newSession(t, rt)
	theirs, err := rt.Session(t.Context(), perm.Principal{ID: "somebody else"})
	require.NoError(t, err)
	tx := begin(t, mine)
	out, err := tx.Invoke(t.Context(), "file_write", tool.Args{"path": "a.txt", "content": "hi"})
	require.NoError(t, err)

	same, err := mine.ResumeTxn(t.Context(), tx.ID())
	require.NoError(t, err)
	require.Same(t, tx, same)
	_, err = theirs.ResumeTxn(t.Context(), tx.ID())
	require.ErrorIs(t, err, journal.ErrNotFound)
	_, err = mine.ResumeTxn(t.Context(), "t_none")
	require.ErrorIs(t, err, journal.ErrNotFound)

	told, err := mine.Outcome(t.Context(), out.Call)
	require.NoError(t, err)
	require.Equal(t, out.Status, told.Status)
	require.Equal(t, out.Text, told.Text)
	require.Equal(t, tx.ID(), told.Txn)
	_, err = theirs.Outcome(t.Context(), out.Call)
	require.ErrorIs(t, err, journal.ErrNotFound)
	of, err := rt.Outcome(t.Context(), out.Call) // the host's own view has all sessions
	require.NoError(t, err)
	require.Equal(t, told, of)
	_, err = rt.Outcome(t.Context(), "c_none")
	require.ErrorIs(t, err, journal.ErrNotFound)
	require.NoError(t, tx.Commit(t.Context()))
	_, err = mine.ResumeTxn(t.Context(), tx.ID())
	require.Error(t, err)
}

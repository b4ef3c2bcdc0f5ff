package revert_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
)

// summaries returns how much of each call of the transaction is reverted.
func (l *testEnv) summaries(txn string) (all []string) {
	t := l.load(txn)
	for _, c := range t.Calls {
		all = append(all, c.RevertSummary())
	}
	return append(all, string(t.State()))
}

// TestRevertOfResources reverts one resource of a transaction, redoes that, and
// reverts it and then the rest. The tool's own Revert belongs to the rest.
func TestRevertOfResources(t *testing.T) {
	l := newTestEnv(t)
	before := l.situation().Values
	txn := l.worked()
	after := l.situation().Values
	a := revert.Options{Resources: []string{"a"}}
	for _, again := range []bool{true, false} {
		seen, err := l.reverter.Preview(t.Context(), txn, a)
		require.NoError(t, err)
		require.Len(t, seen.Items, 1)
		rep, err := l.reverter.Revert(t.Context(), txn, a)
		require.NoError(t, err)
		require.True(t, rep.Complete())
		require.Len(t, rep.PerResource().Items, 1)
		require.Equal(t, before["a"], l.values.values["a"])
		require.Equal(t, after["c"], l.values.values["c"])
		require.NotContains(t, l.values.values, "b")
		require.Empty(t, l.till.given)
		require.Equal(t, []string{"some", "", "some", "committed"}, l.summaries(txn), "a whole revert still has something to do")
		if again {
			_, err = l.reverter.Redo(t.Context(), rep.RevertTxn, "kim")
			require.NoError(t, err)
			require.Equal(t, after, l.situation().Values)
			require.Equal(t, []string{"", "", "", "committed"}, l.summaries(txn))
		}
	}
	rep, err := l.reverter.Revert(t.Context(), txn, a)
	require.NoError(t, err)
	require.Empty(t, rep.Items, "nothing of it is left")
	rep, err = l.reverter.Revert(t.Context(), txn, revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Equal(t, before, l.situation().Values)
	require.Len(t, l.till.given, 1)
	require.Equal(t, []string{"all", "all", "all", "reverted"}, l.summaries(txn))
}

// TestConflictOfAResource checks that a resource that another program changed
// stays, and that the transaction then counts as partly reverted until it is
// reverted.
func TestConflictOfAResource(t *testing.T) {
	l := newTestEnv(t)
	txn := l.worked()
	ours := l.values.values["a"]
	l.values.values["a"] = "theirs"
	a := revert.Options{Resources: []string{"a"}}
	rep, err := l.reverter.Revert(t.Context(), txn, a)
	require.NoError(t, err)
	require.False(t, rep.Complete())
	require.Equal(t, revert.TxnRevertedPartial, rep.State)
	l.values.values["a"] = ours
	rep, err = l.reverter.Revert(t.Context(), txn, a)
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Equal(t, revert.TxnCommitted, rep.State)
}

// TestRevertWithWhatIsBelow checks that everything below a resource goes with it,
// that names with the same beginning do not, and that a call of another
// transaction on a resource that stays is no obstacle.
func TestRevertWithWhatIsBelow(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	l.put(rec, write{"kv://r/x", 1}, write{"kv://r/x/y", 2}, write{"kv://r/xy", 3}, write{"kv://r/z", 4})
	l.end(rec)
	later := l.txn()
	l.put(later, write{"kv://r/z", 5})
	l.end(later)
	how := revert.Options{Resources: []string{"kv://r/x"}}
	seen, err := l.reverter.Preview(t.Context(), rec.Txn(), how)
	require.NoError(t, err)
	require.Empty(t, seen.Dependents)
	rep, err := l.reverter.Revert(t.Context(), rec.Txn(), how)
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.NotContains(t, l.values.values, "kv://r/x")
	require.NotContains(t, l.values.values, "kv://r/x/y")
	require.Equal(t, "3", l.values.values["kv://r/xy"])
	require.Equal(t, "5", l.values.values["kv://r/z"])

	how = revert.Options{Resources: []string{"kv://r/z"}}
	rep, err = l.reverter.Revert(t.Context(), rec.Txn(), how)
	require.NoError(t, err)
	require.False(t, rep.Complete(), "a later call changed it")
	require.Contains(t, rep.Items[0].Why, later.Txn())
	how.Cascade = true
	rep, err = l.reverter.Revert(t.Context(), rec.Txn(), how)
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.NotContains(t, l.values.values, "kv://r/z")
	require.Equal(t, "3", l.values.values["kv://r/xy"])
}

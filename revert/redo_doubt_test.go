package revert_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
)

// TestFailedRedoWithAnEffect checks a redo step that took effect but reported a
// failure, for example because a sync failed. Its resource does not count as
// reverted. It can be reverted, and redone after that.
func TestFailedRedoWithAnEffect(t *testing.T) {
	for step := range 4 {
		l := newTestEnv(t)
		l.ids["t"] = l.worked()
		after := maps.Clone(l.values.values)
		require.NoError(t, revertRequest("t", revert.Options{})(t.Context(), l).err)
		before := maps.Clone(l.values.values)

		l.next()
		l.faults.left, l.faults.only, l.faults.how = step, "put", fault{lost: true}
		got := redo("t")(t.Context(), l)
		require.Equal(t, "put", l.faults.at)
		require.True(t, got.reportsFailure(), "%+v", got)
		require.Equal(t, revert.TxnRevertedPartial, l.load(l.ids["t"]).State(), "step %d", step)

		l.next()
		require.NoError(t, revertRequest("t", revert.Options{})(t.Context(), l).err)
		require.Equal(t, before, l.values.values, "step %d", step)
		require.Equal(t, revert.TxnReverted, l.load(l.ids["t"]).State())

		l.next()
		require.NoError(t, redo("t")(t.Context(), l).err)
		require.Equal(t, after, l.values.values, "step %d", step)
		require.NoError(t, revertRequest("t", revert.Options{})(t.Context(), l).err)
		require.Equal(t, before, l.values.values, "step %d", step)
	}
}

package revert_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
)

// TestRecoveryKeepsTheOrderOfAnUndo: a later call of the same value could not be taken
// back, and the process died at the earlier one, whose own version is there for as long
// as the later one stays. Recovery does not take it for taken back.
func TestRecoveryKeepsTheOrderOfAnUndo(t *testing.T) {
	l := newLab(t)
	was := l.shelf.values["a"]
	rec := l.txn()
	l.ids["t"] = rec.Txn()
	l.put(rec, write{"a", 7})
	l.put(rec, write{"a", was})
	l.next()
	l.faults.left, l.faults.only = 0, "plan"
	ends := 0
	l.host.OnPoint = func(id string) error {
		if strings.HasPrefix(id, "journal.append.reverted") {
			if ends++; ends > 1 {
				return errDead
			}
		}
		return nil
	}
	require.ErrorIs(t, undo("t", revert.Undoing{})(t.Context(), l).err, errDead)
	l.next()
	require.NoError(t, recovered(t.Context(), l).err)
	require.NoError(t, undo("t", revert.Undoing{})(t.Context(), l).err)
	require.Equal(t, before(), l.shelf.values)
	require.Equal(t, revert.RevertedState, l.load(l.ids["t"]).State())
}

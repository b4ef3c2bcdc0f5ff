package revert_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// TestRecoveryKeepsTheOrderOfAnUndo checks a later call of the same value that
// could not be reverted. The process died at the earlier call, whose own
// version is present only because the later call stays. Recovery does not count
// the earlier call as reverted.
func TestRecoveryKeepsTheOrderOfAnUndo(t *testing.T) {
	l := newTestEnv(t)
	was := l.values.values["a"]
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
				return errProcessEnded
			}
		}
		return nil
	}
	require.ErrorIs(t, revertRequest("t", revert.Options{})(t.Context(), l).err, errProcessEnded)
	l.next()
	require.NoError(t, recovered(t.Context(), l).err)
	require.NoError(t, revertRequest("t", revert.Options{})(t.Context(), l).err)
	require.Equal(t, before(), l.values.values)
	require.Equal(t, revert.TxnReverted, l.load(l.ids["t"]).State())
}

// TestRecoveryKeepsTheOrderAcrossTransactions checks the same for a later call
// of another transaction that is not reverted.
func TestRecoveryKeepsTheOrderAcrossTransactions(t *testing.T) {
	for name, how := range map[string]revert.Options{"alone": {}, "cascade": {Cascade: true}} {
		t.Run(name, func(t *testing.T) {
			l := newTestEnv(t)
			was := l.values.values["a"]
			first := l.txn()
			l.ids["t"] = first.Txn()
			l.put(first, write{"a", 7})
			l.end(first)
			second := l.txn()
			l.ids["u"] = second.Txn()
			l.put(second, write{"a", was})
			l.end(second)
			l.next()
			deadly := 1
			if how.Cascade { // the later one goes first, and cannot be reverted
				l.faults.left, l.faults.only, deadly = 0, "plan", 2
			}
			crashAtPoint(l, "journal.append.reverted", deadly)
			require.ErrorIs(t, revertRequest("t", how)(t.Context(), l).err, errProcessEnded)
			l.next()
			require.NoError(t, recovered(t.Context(), l).err)
			require.NoError(t, revertRequest("u", revert.Options{})(t.Context(), l).err)
			require.NoError(t, revertRequest("t", revert.Options{})(t.Context(), l).err)
			require.Equal(t, before(), l.values.values)
			require.Equal(t, revert.TxnReverted, l.load(l.ids["t"]).State())
		})
	}
}

// TestRecoveryKeepsTheOrderOfARedo checks an earlier call that could not be
// redone. The process died at the later call, whose version is present because
// neither call is redone.
func TestRecoveryKeepsTheOrderOfARedo(t *testing.T) {
	l := newTestEnv(t)
	was := l.values.values["a"]
	rec := l.txn()
	l.ids["t"] = rec.Txn()
	l.put(rec, write{"a", 7})
	l.put(rec, write{"a", was})
	l.end(rec)
	require.NoError(t, revertRequest("t", revert.Options{})(t.Context(), l).err)
	l.next()
	l.values.values["a"] = "somebody's" // another actor changes it again
	crashAtPoint(l, "journal.append.reverted", 2)
	require.ErrorIs(t, redo("t")(t.Context(), l).err, errProcessEnded)
	l.values.values["a"] = before()["a"]
	l.next()
	require.NoError(t, recovered(t.Context(), l).err)
	require.NoError(t, redo("t")(t.Context(), l).err)
	require.Equal(t, before(), l.values.values)
	require.NoError(t, revertRequest("t", revert.Options{})(t.Context(), l).err)
	require.Equal(t, before(), l.values.values)
}

// TestRedoKeepsTheOrderAcrossTransactions checks that a later transaction is
// redone only after the one that it depends on.
func TestRedoKeepsTheOrderAcrossTransactions(t *testing.T) {
	l := newTestEnv(t)
	was := l.values.values["a"]
	first := l.txn()
	l.ids["t"] = first.Txn()
	l.put(first, write{"a", 7})
	l.end(first)
	second := l.txn()
	l.ids["u"] = second.Txn()
	l.put(second, write{"a", was})
	l.end(second)
	require.NoError(t, revertRequest("u", revert.Options{})(t.Context(), l).err)
	require.NoError(t, revertRequest("t", revert.Options{})(t.Context(), l).err)
	got := redo("u")(t.Context(), l)
	require.NoError(t, got.err)
	require.Len(t, got.rep.Items, 1)
	require.Equal(t, effect.Conflict, got.rep.Items[0].Outcome)
	require.Contains(t, got.rep.Items[0].Why, "redo that call first")
	require.NoError(t, redo("t")(t.Context(), l).err)
	require.Equal(t, "7", l.values.values["a"])
	require.NoError(t, redo("u")(t.Context(), l).err)
	require.Equal(t, before(), l.values.values)
}

// TestNestKeepsTheOrder checks that a change of a call outside a nested
// transaction stays, together with the changes below it, for any versions.
func TestNestKeepsTheOrder(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	l.ids["t"] = rec.Txn()
	l.line(rec, "", &record.Nested{ID: "n_1"})
	inside := handled()
	inside.Nest = "n_1"
	l.line(rec, l.start(rec, inside, write{"a", 7}, write{"b", 8}), done())
	l.put(rec, write{"a", before()["a"]})
	got := outOfNest(t.Context(), l)
	require.NoError(t, got.err)
	require.False(t, got.rep.Complete())
	require.Equal(t, before(), l.values.values)
	for _, item := range got.rep.Items {
		if item.Resource == "a" {
			require.Equal(t, effect.Conflict, item.Outcome)
			require.Contains(t, item.Why, "not part of this revert")
		}
	}
	rep, err := l.reverter.Abort(t.Context(), rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Equal(t, before(), l.values.values)
}

// crashAtPoint kills the process when it reaches a point for the n-th time.
func crashAtPoint(l *testEnv, point string, n int) {
	l.host.OnPoint = func(id string) error {
		if n > 0 && strings.HasPrefix(id, point) {
			n--
		}
		if n == 0 {
			return errProcessEnded
		}
		return nil
	}
}

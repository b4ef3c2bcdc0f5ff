package revert_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
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
	require.ErrorIs(t, undo("t", revert.Options{})(t.Context(), l).err, errDead)
	l.next()
	require.NoError(t, recovered(t.Context(), l).err)
	require.NoError(t, undo("t", revert.Options{})(t.Context(), l).err)
	require.Equal(t, before(), l.shelf.values)
	require.Equal(t, revert.TxnReverted, l.load(l.ids["t"]).State())
}

// TestRecoveryKeepsTheOrderAcrossTransactions: the same, where the later call is one of
// another transaction that nobody takes back.
func TestRecoveryKeepsTheOrderAcrossTransactions(t *testing.T) {
	for name, how := range map[string]revert.Options{"alone": {}, "cascade": {Cascade: true}} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			was := l.shelf.values["a"]
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
			if how.Cascade { // the later one goes first, and cannot
				l.faults.left, l.faults.only, deadly = 0, "plan", 2
			}
			dieAt(l, "journal.append.reverted", deadly)
			require.ErrorIs(t, undo("t", how)(t.Context(), l).err, errDead)
			l.next()
			require.NoError(t, recovered(t.Context(), l).err)
			require.NoError(t, undo("u", revert.Options{})(t.Context(), l).err)
			require.NoError(t, undo("t", revert.Options{})(t.Context(), l).err)
			require.Equal(t, before(), l.shelf.values)
			require.Equal(t, revert.TxnReverted, l.load(l.ids["t"]).State())
		})
	}
}

// TestRecoveryKeepsTheOrderOfARedo: an earlier call could not be brought back, and the
// process died at the later one, whose version is there because neither is.
func TestRecoveryKeepsTheOrderOfARedo(t *testing.T) {
	l := newLab(t)
	was := l.shelf.values["a"]
	rec := l.txn()
	l.ids["t"] = rec.Txn()
	l.put(rec, write{"a", 7})
	l.put(rec, write{"a", was})
	l.end(rec)
	require.NoError(t, undo("t", revert.Options{})(t.Context(), l).err)
	l.next()
	l.shelf.values["a"] = "somebody's" // who changes his mind
	dieAt(l, "journal.append.reverted", 2)
	require.ErrorIs(t, redo("t")(t.Context(), l).err, errDead)
	l.shelf.values["a"] = before()["a"]
	l.next()
	require.NoError(t, recovered(t.Context(), l).err)
	require.NoError(t, redo("t")(t.Context(), l).err)
	require.Equal(t, before(), l.shelf.values)
	require.NoError(t, undo("t", revert.Options{})(t.Context(), l).err)
	require.Equal(t, before(), l.shelf.values)
}

// TestRedoKeepsTheOrderAcrossTransactions: a later transaction comes back only after the
// one that it lies on.
func TestRedoKeepsTheOrderAcrossTransactions(t *testing.T) {
	l := newLab(t)
	was := l.shelf.values["a"]
	first := l.txn()
	l.ids["t"] = first.Txn()
	l.put(first, write{"a", 7})
	l.end(first)
	second := l.txn()
	l.ids["u"] = second.Txn()
	l.put(second, write{"a", was})
	l.end(second)
	require.NoError(t, undo("u", revert.Options{})(t.Context(), l).err)
	require.NoError(t, undo("t", revert.Options{})(t.Context(), l).err)
	got := redo("u")(t.Context(), l)
	require.NoError(t, got.err)
	require.Len(t, got.rep.Items, 1)
	require.Equal(t, effect.Conflict, got.rep.Items[0].Outcome)
	require.Contains(t, got.rep.Items[0].Why, "bring that one back first")
	require.NoError(t, redo("t")(t.Context(), l).err)
	require.Equal(t, "7", l.shelf.values["a"])
	require.NoError(t, redo("u")(t.Context(), l).err)
	require.Equal(t, before(), l.shelf.values)
}

// TestNestKeepsTheOrder: what a call outside a nested transaction put on top stays, and so
// does what lies below it, whatever the versions look like.
func TestNestKeepsTheOrder(t *testing.T) {
	l := newLab(t)
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
	require.Equal(t, before(), l.shelf.values)
	for _, item := range got.rep.Items {
		if item.Resource == "a" {
			require.Equal(t, effect.Conflict, item.Outcome)
			require.Contains(t, item.Why, "outside")
		}
	}
	rep, err := l.reverter.Abort(t.Context(), rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Equal(t, before(), l.shelf.values)
}

// dieAt ends the process at the n-th time that it comes to a point.
func dieAt(l *lab, point string, n int) {
	l.host.OnPoint = func(id string) error {
		if n > 0 && strings.HasPrefix(id, point) {
			n--
		}
		if n == 0 {
			return errDead
		}
		return nil
	}
}

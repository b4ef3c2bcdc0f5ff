package revert_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// falselyEndedJournal is a journal that reports a living owner as dead. That owner writes
// once more just before the last check of it.
type falselyEndedJournal struct {
	journal.Journal
	asked int
	last  func()
}

func (m *falselyEndedJournal) Alive(context.Context, string) (bool, error) {
	if m.asked++; m.asked == 2 {
		m.last()
	}
	return false, nil
}

// TestOwnerReportedDeadWritesOnce checks that the last write of a replaced
// owner counts, and that a recovery that had read before does not repeat it.
func TestOwnerReportedDeadWritesOnce(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	call := l.start(rec, handled(), write{"a", 7})
	j := &falselyEndedJournal{Journal: l.open(), last: func() { l.line(rec, call, done()) }}
	r := &revert.Reverter{Journal: j, Host: l.reverter.Host, EnvironmentFor: l.reverter.EnvironmentFor}
	found, err := r.Recover(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Settled, "it had ended")
	require.Equal(t, []string{rec.Txn()}, found.Abandoned)
	txn, err := revert.Load(t.Context(), j, rec.Txn())
	require.NoError(t, err)
	require.Equal(t, revert.PhaseDone, txn.Calls[0].Phase)
	require.ErrorIs(t, rec.Write(t.Context(), revert.Write{Records: []revert.CallRecord{{Call: call, Body: done()}}}), journal.ErrNotOwner)
}

// TestOwnerReportedDeadByItself checks that a process that its own journal
// reports dead does not take over its own work.
func TestOwnerReportedDeadByItself(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	call := l.start(rec, handled(), write{"a", 7})
	r := &revert.Reverter{Journal: endedOwnersJournal{l.reverter.Journal}, Host: l.reverter.Host, EnvironmentFor: l.reverter.EnvironmentFor}
	found, err := r.Recover(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Abandoned)
	require.Equal(t, 1, found.Alive)
	_, err = r.Revert(t.Context(), rec.Txn(), revert.Options{})
	require.ErrorIs(t, err, revert.ErrBusy)
	l.line(rec, call, done())
	l.end(rec)
	require.Equal(t, revert.PhaseDone, l.load(rec.Txn()).Calls[0].Phase)
}

// endedOwnersJournal is a journal that reports every owner as dead.
type endedOwnersJournal struct{ journal.Journal }

func (endedOwnersJournal) Alive(context.Context, string) (bool, error) { return false, nil }

// TestRevertWaitsForRunningOperations checks that a call with a running operation is
// neither read, settled nor reverted. After the operation it is.
func TestRevertWaitsForRunningOperations(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	id := l.put(rec, write{"a", 7})
	dies := l.start(rec, handled(), write{"b", 7})
	ways, goes := l.reverter.EnvironmentFor, true
	l.reverter.EnvironmentFor = func(ctx context.Context, session string) (revert.Environment, error) {
		w, err := ways(ctx, session)
		w.WaitIdle = func(_ context.Context, call string) error {
			if goes {
				return errFault
			}
			return nil
		}
		return w, err
	}
	_, err := l.reverter.Abort(t.Context(), rec.Txn(), revert.Options{})
	require.ErrorIs(t, err, errFault, "of the call that has no end")
	require.Equal(t, "7", l.values.values["b"])
	l.line(rec, dies, done())
	rep, err := l.reverter.Abort(t.Context(), rec.Txn(), revert.Options{Calls: []string{id}})
	require.NoError(t, err)
	require.Equal(t, effect.Failed, rep.Items[0].Outcome)
	require.Equal(t, "7", l.values.values["a"])
	goes = false
	rep, err = l.reverter.Abort(t.Context(), rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Equal(t, "1", l.values.values["a"])
}

package revert_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// revertFunc is a tool's own Revert, for compensable calls, that runs a test
// function.
type revertFunc func(ctx context.Context) error

func (revertFunc) CanRevert(_ context.Context, c revert.Call) (bool, string) {
	return c.Class() == effect.Compensable, "its changes are all it did"
}

func (u revertFunc) RevertCall(ctx context.Context, _ revert.Recorder, _ revert.Call, _, _ string) error {
	return u(ctx)
}

// commitPayment commits a transaction with an effect in the test store and one outside.
func commitPayment(ctx context.Context, p *process) (txn string, err error) {
	rec, err := p.begin(ctx)
	if err != nil {
		return "", err
	}
	for _, c := range []callSpec{put(write{"a", 7}, write{"b", nil}), {class: effect.Compensable, confinement: "trusted"}} {
		if _, err := p.call(ctx, rec, c); err != nil {
			return rec.Txn(), err
		}
	}
	return rec.Txn(), p.commit(ctx, rec)
}

// TestOneReverterAtATime checks that a second revert of a transaction is
// refused, here and in other processes, by the ID of the transaction and of the
// revert.
func TestOneReverterAtATime(t *testing.T) {
	ctx := t.Context()
	open, w, n := journal.SharedMemory(), &kvStore{before()}, 0
	p, q := newProcess(open, w, 1), newProcess(open, w, 2)
	id, err := commitPayment(ctx, p)
	require.NoError(t, err)
	p.toolReverter = revertFunc(func(ctx context.Context) error {
		n++
		require.Equal(t, 1, n)
		txn, err := revert.Load(ctx, p.journal, id)
		require.NoError(t, err)
		for _, other := range []*process{p, q} {
			for _, name := range []string{id, txn.RevertedBy[0]} {
				rep, err := other.reverter.Revert(ctx, name, revert.Options{})
				require.ErrorIs(t, err, revert.ErrBusy)
				require.False(t, rep.Complete())
			}
		}
		return nil
	})
	rep, err := p.reverter.Revert(ctx, id, revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Equal(t, 1, n)
	require.Equal(t, before(), w.values)
	for _, other := range []*process{p, q} {
		_, err = other.reverter.Revert(ctx, rep.RevertTxn, revert.Options{})
		require.ErrorIs(t, err, revert.ErrIsRevertTxn)
		rep, err := other.reverter.Revert(ctx, id, revert.Options{})
		require.NoError(t, err)
		require.Empty(t, rep.Items)
	}
}

// TestConcurrentReverts checks that only one of two reverts begins, even if
// both have read that there is no other.
func TestConcurrentReverts(t *testing.T) {
	ctx := t.Context()
	open, w, n := journal.SharedMemory(), &kvStore{before()}, 0
	p, q := newProcess(open, w, 1), newProcess(open, w, 2)
	id, err := commitPayment(ctx, p)
	require.NoError(t, err)
	there, release, late := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	q.host.OnPoint = func(point string) error {
		if point == "journal.append.begun.reverted_by" {
			close(there)
			<-release
		}
		return nil
	}
	go func() {
		_, err := q.reverter.Revert(ctx, id, revert.Options{})
		late <- err
	}()
	<-there
	p.toolReverter = revertFunc(func(context.Context) error {
		n++
		close(release)
		require.ErrorIs(t, <-late, revert.ErrBusy)
		return nil
	})
	_, err = p.reverter.Revert(ctx, id, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	txn, err := revert.Load(ctx, p.journal, id)
	require.NoError(t, err)
	require.Len(t, txn.RevertedBy, 1)
}

// TestConcurrentTakeovers checks that only one of two processes takes over
// an abandoned transaction or revert.
func TestConcurrentTakeovers(t *testing.T) {
	ctx := t.Context()
	for name, committed := range map[string]bool{"a transaction": false, "an undo": true} {
		open, w := journal.SharedMemory(), &kvStore{before()}
		dead, p, q := newProcess(open, w, 1), newProcess(open, w, 2), newProcess(open, w, 3)
		rec, err := dead.begin(ctx)
		require.NoError(t, err)
		_, err = dead.call(ctx, rec, put(write{"a", 7}))
		require.NoError(t, err)
		if committed {
			require.NoError(t, dead.commit(ctx, rec))
			dead.crashAt(3)
			_, err = dead.reverter.Revert(ctx, rec.Txn(), revert.Options{})
			require.ErrorIs(t, err, errProcessEnded)
		}
		dead.endProcess(t)
		q.host.OnPoint = func(point string) error {
			if point != "journal.append.adopted" {
				return nil
			}
			rep, err := p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
			require.NoError(t, err)
			require.True(t, rep.Complete(), name)
			return nil
		}
		_, err = q.reverter.Revert(ctx, rec.Txn(), revert.Options{})
		require.ErrorIs(t, err, revert.ErrBusy, name)
		require.Equal(t, before(), w.values, name)
	}
}

// TestOpenTransactionBelongsToItsOwner checks that only a caller that knows that no
// call runs can end an open transaction of a living process, this one included.
func TestOpenTransactionBelongsToItsOwner(t *testing.T) {
	ctx := t.Context()
	open, w := journal.SharedMemory(), &kvStore{before()}
	p, q := newProcess(open, w, 1), newProcess(open, w, 2)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	_, err = p.call(ctx, rec, put(write{"a", 7}))
	require.NoError(t, err)
	_, err = p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
	require.ErrorIs(t, err, revert.ErrBusy)
	_, err = q.reverter.Abort(ctx, rec.Txn(), revert.Options{})
	require.ErrorIs(t, err, journal.ErrNotOwner)
	require.Equal(t, "7", w.values["a"])
	_, err = p.reverter.Abort(ctx, rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, before(), w.values)
	_, err = p.reverter.Abort(ctx, rec.Txn(), revert.Options{})
	require.ErrorIs(t, err, journal.ErrNotOwner)
}

// TestUndoDiesAtEveryPoint kills the process that reverts a committed
// transaction at each scheduling point. It also kills the recovery and the
// revert that follow at each of theirs. The end is always the same, and no
// claim remains.
func TestUndoDiesAtEveryPoint(t *testing.T) {
	ctx := t.Context()
	returns := revertFunc(func(context.Context) error { return nil })
	run := func(first, second int) (points int) {
		open, w := journal.SharedMemory(), &kvStore{before()}
		p := newProcess(open, w, 1)
		p.toolReverter = returns
		id, err := commitPayment(ctx, p)
		require.NoError(t, err)
		if first < 0 {
			return p.points(func() { _, err = p.reverter.Revert(ctx, id, revert.Options{}) })
		}
		p.crashAt(first)
		_, _ = p.reverter.Revert(ctx, id, revert.Options{})
		p.endProcess(t)
		if second >= 0 {
			q := newProcess(open, w, 2)
			q.toolReverter = returns
			q.crashAt(second)
			_, _ = q.reverter.Recover(ctx)
			_, _ = q.reverter.Revert(ctx, id, revert.Options{})
			q.endProcess(t)
		}
		r := newProcess(open, w, 3)
		r.toolReverter = returns
		found, err := r.reverter.Recover(ctx)
		require.NoError(t, err, "killed at point %d, then %d", first, second)
		require.Empty(t, found.Failed)
		rep, err := r.reverter.Revert(ctx, id, revert.Options{})
		require.NoError(t, err, "killed at point %d, then %d", first, second)
		require.True(t, rep.Complete(), "killed at point %d, then %d: %+v", first, second, rep)
		require.Equal(t, before(), w.values, "killed at point %d, then %d", first, second)
		left, err := r.journal.Unfinished(ctx)
		require.NoError(t, err)
		require.Empty(t, left, "killed at point %d, then %d", first, second)
		next, err := r.begin(ctx)
		require.NoError(t, err)
		_, err = r.call(ctx, next, put(write{"a", 1}, write{"b", 2}))
		require.NoError(t, err, "killed at point %d, then %d: nothing is held any more", first, second)
		return 0
	}
	total := run(-1, -1)
	require.Greater(t, total, 6)
	for first := range total {
		for second := -1; second < total+2; second++ {
			run(first, second)
		}
	}
}

// TestRecoverSkipsUnreadableTransactions checks that a transaction with invalid
// records does not prevent the recovery of others.
func TestRecoverSkipsUnreadableTransactions(t *testing.T) {
	ctx := t.Context()
	open, w := journal.SharedMemory(), &kvStore{before()}
	p := newProcess(open, w, 1)
	bad, err := p.begin(ctx)
	require.NoError(t, err)
	done := revert.CallRecord{Call: "c_never", Body: &record.Done{Output: json.RawMessage("null")}}
	require.NoError(t, bad.Write(ctx, revert.Write{Records: []revert.CallRecord{done}, Durable: true}))
	good, err := p.begin(ctx)
	require.NoError(t, err)
	p.host.OnPoint = func(point string) error {
		if point == "world.set" {
			return errProcessEnded
		}
		return nil
	}
	_, err = p.call(ctx, good, put(write{"a", 7}))
	require.ErrorIs(t, err, errProcessEnded)
	p.endProcess(t)

	q := newProcess(open, w, 2)
	found, err := q.reverter.Recover(ctx)
	require.ErrorIs(t, err, record.ErrDamaged)
	require.Equal(t, []string{bad.Txn(), good.Txn()}, found.Abandoned)
	require.Len(t, found.Failed, 1)
	require.Equal(t, bad.Txn(), found.Failed[0].Txn)
	require.NotEmpty(t, found.Failed[0].Why)
	require.Len(t, found.Settled, 1)
	require.Equal(t, good.Txn(), found.Settled[0].Txn)
	require.Equal(t, revert.PhaseFailed, found.Settled[0].Outcome)
}

// TestUndoOfACallWithoutAnEnd reverts a transaction that ended although one of
// its calls has no end, as far as the outcome is known. Neither a crash of the
// revert nor a recovery makes a stream that cannot be read.
func TestUndoOfACallWithoutAnEnd(t *testing.T) {
	ctx := t.Context()
	for n := range 16 {
		open, w := journal.SharedMemory(), &kvStore{before()}
		p := newProcess(open, w, 1)
		rec, err := p.begin(ctx)
		require.NoError(t, err)
		_, err = p.call(ctx, rec, put(write{"b", 8}))
		require.NoError(t, err)
		p.host.OnPoint = func(point string) error {
			if point == "journal.append.done" {
				return errProcessEnded
			}
			return nil
		}
		_, err = p.call(ctx, rec, put(write{"a", 7}))
		require.ErrorIs(t, err, errProcessEnded)
		p.host.OnPoint = nil
		require.NoError(t, p.commit(ctx, rec))
		p.crashAt(n)
		_, _ = p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
		p.endProcess(t)
		for life := range 3 {
			q := newProcess(open, w, uint64(life)+2)
			_, err = q.reverter.Recover(ctx)
			require.NoError(t, err, "killed at point %d", n)
			rep, err := q.reverter.Revert(ctx, rec.Txn(), revert.Options{})
			require.NoError(t, err, "killed at point %d", n)
			require.Equal(t, revert.TxnRevertedPartial, rep.State)
			txn, err := revert.Load(ctx, q.journal, rec.Txn())
			require.NoError(t, err, "killed at point %d", n)
			for _, undo := range txn.RevertedBy {
				_, err = revert.Load(ctx, q.journal, undo)
				require.NoError(t, err, "killed at point %d", n)
			}
			require.Equal(t, map[string]string{"a": "7", "b": "2"}, w.values, "killed at point %d", n)
			q.endProcess(t)
		}
	}
}

func TestReportWithoutAStateIsNotComplete(t *testing.T) {
	require.False(t, revert.Report{}.Complete())
	require.True(t, revert.Report{State: revert.TxnReverted}.Complete())
}

package revert_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// at runs do when the process first reaches a scheduling point.
func (l *testEnv) at(point string, do func()) {
	did := false
	l.host.OnPoint = func(p string) error {
		if p == point && !did {
			did = true
			do()
		}
		return nil
	}
	l.t.Cleanup(func() { require.True(l.t, did, "never came to %s", point) })
}

// TestOneWorksOnATransaction checks that only one goroutine reverts or recovers
// an abandoned transaction. Others get an error and do nothing.
func TestOneWorksOnATransaction(t *testing.T) {
	for _, work := range []request{revertRequest("t", revert.Options{}), recovered} {
		l := newTestEnv(t)
		left(l)
		l.next()
		calls, records := 0, 0
		l.at("journal.append.adopted", func() {
			ctx, j := t.Context(), l.journal
			before, err := j.Head(ctx)
			require.NoError(t, err)
			in, err := revert.Load(ctx, j, l.ids["t"])
			require.NoError(t, err)
			sold := in.Calls[len(in.Calls)-1].Ref.Call
			_, abort := l.reverter.Abort(ctx, l.ids["t"], revert.Options{})
			_, adopt := l.reverter.TakeOwnership(ctx, l.ids["t"])
			_, redo := l.reverter.Redo(ctx, l.ids["t"], "kim")
			_, undo := l.reverter.Revert(ctx, l.ids["t"], revert.Options{})
			decide := l.reverter.ResolveUnknown(ctx, sold, record.Decided{By: "kim", Why: "looked"})
			for _, err := range []error{abort, adopt, redo, undo, decide} {
				require.ErrorIs(t, err, revert.ErrBusy)
				calls++
			}
			found, err := l.reverter.Recover(ctx)
			require.NoError(t, err)
			require.Empty(t, found.Settled)
			require.Empty(t, found.Failed)
			after, err := j.Head(ctx)
			require.NoError(t, err)
			records += int(after.Size - before.Size)
		})
		require.NoError(t, work(t.Context(), l).err)
		require.Equal(t, 5, calls)
		require.Zero(t, records)
	}
}

// TestRefusals checks that impossible requests are refused, with the reason,
// before any write.
func TestRefusals(t *testing.T) {
	ctx := context.Background()
	sure := record.Decided{Applied: true, By: "kim", Why: "looked"}
	whole := record.Erased{By: "kim", Why: "asked for"}
	committedOpen := func(l *testEnv) { // a call without an end, in a transaction with one
		rec := l.txn()
		l.ids["t"] = rec.Txn()
		l.ids["c"] = l.start(rec, startedPayment())
		l.end(rec)
	}
	undoneTwice := func(l *testEnv) {
		l.ids["t"] = l.worked()
		for _, do := range []request{revertRequest("t", revert.Options{}), redo("t")} {
			a := do(ctx, l)
			require.NoError(l.t, a.err)
			l.ids["link"] = a.rep.RevertTxn
		}
	}
	for _, tt := range []struct {
		name    string
		prepare func(l *testEnv)
		do      func(l *testEnv) error
		is      error
		words   string
	}{
		{"a decision by nobody", doubtful, func(l *testEnv) error {
			return l.reverter.ResolveUnknown(ctx, l.ids["doubtful"], record.Decided{Why: "x"})
		}, nil, "a resolution needs a person"},
		{"a decision without a look", doubtful, func(l *testEnv) error {
			return l.reverter.ResolveUnknown(ctx, l.ids["doubtful"], record.Decided{By: "kim"})
		}, nil, "the evidence that they checked"},
		{"a decision on no call", doubtful, func(l *testEnv) error { return l.reverter.ResolveUnknown(ctx, "c_none", sure) }, journal.ErrNotFound, "c_none"},
		{"a decision that versions make", left, func(l *testEnv) error { return l.reverter.ResolveUnknown(ctx, "c_1_3", sure) }, revert.ErrOutcomeKnown, "the versions of its resources tell"},
		{"a decision where it is known", left, func(l *testEnv) error { return l.reverter.ResolveUnknown(ctx, "c_1_1", sure) }, revert.ErrOutcomeKnown, "it is done"},
		{"a decision after the end", committedOpen, func(l *testEnv) error { return l.reverter.ResolveUnknown(ctx, l.ids["c"], sure) }, journal.ErrNotOwner, "its transaction has ended"},
		{"an erasure by nobody", func(l *testEnv) { l.worked() }, func(l *testEnv) error {
			_, err := l.reverter.Erase(ctx, l.ids["second"], record.Erased{Why: "x"})
			return err
		}, nil, "a person and a reason"},
		{"an erasure for nothing", func(l *testEnv) { l.worked() }, func(l *testEnv) error {
			_, err := l.reverter.Erase(ctx, l.ids["second"], record.Erased{By: "kim"})
			return err
		}, nil, "a person and a reason"},
		{"an erasure of what is open", opened, func(l *testEnv) error { _, err := l.reverter.Erase(ctx, l.ids["second"], whole); return err }, revert.ErrNotEnded, "has not ended"},
		{"an erasure of a doubt", committedOpen, func(l *testEnv) error { _, err := l.reverter.Erase(ctx, l.ids["c"], whole); return err }, revert.ErrNotEnded, "its outcome is unknown"},
		{"undo of calls of another", stacked, func(l *testEnv) error {
			_, err := l.reverter.Revert(ctx, l.ids["t"], revert.Options{Calls: []string{"c_1_2"}})
			return err
		}, journal.ErrNotFound, "call c_1_2 of transaction"},
		{"undo of nothing", stacked, func(l *testEnv) error { _, err := l.reverter.Revert(ctx, "t_none", revert.Options{}); return err }, journal.ErrNotFound, "transaction or call t_none"},
		{"redo of what is open", opened, func(l *testEnv) error { _, err := l.reverter.Redo(ctx, l.ids["t"], "kim"); return err }, revert.ErrNotEnded, "has not ended"},
		{"redo of a redo", undoneTwice, func(l *testEnv) error { _, err := l.reverter.Redo(ctx, l.ids["link"], "kim"); return err }, revert.ErrIsRevertTxn, "worked on"},
		{"a call that is not there", opened, func(l *testEnv) error {
			_, err := l.reverter.RevertCall(ctx, revert.NewRecorder(l.journal, l.host, "s_1").In(l.ids["t"]), "c_none", "failed")
			return err
		}, journal.ErrNotFound, "call c_none"},
		{"out of no nested transaction", opened, func(l *testEnv) error { _, err := l.reverter.RevertNested(ctx, l.ids["t"], "n_9"); return err }, journal.ErrNotFound, "nested transaction n_9"},
		{"preview before recovery", left, func(l *testEnv) error { _, err := l.reverter.Preview(ctx, l.ids["t"], revert.Options{}); return err }, revert.ErrInFlight, "run recover first"},
		{"calls for an undo", begun(revertRequest("t", revert.Options{}), 3), func(l *testEnv) error {
			txn, err := revert.Load(ctx, l.journal, l.ids["t"])
			require.NoError(l.t, err)
			_, err = l.reverter.TakeOwnership(ctx, txn.RevertedBy[0])
			return err
		}, journal.ErrNotOwner, "accepts no more calls"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newTestEnv(t)
			tt.prepare(l)
			before, err := l.journal.Head(ctx)
			require.NoError(t, err)
			err = tt.do(l)
			require.ErrorContains(t, err, tt.words)
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is)
			}
			after, err := l.journal.Head(ctx)
			require.NoError(t, err)
			require.Equal(t, before, after, "nothing was written")
		})
	}
}

// TestCancellation checks that a cancelled context stops the work between two
// calls or two transactions, with its cause. A second request continues there.
func TestCancellation(t *testing.T) {
	enough := errors.New("enough")
	stops := func(l *testEnv, point string, do request) {
		ctx, cancel := context.WithCancelCause(t.Context())
		l.at(point, func() { cancel(enough) })
		a := do(ctx, l)
		require.ErrorIs(t, a.err, enough)
		require.False(t, a.rep.Complete())
		l.host.OnPoint = nil
		require.NoError(t, do(t.Context(), l).err)
	}
	l := newTestEnv(t)
	l.ids["t"] = l.worked()
	was := l.situation()
	stops(l, "revert.apply", revertRequest("t", revert.Options{}))
	require.Equal(t, before(), l.values.values)
	stops(l, "revert.apply", redo("t"))
	require.Equal(t, was.Values, l.values.values)

	l = newTestEnv(t)
	left(l)
	other := l.txn()
	l.start(other, handled(), write{"z", 9})
	l.next()
	stops(l, "journal.append.adopted", func(ctx context.Context, l *testEnv) reply {
		_, err := l.reverter.Recover(ctx)
		return reply{err: err}
	})
	require.NotContains(t, l.values.values, "z")
}

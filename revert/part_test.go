package revert_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// readsOf commits a transaction of so many calls, each with a change of another
// resource, reverts one of them, and returns the number of entries that the
// revert reads.
func readsOf(t *testing.T, calls int, pick func(calls []string) string) int {
	ctx := t.Context()
	counted := &countedReads{Journal: journal.Memory()}
	p := newProcess(func() journal.Journal { return counted }, &kvStore{before()}, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	var ids []string
	for i := range calls {
		id, err := p.call(ctx, rec, put(write{fmt.Sprint("k", i), i}))
		require.NoError(t, err)
		ids = append(ids, id)
	}
	require.NoError(t, p.commit(ctx, rec))
	id := pick(ids)
	counted.read = 0
	rep, err := p.reverter.Revert(ctx, id, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, revert.TxnCommitted, rep.State)
	require.Len(t, rep.Items, 1)
	return counted.read
}

// TestRevertReadsTheCall checks that a revert of one call reads the records of
// that call. Of every later call it reads one change, once, because that call
// can depend on the reverted one.
func TestRevertReadsTheCall(t *testing.T) {
	for name, pick := range map[string]func([]string) string{
		"the last":  func(calls []string) string { return calls[len(calls)-1] },
		"the first": func(calls []string) string { return calls[0] },
	} {
		t.Run(name, func(t *testing.T) {
			few, many := readsOf(t, 10, pick), readsOf(t, 1000, pick)
			later := 0
			if name == "the first" {
				later = 1000 - 10
			}
			require.LessOrEqual(t, few, 50)
			require.LessOrEqual(t, many, few+later+20, "of which some are to find another call with an effect")
		})
	}
}

// TestRevertCallReadsTheCall checks that the revert of a call that has just
// failed does not read the earlier calls of its transaction.
func TestRevertCallReadsTheCall(t *testing.T) {
	ctx := t.Context()
	counted := &countedReads{Journal: journal.Memory()}
	p := newProcess(func() journal.Journal { return counted }, &kvStore{before()}, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	var id string
	for i := range 100 {
		id, err = p.call(ctx, rec, put(write{fmt.Sprint("k", i), i}))
		require.NoError(t, err)
	}
	counted.read = 0
	results, err := p.reverter.RevertCall(ctx, rec, id, "verify")
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.NotContains(t, p.store.values, "k99")
	require.LessOrEqual(t, counted.read, 10)
}

// TestWholeRevertReadsOnce checks that the revert of a whole transaction and its
// redo read each record once, and beside them the changes and reverts that the
// journal has of any transaction.
func TestWholeRevertReadsOnce(t *testing.T) {
	ctx := t.Context()
	counted := &countedReads{Journal: journal.Memory()}
	p := newProcess(func() journal.Journal { return counted }, &kvStore{before()}, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	const calls = 100
	for i := range calls {
		_, err := p.call(ctx, rec, put(write{fmt.Sprint("k", i), i}))
		require.NoError(t, err)
	}
	require.NoError(t, p.commit(ctx, rec))
	all := func() (n int) {
		for _, err := range counted.Journal.Entries(ctx, journal.Query{}) {
			require.NoError(t, err)
			n++
		}
		return n
	}
	counted.read = 0
	_, err = p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.LessOrEqual(t, counted.read, all()+2*calls)
	counted.read = 0
	_, err = p.reverter.Redo(ctx, rec.Txn(), "kim")
	require.NoError(t, err)
	require.LessOrEqual(t, counted.read, all()+5*calls)
}

// failingReads is a journal of which one read fails.
type failingReads struct {
	journal.Journal
	left int // reads before it
}

func (j *failingReads) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	if j.left--; j.left == -1 {
		return func(yield func(record.Entry, error) bool) { yield(record.Entry{}, errFault) }
	}
	return j.Journal.Entries(ctx, q)
}

// TestPartWithAFailedRead fails each read of a part, of a later look at it, and
// of its state. The error is never taken for a missing record.
func TestPartWithAFailedRead(t *testing.T) {
	ctx := t.Context()
	l := newTestEnv(t)
	rec := l.txn()
	first := l.put(rec, write{"a", 7})
	failed := l.put(rec, write{"a", 8})
	_, err := l.reverter.RevertCall(ctx, rec, failed, "verify")
	require.NoError(t, err)
	l.put(rec, write{"a", 9})
	other := l.put(rec, write{"b", 9})
	l.put(rec, write{"c", 9})
	j := &failingReads{Journal: l.journal, left: 1 << 30}
	r := &revert.Reverter{Journal: j, Host: l.host, EnvironmentFor: l.reverter.EnvironmentFor}
	each := func(look func() error) {
		t.Helper()
		for n := 0; ; n++ {
			j.left = n
			err := look()
			if j.left >= 0 {
				require.NoError(t, err)
				require.Positive(t, n)
				return
			}
			require.ErrorIs(t, err, errFault, "read %d", n)
		}
	}
	_, err = r.LoadCall(ctx, rec.Txn(), "c_none")
	require.ErrorIs(t, err, journal.ErrNotFound)
	each(func() error {
		_, err := r.LoadCall(ctx, rec.Txn(), failed)
		return err
	})
	l.end(rec)
	_, err = l.reverter.Revert(ctx, other, revert.Options{})
	require.NoError(t, err)
	each(func() error {
		part, err := r.LoadCalls(ctx, rec.Txn(), first, failed)
		if err == nil {
			require.True(t, part.IsPart())
			part, err = r.Latest(ctx, part)
		}
		if err == nil {
			_, err = r.StateOf(ctx, part)
		}
		return err
	})
}

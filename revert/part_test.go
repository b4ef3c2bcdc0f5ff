package revert_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/provenance"
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

// damagedKind is a journal whose records of one kind cannot be understood.
type damagedKind struct {
	journal.Journal
	kind record.Kind
}

func (j damagedKind) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for e, err := range j.Journal.Entries(ctx, q) {
			if err == nil && e.Header.Kind == j.kind {
				e.Body = []byte("{")
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestPartOfADamagedTransaction damages records of each kind. A part is never
// returned without records that it needs, and the error is that of a whole read.
func TestPartOfADamagedTransaction(t *testing.T) {
	ctx := t.Context()
	l := newTestEnv(t)
	rec := l.txn()
	first := l.put(rec, write{"a", 7})
	failed := l.put(rec, write{"a", 8})
	_, err := l.reverter.RevertCall(ctx, rec, failed, "verify")
	require.NoError(t, err)
	last := l.put(rec, write{"b", 9})
	l.put(rec, write{"c", 9})
	at := func(kind record.Kind) *revert.Reverter {
		return &revert.Reverter{Journal: damagedKind{l.journal, kind}, Host: l.host, EnvironmentFor: l.reverter.EnvironmentFor}
	}
	kinds := []record.Kind{record.KindBegun, record.KindStarted, record.KindChanged, record.KindReverting, record.KindReverted}
	for _, kind := range kinds {
		_, err := at(kind).LoadCall(ctx, rec.Txn(), failed)
		require.ErrorIs(t, err, record.ErrDamaged, kind)
	}
	l.end(rec)
	rep, err := l.reverter.Revert(ctx, last, revert.Options{})
	require.NoError(t, err)
	for _, kind := range kinds {
		_, err := at(kind).LoadCalls(ctx, rec.Txn(), first, failed)
		require.ErrorIs(t, err, record.ErrDamaged, kind)
		part, err := l.reverter.LoadCalls(ctx, rec.Txn(), first, failed)
		require.NoError(t, err)
		if state, err := at(kind).StateOf(ctx, part); err == nil { // it did not need such a record
			require.Equal(t, revert.TxnCommitted, state)
		} else {
			require.ErrorIs(t, err, record.ErrDamaged, kind)
		}
	}
	_, err = l.reverter.LoadCalls(ctx, rep.RevertTxn, first)
	require.NoError(t, err, "of a revert, which is read as a whole")
	whole, err := l.reverter.Load(ctx, rec.Txn())
	require.NoError(t, err)
	c, _ := whole.Call(failed)
	got, err := l.reverter.LoadCalls(ctx, rec.Txn(), c.Reversal.Call)
	require.NoError(t, err)
	require.False(t, got.IsPart(), "a revert is no call")
}

// TestPartOfManyResources checks a call with more changes than one query can name.
func TestPartOfManyResources(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	var writes []write
	for i := range 70 {
		writes = append(writes, write{fmt.Sprint("k", i), i})
	}
	many := l.put(rec, writes...)
	l.put(rec, write{"a", 9})
	l.end(rec)
	got, err := l.reverter.LoadCalls(t.Context(), rec.Txn(), many)
	require.NoError(t, err)
	require.False(t, got.IsPart())
}

// busyJournal is a journal to which another process appends before a read of a
// call.
type busyJournal struct {
	journal.Journal
	add func()
}

func (j *busyJournal) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	if add := j.add; add != nil && q.Call != "" {
		j.add = nil
		add()
	}
	return j.Journal.Entries(ctx, q)
}

// TestPartOfOneMoment appends a record of a call after the end of its transaction
// was read. The part is as it was before, and the next look finds the record.
func TestPartOfOneMoment(t *testing.T) {
	ctx := t.Context()
	l := newTestEnv(t)
	rec := l.txn()
	call := l.put(rec, write{"a", 7})
	l.put(rec, write{"b", 7})
	l.end(rec)
	said := &record.Feedback{Feedback: provenance.Feedback{Tool: "put", Call: call, Verdict: provenance.Bad, By: "kim"}}
	j := &busyJournal{Journal: l.journal, add: func() {
		l.must(revert.NewRecorder(l.journal, l.host, "s_1"), revert.Write{Records: []revert.CallRecord{{Txn: rec.Txn(), Call: call, Body: said}}})
	}}
	r := &revert.Reverter{Journal: j, Host: l.host, EnvironmentFor: l.reverter.EnvironmentFor}
	part, err := r.LoadCalls(ctx, rec.Txn(), call)
	require.NoError(t, err)
	require.Nil(t, j.add)
	require.True(t, part.IsPart())
	require.Empty(t, part.Calls[0].Feedback)
	part, err = r.Latest(ctx, part)
	require.NoError(t, err)
	require.Len(t, part.Calls[0].Feedback, 1)
	r.Named = func(context.Context, string) ([]record.Root, error) { return nil, errFault }
	_, err = r.LoadCalls(ctx, rec.Txn(), call)
	require.ErrorIs(t, err, errFault)
	_, err = r.Latest(ctx, part)
	require.ErrorIs(t, err, errFault)
}

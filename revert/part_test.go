package revert_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
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

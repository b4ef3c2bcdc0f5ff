package revert_test

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// countedReads counts the entries that a journal returns.
type countedReads struct {
	journal.Journal
	read int
}

func (c *countedReads) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for e, err := range c.Journal.Entries(ctx, q) {
			c.read++
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestRecoverReadsOnce checks that recovery reads the records of an abandoned transaction without calls in flight once, and its first
// record once more.
func TestRecoverReadsOnce(t *testing.T) {
	ctx := t.Context()
	open, w := journal.SharedMemory(), &kvStore{before()}
	p := newProcess(open, w, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	for i := range 20 {
		_, err := p.call(ctx, rec, put(write{"a", i}))
		require.NoError(t, err)
	}
	p.endProcess(t)
	counted := &countedReads{Journal: open()}
	q := newProcess(func() journal.Journal { return counted }, w, 2)
	all := 0
	for _, err := range counted.Entries(ctx, journal.Query{Txn: rec.Txn()}) {
		require.NoError(t, err)
		all++
	}
	require.Greater(t, all, 60)
	counted.read = 0
	found, err := q.reverter.Recover(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{rec.Txn()}, found.Abandoned)
	require.Equal(t, all+1, counted.read)
}

// TestOpenings checks what the first record of a transaction says, and the transaction of a call.
func TestOpenings(t *testing.T) {
	ctx := t.Context()
	l := newTestEnv(t)
	rec := l.txn()
	_, err := l.process.call(ctx, rec, put(write{"a", 7}))
	require.NoError(t, err)
	j := l.open()
	o, err := revert.LoadOpening(ctx, j, rec.Txn())
	require.NoError(t, err)
	require.Empty(t, o.About)
	require.NotEmpty(t, o.Session)
	for _, id := range []string{"", "t_none"} {
		_, err := revert.LoadOpening(ctx, j, id)
		require.ErrorIs(t, err, journal.ErrNotFound)
		_, err = revert.TxnOf(ctx, j, id)
		require.ErrorIs(t, err, journal.ErrNotFound)
	}
	txn, err := revert.Load(ctx, j, rec.Txn())
	require.NoError(t, err)
	of, err := revert.TxnOf(ctx, j, txn.Calls[0].Ref.Call)
	require.NoError(t, err)
	require.Equal(t, rec.Txn(), of)
}

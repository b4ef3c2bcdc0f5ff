package revert_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// unfilteredJournal is a journal that ignores the About texts of a query.
type unfilteredJournal struct {
	journal.Journal
	read *int
}

func (e unfilteredJournal) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	q.About = nil
	return func(yield func(record.Entry, error) bool) {
		for entry, err := range e.Journal.Entries(ctx, q) {
			*e.read++
			if !yield(entry, err) {
				return
			}
		}
	}
}

// TestRevertQueriesFindDependents compares two ways to find dependent calls along
// chains of folders and files: from the changes of related resources alone, and
// from all later changes.
func TestRevertQueriesFindDependents(t *testing.T) {
	keys := []string{"kv://r", "kv://r/a", "kv://r/a/b", "kv://r/ab", `kv://r/a/"b"`, "kv://r/c/d", "kv://s", "kv://s/x", "kv://s/y", "other"}
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		l := newTestEnv(t)
		var txns []string
		for range 8 {
			rec := l.txn()
			for range 1 + r.IntN(2) {
				var writes []write
				for range 1 + r.IntN(2) {
					writes = append(writes, write{keys[r.IntN(len(keys))], r.IntN(100)})
				}
				l.put(rec, writes...)
			}
			l.end(rec)
			txns = append(txns, rec.Txn())
		}
		read := 0
		whole := &revert.Reverter{Journal: unfilteredJournal{l.reverter.Journal, &read}, Host: l.reverter.Host, EnvironmentFor: l.reverter.EnvironmentFor, OnDrop: l.reverter.OnDrop}
		for _, txn := range txns {
			for _, how := range []revert.Options{{}, {Cascade: true}} {
				want, err := whole.Preview(t.Context(), txn, how)
				require.NoError(t, err)
				got, err := l.reverter.Preview(t.Context(), txn, how)
				require.NoError(t, err)
				require.Equal(t, want, got, "seed %d, %s, %+v", seed, txn, how)
			}
		}
		require.Positive(t, read)
	}
}

// TestRevertSkipsUnrelatedChanges checks that a revert does not read later
// changes of other resources.
func TestRevertSkipsUnrelatedChanges(t *testing.T) {
	l := newTestEnv(t)
	first := l.txn()
	l.put(first, write{"kv://mine/a", 1})
	l.end(first)
	for i := range 50 {
		rec := l.txn()
		l.put(rec, write{fmt.Sprintf("kv://theirs/%d", i), 1})
		l.end(rec)
	}
	counting := &counted{Journal: l.reverter.Journal}
	l.reverter.Journal = counting
	rep, err := l.reverter.Revert(t.Context(), first.Txn(), revert.Options{Cascade: true})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Zero(t, counting.others, "changes of others that were read")
}

// counted counts the changes that queries across transactions read.
type counted struct {
	journal.Journal
	others int
}

func (c *counted) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for e, err := range c.Journal.Entries(ctx, q) {
			if q.Txn == "" && e.Header.Kind == record.KindChanged {
				c.others++
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

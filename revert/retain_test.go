package revert_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// counting counts the entries that were read.
type counting struct {
	journal.Journal
	read *int
}

func (c counting) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for e, err := range c.Journal.Entries(ctx, q) {
			*c.read++
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestRetainerReadsOnlyNewEntries checks that a run does not read pruned
// transactions again, for any number of them.
func TestRetainerReadsOnlyNewEntries(t *testing.T) {
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	read := 0
	r := &revert.Reverter{Journal: counting{p.journal, &read}, Host: p.host, EnvironmentFor: p.reverter.EnvironmentFor}
	k := r.Retain(revert.Retention{MaxAge: time.Minute})
	costs := func() int {
		for n := range 5 {
			p.one(t, "a", n)
		}
		p.host.Advance(time.Hour)
		p.one(t, "b", 1) // the next record makes them old
		read = 0
		done, err := k.Run(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, done.Txns, 5)
		return read
	}
	costs()
	second := costs()
	for range 50 {
		costs()
	}
	require.Equal(t, second, costs())
	read = 0
	for range 2 { // the first run frees the space
		done, err := k.Run(t.Context())
		require.NoError(t, err)
		require.Zero(t, done.Txns)
	}
	require.LessOrEqual(t, read, 2*second)
	read = 0
	_, err := k.Run(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, read, 1, "nothing is new but the next one")
}

// TestRetainerKeepsTheNewest checks that the newest ended transactions stay at
// any age, until newer ones have ended.
func TestRetainerKeepsTheNewest(t *testing.T) {
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	k := p.reverter.Retain(revert.Retention{KeepLast: 2})
	var all []string
	for _, more := range []int{1, 1, 1, 4} {
		for range more {
			all = append(all, p.one(t, "a", len(all)))
		}
		p.host.Advance(400 * day)
		_, err := k.Run(t.Context())
		require.NoError(t, err)
		for n, txn := range all {
			require.Equal(t, n < len(all)-2, p.pruned(t, txn), "%d of %d", n, len(all))
		}
	}
}

// TestRetainerEqualsPrune compares many runs with one prune. At
// each run some transactions are open, unknown or recently reverted.
func TestRetainerEqualsPrune(t *testing.T) {
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	k := p.reverter.Retain(revert.Retention{})
	run := func() revert.PruneReport {
		done, err := k.Run(t.Context())
		require.NoError(t, err)
		return done
	}
	open, err := p.begin(t.Context())
	require.NoError(t, err)
	_, err = p.call(t.Context(), open, put(write{"a", 1}))
	require.NoError(t, err)
	unknown, err := p.begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, unknown.Write(t.Context(), revert.Write{Records: []revert.CallRecord{
		{Call: "c_u", Body: &record.Started{Sequence: 1, Key: "k", Tool: record.ToolRef{Name: "send"}, Class: effect.Pivot, Input: []byte("{}"), Decision: []byte("{}")}},
		{Call: "c_u", Body: &record.Unknown{Status: "unknown", Why: "lost"}},
	}}))
	require.NoError(t, p.commit(t.Context(), unknown))
	first := p.one(t, "b", 1)
	done := run()
	require.Equal(t, 1, done.Txns)
	require.Len(t, done.Kept, 2)
	require.True(t, p.pruned(t, first))

	require.NoError(t, p.commit(t.Context(), open))
	require.NoError(t, p.reverter.ResolveUnknown(t.Context(), "c_u", record.Decided{Applied: true, By: "kim", Why: "looked"}))
	pruned := 0
	for range 4 {
		pruned += run().Txns
	}
	require.Equal(t, 2, pruned)
	require.True(t, p.pruned(t, open.Txn()))
	require.Zero(t, p.prune(t, revert.Retention{}).Txns, "nothing is left for a whole look")
}

// TestRetainerContinuesAfterAFailure checks that the next run completes a failed
// one.
func TestRetainerContinuesAfterAFailure(t *testing.T) {
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	for n := range 3 * revert.BatchCalls {
		p.one(t, "a", n)
	}
	k := p.reverter.Retain(revert.Retention{})
	fails := 2
	p.host.OnPoint = func(point string) error {
		if fails--; fails == 0 {
			return errProcessEnded
		}
		return nil
	}
	done, err := k.Run(t.Context())
	require.ErrorIs(t, err, errProcessEnded)
	require.Equal(t, revert.BatchCalls, done.Txns)
	p.host.OnPoint = nil
	done, err = k.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2*revert.BatchCalls, done.Txns)
}

// TestRetainerDuringARevert checks that a transaction waits if another
// process begins to revert it between the read and the step. The other
// transactions of the step are erased.
func TestRetainerDuringARevert(t *testing.T) {
	for name, fails := range map[string]bool{"and nothing else": false, "and the next step fails": true} {
		t.Run(name, func(t *testing.T) {
			store := journal.SharedMemory()
			p := newProcess(store, &kvStore{before()}, 1)
			txns := []string{p.one(t, "a", 1), p.one(t, "b", 1), p.one(t, "c", 1)}
			busy := newProcess(store, p.store, 2)
			busy.crashAt(2) // half-way through it, and still alive
			steps := 0
			p.host.OnPoint = func(point string) error {
				if !strings.HasPrefix(point, "journal.append.erased") {
					return nil
				}
				if steps++; steps == 1 {
					_, err := busy.reverter.Revert(t.Context(), txns[1], revert.Options{})
					require.Error(t, err)
				}
				if fails && steps == 3 {
					return errProcessEnded
				}
				return nil
			}
			k := p.reverter.Retain(revert.Retention{})
			done, err := k.Run(t.Context())
			p.host.OnPoint = nil
			if fails {
				require.ErrorIs(t, err, errProcessEnded)
				require.Equal(t, 1, done.Txns)
				done, err = k.Run(t.Context())
				require.NoError(t, err)
				require.Equal(t, 1, done.Txns)
			} else {
				require.NoError(t, err)
				require.Equal(t, 2, done.Txns)
			}
			require.True(t, p.pruned(t, txns[0]))
			require.False(t, p.pruned(t, txns[1]))
			require.True(t, p.pruned(t, txns[2]))
		})
	}
}

// TestRetainerWithUnreadableTransactions checks that an unreadable transaction ends
// the run, and that a later run continues when it is readable.
func TestRetainerWithUnreadableTransactions(t *testing.T) {
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	open, err := p.begin(t.Context())
	require.NoError(t, err)
	bad := &unreadable{Journal: p.journal}
	k := p.through(bad, p.reverter.EnvironmentFor).Retain(revert.Retention{})
	_, err = k.Run(t.Context())
	require.NoError(t, err)
	require.NoError(t, p.commit(t.Context(), open))
	txn := p.one(t, "a", 1)
	for _, id := range []string{open.Txn(), txn} {
		bad.txn = id
		_, err = k.Run(t.Context())
		require.ErrorIs(t, err, errUnreadable)
	}
	bad.txn = ""
	_, err = k.Run(t.Context())
	require.NoError(t, err)
	require.True(t, p.pruned(t, txn))
}

// unreadable is a journal that cannot read one transaction.
type unreadable struct {
	journal.Journal
	txn string
}

func (u *unreadable) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	if u.txn != "" && q.Txn == u.txn {
		return func(yield func(record.Entry, error) bool) { yield(record.Entry{}, errUnreadable) }
	}
	return u.Journal.Entries(ctx, q)
}

// TestRetainerDropsStates checks that the newest state of each session stays,
// and that a failed step is repeated.
func TestRetainerDropsStates(t *testing.T) {
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	states := func(n int) {
		for range n {
			s := &record.State{Session: "s_1", Tool: "count", Version: effect.Absent}
			rec := revert.NewRecorder(p.journal, p.host, "s_1")
			require.NoError(t, rec.Write(t.Context(), revert.Write{Records: []revert.CallRecord{{Call: s.ID(p.host), Body: s}}}))
		}
	}
	left := func() (n int) {
		for e, err := range p.journal.Entries(t.Context(), journal.Query{Kinds: []record.Kind{record.KindState}}) {
			require.NoError(t, err)
			if e.Erased == "" {
				n++
			}
		}
		return n
	}
	const many = 2*revert.BatchCalls + 3
	states(many)
	p.one(t, "a", 1)
	states(2)
	k := p.reverter.Retain(revert.Retention{})
	steps := 0
	p.host.OnPoint = func(point string) error {
		if strings.HasPrefix(point, "journal.append.erased") {
			if steps++; steps == 3 { // after the transaction and the first states
				return errProcessEnded
			}
		}
		return nil
	}
	_, err := k.Run(t.Context())
	require.ErrorIs(t, err, errProcessEnded)
	require.Equal(t, many+2-revert.BatchCalls, left())
	steps = 1 // the next step is the second one
	_, err = k.Run(t.Context())
	require.ErrorIs(t, err, errProcessEnded)
	p.host.OnPoint = nil
	_, err = k.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, left(), "the newest of the old ones, and what is not past retention")
}

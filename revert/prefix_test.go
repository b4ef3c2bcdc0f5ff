package revert_test

import (
	"context"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// earlier is a journal as it was when it had so many entries.
type earlier struct {
	journal.Journal
	size int64
}

func (j *earlier) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	limit := q.Limit
	q.Limit = 0
	return func(yield func(record.Entry, error) bool) {
		left := limit
		for e, err := range j.Journal.Entries(ctx, q) {
			if err == nil && e.Pos > j.size {
				continue
			}
			if left--; !yield(e, err) || left == 0 {
				return
			}
		}
	}
}

// mixed commits transactions whose calls depend on each other in many ways, and
// reverts some calls of them, in random order.
func mixed(l *testEnv, r *rand.Rand) {
	keys := []string{"a", "b", "kv://r/x", "kv://r/x/y", "kv://r/z"}
	some := func() string { return keys[r.IntN(len(keys))] }
	var txns []string
	for range 2 {
		rec := l.txn()
		txns = append(txns, rec.Txn())
		for i := range 5 {
			switch r.IntN(7) {
			case 6:
				l.line(rec, l.start(rec, handled(), write{some(), nil}), &record.Failed{Status: "failed", Why: "no room", Proof: "no_effect"})
			case 0:
				l.pay(rec)
			case 1:
				l.line(rec, l.start(rec, &record.Started{Class: "pure", Confinement: "trusted"}), done())
			case 2:
				l.put(rec, write{some(), i}, write{some(), i + 10})
			default:
				l.put(rec, write{some(), r.IntN(3)})
			}
			if i == 2 && r.IntN(2) == 0 {
				id := l.put(rec, write{some(), 5})
				_, err := l.reverter.RevertCall(l.t.Context(), rec, id, "verify")
				require.NoError(l.t, err)
			}
		}
		l.end(rec)
	}
	for range 5 {
		txn := l.load(txns[r.IntN(2)])
		said := &record.Feedback{Feedback: provenance.Feedback{Tool: "put", Call: txn.Calls[0].Ref.Call, Verdict: provenance.Bad, By: "kim"}}
		l.must(revert.NewRecorder(l.journal, l.host, "s_1"), revert.Write{Records: []revert.CallRecord{{Txn: txn.ID, Call: txn.Calls[0].Ref.Call, Body: said}}})
		call := txn.Calls[r.IntN(len(txn.Calls))].Ref.Call
		how := revert.Options{Cascade: r.IntN(3) == 0, Calls: []string{call}}
		switch r.IntN(6) {
		case 0:
			how.Resources = []string{some()}
		case 1:
			how.Calls, how.Resources = nil, []string{some(), some()}
		}
		if r.IntN(4) == 0 { // another program changed something, so a part remains
			l.values.values["a"] = "theirs"
		}
		_, err := l.reverter.Revert(l.t.Context(), txn.ID, how)
		require.NoError(l.t, err)
	}
	if r.IntN(3) == 0 {
		_, err := l.reverter.Redo(l.t.Context(), txns[0], "kim")
		require.NoError(l.t, err)
	}
}

// histories returns journals with many histories.
func histories(t *testing.T) (all []*testEnv) {
	for _, s := range scenarios() {
		l := s.begin(t)
		_ = s.do(t.Context(), l)
		all = append(all, l)
	}
	for seed := range uint64(30) {
		l := newTestEnv(t)
		mixed(l, rand.New(rand.NewPCG(seed, 1)))
		all = append(all, l)
	}
	return all
}

// ends returns the sizes of the journal after each step, and its transactions.
func (l *testEnv) ends() (sizes []int64, txns []string) {
	for e, err := range l.journal.Entries(l.t.Context(), journal.Query{}) {
		require.NoError(l.t, err)
		sizes = append(sizes, e.Pos)
		if e.Header.Kind == record.KindBegun {
			txns = append(txns, e.Header.Txn)
		}
	}
	return sizes, txns
}

// TestLatestIsAWholeRead reads transactions at one size of the journal, looks at
// them again at a later one, and compares them with a whole read there.
func TestLatestIsAWholeRead(t *testing.T) {
	every := statcheck.Stride(5)
	for _, l := range histories(t) {
		ctx := t.Context()
		j := &earlier{Journal: l.journal}
		r := &revert.Reverter{Journal: j, Host: l.host, EnvironmentFor: l.reverter.EnvironmentFor}
		sizes, txns := l.ends()
		for n, from := range sizes {
			if n%every != 0 {
				continue
			}
			for _, id := range txns {
				for _, to := range []int64{from, from + 1, from + 2, from + 5, sizes[len(sizes)-1]} {
					j.size = from
					was, err := r.Load(ctx, id)
					if err != nil {
						break // not begun yet, or in the middle of a step
					}
					j.size = to
					want, failed := r.Load(ctx, id)
					got, err := r.Latest(ctx, was)
					if failed != nil {
						require.Error(t, err) // which of several damages is not certain
						continue
					}
					require.NoError(t, err)
					require.Equal(t, want.Folded(), got.Folded(), "from %d to %d", from, to)
				}
			}
		}
	}
}

// TestPartIsAWholeRead compares what a revert of one call reads with a whole
// read, at each size of the journal: the calls to revert with all that the
// records say of them, and the state of the transaction.
func TestPartIsAWholeRead(t *testing.T) {
	parts := 0
	every := statcheck.Stride(5)
	for _, l := range histories(t) {
		ctx := t.Context()
		j := &earlier{Journal: l.journal}
		r := &revert.Reverter{Journal: j, Host: l.host, EnvironmentFor: l.reverter.EnvironmentFor}
		sizes, txns := l.ends()
		for n, size := range sizes {
			if n%every != 0 {
				continue
			}
			j.size = size
			for _, id := range txns {
				whole, err := r.Load(ctx, id)
				if err != nil {
					continue
				}
				for _, c := range whole.Calls {
					if whole.End == "" {
						alone, err := r.LoadCall(ctx, id, c.Ref.Call)
						require.NoError(t, err)
						require.Equal(t, c, alone)
						continue
					}
					part, err := r.LoadCalls(ctx, id, c.Ref.Call)
					require.NoError(t, err)
					if !part.IsPart() {
						continue
					}
					parts++
					samePart(t, r, whole, part, c.Ref.Call)
					j.size = sizes[len(sizes)-1]
					later, err := r.Load(ctx, id)
					require.NoError(t, err)
					part, err = r.Latest(ctx, part)
					require.NoError(t, err)
					samePart(t, r, later, part, c.Ref.Call)
					j.size = size
				}
			}
		}
	}
	require.Greater(t, parts, 100)
}

func samePart(t *testing.T, r *revert.Reverter, whole, part *revert.Txn, call string) {
	t.Helper()
	require.Equal(t, whole.ToRevert(call), part.ToRevert(call))
	for _, c := range part.Calls {
		want, ok := whole.Call(c.Ref.Call)
		require.True(t, ok)
		require.Equal(t, want, c)
	}
	state, err := r.StateOf(t.Context(), part)
	require.NoError(t, err)
	require.Equal(t, whole.State(), state)
	require.Equal(t, whole.RevertedBy, part.RevertedBy)
	require.Equal(t, []any{whole.Session, whole.End, whole.Named}, []any{part.Session, part.End, part.Named})
}

// TestLatestAfterAnErasure looks at a transaction again after another process
// erased a call of it, or the revert of one.
func TestLatestAfterAnErasure(t *testing.T) {
	ctx := t.Context()
	for name, prepare := range map[string]func(l *testEnv, txn string){
		"of a call": func(*testEnv, string) {},
		"of a revert": func(l *testEnv, txn string) {
			_, err := l.reverter.Revert(ctx, txn, revert.Options{})
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTestEnv(t)
			txn := l.worked()
			prepare(l, txn)
			was, err := l.reverter.Load(ctx, txn)
			require.NoError(t, err)
			call := was.Calls[0].Ref.Call
			part, err := l.reverter.LoadCalls(ctx, txn, call)
			require.NoError(t, err)
			_, err = l.reverter.Erase(ctx, call, record.Erased{By: "kim", Why: "x"})
			require.NoError(t, err)
			want, err := l.reverter.Load(ctx, txn)
			require.NoError(t, err)
			for _, old := range []*revert.Txn{was, part} {
				got, err := l.reverter.Latest(ctx, old)
				require.NoError(t, err)
				require.Equal(t, want.Folded(), got.Folded())
			}
		})
	}
}

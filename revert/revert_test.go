package revert_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// txnHistory is a random history of committed transactions, kept beside the journal.
type txnHistory struct {
	txns  []string
	calls []pastCall // in the order in which they ran
}

type pastCall struct {
	txn    string
	id     string
	writes []write
}

func (p *process) history(t *testing.T, ctx context.Context, r *rand.Rand, deletes bool) txnHistory {
	t.Helper()
	var h txnHistory
	keys, value := []string{"a", "b", "c", "d"}, 0
	for range 1 + r.IntN(4) {
		rec, err := p.begin(ctx)
		require.NoError(t, err)
		h.txns = append(h.txns, rec.Txn())
		for range 1 + r.IntN(3) {
			var spec callSpec
			for _, k := range r.Perm(len(keys))[:1+r.IntN(2)] {
				value++
				w := write{keys[k], any(value)}
				if deletes && r.IntN(5) == 0 && p.store.token(keys[k]) != effect.Absent {
					w.value = nil
				}
				spec.writes = append(spec.writes, w)
			}
			spec.class, spec.confinement = effect.Reversible, "handles"
			id, err := p.call(ctx, rec, spec)
			require.NoError(t, err)
			h.calls = append(h.calls, pastCall{rec.Txn(), id, spec.writes})
		}
		require.NoError(t, p.commit(ctx, rec))
	}
	return h
}

// without is the slow reference: the store as if these calls had never run.
func (h txnHistory) without(gone map[string]bool) map[string]string {
	w := &kvStore{maps.Clone(before())}
	for _, c := range h.calls {
		for _, x := range c.writes {
			switch {
			case gone[c.id]:
			case x.value == nil:
				w.set(x.key, effect.Absent)
			default:
				w.set(x.key, effect.Token(fmt.Sprint("v:", x.value)))
			}
		}
	}
	return w.values
}

// closure returns the dependent calls of these calls: all that wrote one of
// their keys later.
func (h txnHistory) closure(gone map[string]bool, within string) map[string]bool {
	gone = maps.Clone(gone)
	touched := map[string]bool{}
	for _, c := range h.calls {
		on := gone[c.id]
		for _, x := range c.writes {
			on = on || touched[x.key]
		}
		if !on || (within != "" && c.txn != within) {
			continue
		}
		gone[c.id] = true
		for _, x := range c.writes {
			touched[x.key] = true
		}
	}
	return gone
}

// TestSelectiveUndo reverts random calls and transactions with their dependent
// calls, and compares with a history without them. The preview must match, and
// a redo must restore the transaction's own part.
func TestSelectiveUndo(t *testing.T) {
	ctx := context.Background()
	cascaded, single := 0, 0
	for seed := range uint64(250) {
		r := rand.New(rand.NewPCG(seed, 7))
		p := newProcess(journal.SharedMemory(), &kvStore{before()}, seed)
		h := p.history(t, ctx, r, true)
		c := h.calls[r.IntN(len(h.calls))]
		gone, id, how := map[string]bool{}, c.txn, revert.Options{Cascade: true}
		for _, other := range h.calls {
			gone[other.id] = other.txn == c.txn
		}
		if r.IntN(2) == 0 {
			single++
			gone, id = map[string]bool{c.id: true}, c.id
		}
		maps.DeleteFunc(gone, func(_ string, is bool) bool { return !is })
		all := h.closure(gone, "")
		foreseen, err := p.reverter.Preview(ctx, id, how)
		require.NoError(t, err)
		require.True(t, foreseen.Complete(), "seed %d: %+v", seed, foreseen)
		require.Equal(t, h.without(nil), p.store.values, "a preview touches nothing")
		shown := maps.Clone(gone)
		for _, d := range foreseen.Dependents {
			require.True(t, d.Included)
			require.False(t, gone[d.Call], "seed %d: it was named", seed)
			shown[d.Call] = true
		}
		require.Equal(t, all, shown, "seed %d: the closure is shown", seed)
		rep, err := p.reverter.Revert(ctx, id, how)
		require.NoError(t, err, "seed %d", seed)
		require.True(t, rep.Complete(), "seed %d: %+v", seed, rep)
		require.Equal(t, h.without(all), p.store.values, "seed %d: %s", seed, id)
		seen := map[string]bool{}
		for _, i := range rep.Items {
			seen[i.Call] = true
			if i.Txn != "" {
				cascaded++
			}
		}
		require.Equal(t, all, seen, "seed %d: these calls and no others", seed)
		again, err := p.reverter.Revert(ctx, id, how)
		require.NoError(t, err)
		require.Empty(t, again.Items, "twice equals once")
		found, err := revert.Fsck(ctx, p.journal, revert.FsckOptions{})
		require.NoError(t, err)
		require.Empty(t, found.Problems, "seed %d", seed)
	}
	require.Greater(t, cascaded, 40)
	require.Greater(t, single, 60)
}

// TestNoCascadeLeavesOtherTransactions checks that changes of later
// transactions are conflicts that name them.
func TestNoCascadeLeavesOtherTransactions(t *testing.T) {
	ctx := context.Background()
	blocked := 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 8))
		p := newProcess(journal.SharedMemory(), &kvStore{before()}, seed)
		h := p.history(t, ctx, r, false) // a version that is restored counts as the call's own
		c := h.calls[r.IntN(len(h.calls))]
		foreseen, err := p.reverter.Preview(ctx, c.id, revert.Options{})
		require.NoError(t, err)
		staying := slices.ContainsFunc(foreseen.Dependents, func(d revert.Dependent) bool { return !d.Included })
		rep, err := p.reverter.Revert(ctx, c.id, revert.Options{})
		require.NoError(t, err)
		require.Equal(t, foreseen.Complete(), rep.Complete(), "seed %d", seed)
		require.Equal(t, !rep.Complete(), staying, "seed %d: %+v", seed, foreseen)
		if rep.Complete() {
			require.Equal(t, h.without(h.closure(map[string]bool{c.id: true}, c.txn)), p.store.values, "seed %d", seed)
			continue
		}
		blocked++
		for _, i := range rep.Items {
			require.Empty(t, i.Txn)
		}
		require.Contains(t, rep.NotReverted()[0].Why, "changed it later")
		require.Contains(t, rep.NotReverted()[0].Why, "cascade")
	}
	require.Greater(t, blocked, 15)
}

// TestForceNeedsAnActor refuses to overwrite for a person who is not named.
func TestForceNeedsAnActor(t *testing.T) {
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	_, err := p.reverter.Revert(t.Context(), "t_1", revert.Options{Force: true})
	require.ErrorContains(t, err, "needs Options.By")
}

// TestForce checks that force overwrites another actor's version for a person,
// after it stored it, and that redo restores it.
func TestForce(t *testing.T) {
	ctx := context.Background()
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	_, err = p.call(ctx, rec, put(write{"a", 7}, write{"b", nil}))
	require.NoError(t, err)
	require.NoError(t, p.commit(ctx, rec))
	p.store.values["a"] = "theirs"
	how := revert.Options{Force: true, By: "kim"}
	foreseen, err := p.reverter.Preview(ctx, rec.Txn(), how)
	require.NoError(t, err)
	require.True(t, foreseen.Complete())
	require.Equal(t, "theirs", p.store.values["a"])
	rep, err := p.reverter.Revert(ctx, rec.Txn(), how)
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Equal(t, before(), p.store.values)
	forced := 0
	for _, i := range rep.Items {
		if i.Forced {
			forced++
			require.Equal(t, "a", i.Resource)
		}
	}
	require.Equal(t, 1, forced)
	txn, err := revert.Load(ctx, p.journal, rec.Txn())
	require.NoError(t, err)
	require.Equal(t, "kim", txn.Calls[0].Reversal.Reverting.By)
	_, err = p.reverter.Redo(ctx, rec.Txn(), "kim")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "theirs"}, p.store.values)
}

// TestCrashOfCascade kills a revert of several transactions at each of its
// scheduling points, and then the requests that follow.
func TestCrashOfCascade(t *testing.T) {
	ctx := context.Background()
	run := func(first, second int) (total int) {
		open, w := journal.SharedMemory(), &kvStore{maps.Clone(before())}
		p := newProcess(open, w, 1)
		h := p.history(t, ctx, rand.New(rand.NewPCG(5, 4)), true)
		id, how := h.calls[0].txn, revert.Options{Cascade: true}
		gone := map[string]bool{}
		for _, c := range h.calls {
			if c.txn == id {
				gone[c.id] = true
			}
		}
		want := h.without(h.closure(gone, ""))
		if first < 0 {
			total = p.points(func() {
				rep, err := p.reverter.Revert(ctx, id, how)
				require.NoError(t, err)
				others := slices.ContainsFunc(rep.Items, func(i revert.ResourceResult) bool { return i.Txn != "" })
				require.True(t, others, "others are taken along")
			})
			require.Equal(t, want, w.values)
			return total
		}
		p.crashAt(first)
		_, err := p.reverter.Revert(ctx, id, how)
		require.ErrorIs(t, err, errProcessEnded)
		p.endProcess(t)
		if second >= 0 {
			q := newProcess(open, w, 2)
			q.crashAt(second)
			_, _ = q.reverter.Recover(ctx)
			_, _ = q.reverter.Revert(ctx, id, how)
			q.endProcess(t)
		}
		q := newProcess(open, w, 3)
		_, err = q.reverter.Recover(ctx)
		require.NoError(t, err, "killed at point %d, then %d", first, second)
		rep, err := q.reverter.Revert(ctx, id, how)
		require.NoError(t, err, "killed at point %d, then %d", first, second)
		require.True(t, rep.Complete(), "killed at point %d, then %d: %+v", first, second, rep)
		require.Equal(t, want, w.values, "killed at point %d, then %d", first, second)
		left, err := q.journal.Unfinished(ctx)
		require.NoError(t, err)
		require.Empty(t, left, "killed at point %d, then %d", first, second)
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

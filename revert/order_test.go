package revert

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// TestUndoOrder compares undoOrder with a slow reference on random calls: the
// last call that changed a resource, or an enclosing or enclosed one, goes
// first; otherwise the newest goes first.
func TestUndoOrder(t *testing.T) {
	resources := []string{"file://w/a", "file://w/d", "file://w/d/b", "file://w/d/b/c", "file://w/dd"}
	related := func(a, b string) bool {
		return a == b || slices.Contains(slices.Collect(Ancestors(a)), b) || slices.Contains(slices.Collect(Ancestors(b)), a)
	}
	moved := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		calls := make([]*Call, 2+r.IntN(4))
		for i := range calls {
			calls[i] = &Call{Ref: record.CallRef{Call: fmt.Sprint(i)}}
		}
		newest := slices.Clone(calls)
		slices.Reverse(newest)
		// Serializable in some order, as two-phase locking ensures.
		for at, i := range r.Perm(len(calls)) {
			for n := range 1 + r.IntN(3) {
				calls[i].Changes = append(calls[i].Changes, effect.Change{Resource: resources[r.IntN(len(resources))]})
				calls[i].at = append(calls[i].at, int64(10*at+n))
			}
		}
		got := revertOrder(newest)
		require.ElementsMatch(t, newest, got)
		for i, lower := range got {
			for _, upper := range got[i+1:] {
				for x, a := range lower.Changes {
					for y, b := range upper.Changes {
						require.False(t, related(a.Resource, b.Resource) && upper.at[y] > lower.at[x], "seed %d: %s before %s", seed, lower.Ref.Call, upper.Ref.Call)
					}
				}
			}
		}
		if !slices.Equal(got, newest) {
			moved++
		}
	}
	require.Greater(t, moved, 200)
}

// TestUndoOrderOfACycle checks that no call of a cycle is lost.
func TestUndoOrderOfACycle(t *testing.T) {
	a := &Call{Changes: []effect.Change{{Resource: "x"}, {Resource: "x"}}, at: []int64{1, 3}}
	b := &Call{Changes: []effect.Change{{Resource: "x"}}, at: []int64{2}}
	require.Equal(t, []*Call{b, a}, revertOrder([]*Call{b, a}))
}

func TestAbove(t *testing.T) {
	require.Equal(t, []string{"file://w/a/b", "file://w/a", "file://w"}, slices.Collect(Ancestors("file://w/a/b/c")))
	require.Empty(t, slices.Collect(Ancestors("exec://git")))
	for range Ancestors("file://w/a/b/c") {
		break
	}
}

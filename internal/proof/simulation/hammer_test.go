package simulation_test

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/opcheck"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
)

// TestHammer runs the same agents as unordered goroutines, with an outside
// editor. It checks the result, and not its order.
func TestHammer(t *testing.T) {
	rounds := uint64(20)
	if statcheck.Whole() {
		rounds = 1000
	}
	conflicts := 0
	for seed := range rounds {
		w := newSimState(seed, nil)
		w.sched.free, w.sched.unordered = true, true
		hammer(w, seed)
		w.end()
		require.Empty(t, w.problems, "seed %d", seed)
		require.Empty(t, slices.DeleteFunc(opcheck.Check(w.events), misplaced), "seed %d", seed)
		conflicts += w.conflicts
	}
	require.Positive(t, conflicts)
	t.Logf("proved: goroutine hammer: %d rounds, 0 violations", rounds)
}

// misplaced reports findings that follow from the order of the recorded events:
// unordered goroutines may record their actions late.
func misplaced(v opcheck.Violation) bool {
	return v.Promise == opcheck.ClaimDone
}

func hammer(w *simState, seed uint64) {
	var all sync.WaitGroup
	for n := range 2 {
		p := w.process()
		s, err := p.rt.Session(context.Background(), perm.Principal{ID: "agent"})
		must(err)
		for m := range 2 {
			a := &actor{id: 2*n + m, proc: p, random: rand.New(rand.NewPCG(seed, uint64(100+2*n+m)))}
			all.Go(func() {
				ctx := w.context(a)
				for range 6 {
					switch a.random.IntN(6) {
					case 0:
						w.revertSome(ctx, a)
					case 1:
						w.redo(ctx, a)
					default:
						w.transaction(ctx, a, s)
					}
				}
			})
		}
	}
	all.Go(func() {
		random := rand.New(rand.NewPCG(seed, 7))
		for range 20 {
			w.intrude(paths[random.IntN(len(paths))])
		}
	})
	all.Wait()
}

// intrude replaces a file from outside, concurrently with other changes. The
// intruder then drops the content that was there.
func (w *simState) intrude(path string) {
	r, content := w.disk.Root(), w.content("theirs")
	must(put(r, "theirs.tmp", content))
	w.say(opcheck.Event{Kind: opcheck.Theirs, Resource: resourceOf(path), Content: content})
	err := r.Exchange("theirs.tmp", path)
	if errors.Is(err, fs.ErrNotExist) {
		err = r.RenameNoReplace("theirs.tmp", path)
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		must(r.SyncDir(".")) // otherwise a power failure may remove the current content, which no code can prevent
		w.drop(r, "theirs.tmp")
		return
	}
	must(err)
}

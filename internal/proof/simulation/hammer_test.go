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

// TestHammer lets the same agents run as goroutines that nobody orders, beside somebody
// outside who edits: what is looked at is what happened, and not how it came about.
func TestHammer(t *testing.T) {
	rounds := uint64(20)
	if statcheck.Whole() {
		rounds = 1000
	}
	conflicts := 0
	for seed := range rounds {
		w := newWorld(seed, nil)
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

// misplaced are findings that follow from the order of what was written down: nobody else
// goes first where goroutines write down what they have done.
func misplaced(v opcheck.Violation) bool {
	return v.Promise == opcheck.ClaimDone
}

func hammer(w *world, seed uint64) {
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
						w.undo(ctx, a)
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

// intrude replaces a file from outside, beside whatever else happens to it. What is in its
// place by then is the intruder's to give up.
func (w *world) intrude(path string) {
	r, content := w.disk.Root(), w.content("theirs")
	must(put(r, "theirs.tmp", content))
	w.say(opcheck.Event{Kind: opcheck.Theirs, Resource: resourceOf(path), Content: content})
	err := r.Exchange("theirs.tmp", path)
	if errors.Is(err, fs.ErrNotExist) {
		err = r.RenameNoReplace("theirs.tmp", path)
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		must(r.SyncDir(".")) // else the power may take what is there now, and nobody can help that
		w.drop(r, "theirs.tmp")
		return
	}
	must(err)
}

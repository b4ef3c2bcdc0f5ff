package simulation_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
)

var seeds = flag.Int("seeds", 600, "how many seeds")

var only = flag.Int64("seed", -1, "one seed, as a failure names it")

// kept are seeds that failed once, and always run.
var kept = []uint64{7107, 58034, 60484, 169434, 172632, 229187, 396989, 530337}

// sums are over all seeds of a run.
type sums struct {
	mu         sync.Mutex // never held across a wait
	seeds      int
	steps      int
	least      int
	conflicts  int
	prefixes   int
	twice      int
	violations int
	counts     map[string]int
}

func (s *sums) add(t *testing.T, seed uint64, r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seeds++
	s.steps += r.steps
	s.conflicts += r.conflicts
	s.prefixes += r.prefixes
	if s.seeds == 1 || r.steps < s.least {
		s.least = r.steps
	}
	for what, n := range r.counts {
		s.counts[what] += n
	}
	if s.violations += len(r.problems); len(r.problems) > 0 && s.violations < 20 {
		t.Errorf("go test ./internal/proof/simulation -run 'TestSimulation$' -seed %d -v\n\t%v", seed, r.problems)
	}
}

// TestSimulation runs seeds; see the comment of the package. With REMIT_PROVE
// set it runs a million.
func TestSimulation(t *testing.T) {
	if *only >= 0 {
		r := simulate(t, uint64(*only), options{log: func(line string) { t.Log(line) }, digest: true, prefixes: true})
		t.Logf("%d steps, %d conflicts, %v, digest %x", r.steps, r.conflicts, r.counts, r.digest)
		require.Empty(t, r.problems)
		return
	}
	s := &sums{counts: map[string]int{}}
	for _, seed := range kept {
		s.add(t, seed, simulate(t, seed, options{prefixes: true}))
	}
	count := *seeds
	if statcheck.Racing {
		count /= 4
	}
	if os.Getenv("REMIT_PROVE") != "" {
		count = 1_000_000
	}
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	s.run(t, count)
	t.Logf("%d steps, at least %d in each, %d conflicts, %d seeds run twice, %d prefixes of journals: %v",
		s.steps, s.least, s.conflicts, s.twice, s.prefixes, s.counts)
	t.Logf("proved: seeded simulation: %d seeds, %d violations", s.seeds, s.violations)
	require.GreaterOrEqual(t, s.least, 50, "steps in each seed")
	require.GreaterOrEqual(t, s.conflicts, s.seeds, "conflicts")
	if statcheck.Racing {
		return // too few for rare events
	}
	for _, m := range []string{"edit", "straggler", "clock jump", "death", "takeover", "full disk", "failed sync", "power cut", "lost request", "lost answer", "late request", "unknown call", "counted"} {
		require.Positive(t, s.counts[m], m)
	}
}

// run runs seeds on all processors. One in sixteen runs twice and must be
// equal, of a million one in 64: whether a run follows from its seed depends on
// its code, and fifteen thousand seeds cover that code as well as sixty
// thousand. One in 512 recovers from each prefix of its journal.
func (s *sums) run(t *testing.T, count int) {
	workers, twice := runtime.GOMAXPROCS(0), 16
	if count >= 1_000_000 {
		twice = 64
	}
	t.Run("seeds", func(t *testing.T) {
		for n := range workers {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				for seed := n; seed < count; seed += workers {
					o := options{digest: seed%twice == 0, prefixes: seed%512 == 0}
					r := simulate(t, uint64(seed), o)
					s.add(t, uint64(seed), r)
					if o.digest {
						s.again(t, uint64(seed), r, o)
					}
				}
			})
		}
	})
}

func (s *sums) again(t *testing.T, seed uint64, r result, o options) {
	again := simulate(t, seed, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.twice++; r.digest != again.digest || !maps.Equal(r.counts, again.counts) {
		s.violations++
		t.Errorf("seed %d is another run the second time: %d steps and %d, %v and %v", seed, r.steps, again.steps, r.counts, again.counts)
	}
}

package crash_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
)

var only = flag.String("matrix", "", "one state, as a failure names it: CALLS/END/CRASH/CRASH...")

// seed selects the sample.
const seed = 1

// part is a part of the matrix: plans, and the size of the sample.
type part struct {
	name  string
	plans []plan
	depth int
	of    [4]uint64 // one state of so many, by the number of crashes before it
}

// plansOf returns all transactions of n calls, or a sample of them.
func plansOf(n, sample int) (plans []plan) {
	var grow func(calls []callKind)
	grow = func(calls []callKind) {
		if len(calls) == n {
			plans = append(plans, plan{calls, false}, plan{calls, true})
			return
		}
		for _, k := range kinds {
			grow(append(calls[:len(calls):len(calls)], k))
		}
	}
	grow(nil)
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	r.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
	if sample > 0 {
		plans = plans[:sample]
	}
	return plans
}

// partsOf returns the whole matrix, or the sample of an ordinary test run.
func partsOf(whole bool) []part {
	if !whole && statcheck.Racing {
		return []part{
			{"1 call", plansOf(1, 0), 2, [4]uint64{0, 48, 48}},
			{"2 calls", plansOf(2, 6), 2, [4]uint64{0, 48, 48}},
			{"3 calls", plansOf(3, 6), 2, [4]uint64{0, 64, 64}},
		}
	}
	if !whole {
		return []part{
			{"1 call", plansOf(1, 0), 2, [4]uint64{0, 8, 24}},
			{"2 calls", plansOf(2, 40), 2, [4]uint64{0, 24, 48}},
			{"3 calls", plansOf(3, 40), 2, [4]uint64{0, 32, 64}},
		}
	}
	// Measured: well under a millisecond of one core for each state.
	return []part{
		{"1 call", plansOf(1, 0), 3, [4]uint64{0, 1, 1, 16}},
		{"2 calls", plansOf(2, 0), 2, [4]uint64{0, 1, 24}},
		{"3 calls", plansOf(3, 0), 2, [4]uint64{0, 5, 480}},
	}
}

// TestCrashMatrix cuts transactions after each write, with each cut, and again
// in the processes that follow. The comment of the oracle lists the
// requirements. With REMIT_PROVE set it uses the whole matrix, otherwise a
// sample.
func TestCrashMatrix(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	x := newExplorer(t.Errorf)
	if *only != "" {
		one(t, x, *only)
	} else {
		whole := os.Getenv("REMIT_PROVE") != "" || statcheck.Whole()
		for _, p := range partsOf(whole) {
			x.all(p)
			t.Logf("%s: %d transactions; so far %d distinct states, %d of them after one crash, %d after two, %d after three; by the last crash: %v; %d runs",
				p.name, len(p.plans), len(x.states), x.crashes[1], x.crashes[2], x.crashes[3], x.kinds, x.runs)
		}
		t.Logf("proved: crash matrix: %d distinct states, %d violations", len(x.states), x.problems)
		if os.Getenv("REMIT_PROVE") != "" {
			require.GreaterOrEqual(t, len(x.states), 1_000_000)
		}
	}
	require.Zero(t, x.problems, "states are wrong; the first ones are above")
}

// all explores a part, on all processors.
func (x *explorer) all(p part) {
	x.depth, x.share = p.depth, func(crashes int) uint64 { return p.of[crashes] }
	plans := make(chan plan)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for plan := range plans {
				x.run(plan, nil)
			}
		})
	}
	for _, plan := range p.plans {
		plans <- plan
	}
	close(plans)
	workers.Wait()
}

// one follows the path that a failure names, and logs it.
func one(t *testing.T, x *explorer, way string) {
	parts := strings.Split(way, "/")
	require.GreaterOrEqual(t, len(parts), 2, "want CALLS/END/CRASH...")
	p := plan{abort: parts[1] == "abort"}
	for name := range strings.SplitSeq(parts[0], ",") {
		k, ok := kindNamed(name)
		require.True(t, ok, "no kind of call is named %q", name)
		p.calls = append(p.calls, k)
	}
	x.depth, x.log = len(parts)-1, t.Logf
	x.run(p, parts[2:])
}

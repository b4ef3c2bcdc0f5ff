package agent_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// TestFactsOfACallStay checks that the counts that a call was decided by do not
// follow the calls after it, no matter when they are read. Two sessions do the
// same. In one the facts are read at once, in the other at the end, from
// another goroutine while later calls are counted.
func TestFactsOfACallStay(t *testing.T) {
	for seed := range uint64(statcheck.Size(80, 400)) { // 10 under the race detector
		at, late := agent.NewCounters(hosttest.New(seed)), agent.NewCounters(hosttest.New(seed))
		want := countRandomly(at, seed, func(f perm.SessionFacts) func() string {
			text := textOf(f)
			return func() string { return text }
		})
		var readers sync.WaitGroup
		got := countRandomly(late, seed, func(f perm.SessionFacts) func() string {
			var text string
			readers.Go(func() { text = textOf(f) })
			return func() string { return text }
		})
		readers.Wait()
		require.NotEmpty(t, want)
		for i := range want {
			require.Equal(t, want[i](), got[i](), "seed %d, call %d", seed, i)
		}
		again := countRandomly(agent.NewCounters(hosttest.New(seed)), seed, func(f perm.SessionFacts) func() string {
			return func() string { return textOf(f) } // after all calls
		})
		for i := range want {
			require.Equal(t, want[i](), again[i](), "seed %d, call %d", seed, i)
		}
	}
}

func textOf(f perm.SessionFacts) string {
	text, err := json.Marshal(f)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// countRandomly counts calls that overlap, end in any order and at times that
// go back, and returns how to read the facts of each.
func countRandomly(c *agent.Counters, seed uint64, keep func(perm.SessionFacts) func() string) (facts []func() string) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	ends := []tool.Status{tool.StatusDone, tool.StatusFailed, tool.StatusDenied, tool.StatusUnknown, tool.StatusPending, tool.StatusTimeout}
	var open []string
	for i := range 120 {
		if len(open) > 0 && rnd.IntN(2) == 0 {
			at := rnd.IntN(len(open))
			c.End(open[at], ends[rnd.IntN(len(ends))], time.Duration(rnd.IntN(120)-60)*time.Minute)
			open = append(open[:at], open[at+1:]...)
			continue
		}
		call := fmt.Sprint("c_", i)
		sums := map[string]json.Number{"spend": json.Number(fmt.Sprint(rnd.IntN(100)))}
		facts = append(facts, keep(c.Begin(call, fmt.Sprint("tool_", rnd.IntN(40)), sums)))
		open = append(open, call)
	}
	return facts
}

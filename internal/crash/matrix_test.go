package crash_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var only = flag.String("matrix", "", "one state, as a failure names it: CALLS/END/CRASH/CRASH...")

// TestCrashMatrix cuts transactions at each moment at which something was written.
func TestCrashMatrix(t *testing.T) {
	x := newExplorer(2)
	began := time.Now()
	if *only != "" {
		parts := strings.Split(*only, "/")
		require.GreaterOrEqual(t, len(parts), 2, "want CALLS/END/CRASH...")
		p := plan{abort: parts[1] == "abort"}
		for name := range strings.SplitSeq(parts[0], ",") {
			k, ok := kindNamed(name)
			require.True(t, ok, "no kind of call is named %q", name)
			p.calls = append(p.calls, k)
		}
		x.depth, x.log = max(x.depth, len(parts)-1), t.Logf
		x.run(p, parts[2:])
	} else {
		for _, k := range kinds {
			for _, abort := range []bool{false, true} {
				x.run(plan{[]kind{k}, abort}, nil)
			}
		}
	}
	t.Log(x.runs, "runs,", len(x.states), "states", x.kinds, time.Since(began))
	for i, p := range x.problems {
		if i < 5 {
			t.Error(p)
		}
	}
	require.Zero(t, len(x.problems), "findings; the first ones are above")
}

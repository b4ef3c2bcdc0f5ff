package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRuns runs each quick comparison once, so that a broken one is found
// before it is needed.
func TestRuns(t *testing.T) {
	var out bytes.Buffer
	chosen, err := matching("decide|call|write")
	require.NoError(t, err)
	_, err = run(&out, chosen, clock{rounds: 1, slice: time.Microsecond}, true, false, "")
	require.NoError(t, err)
	var r report
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	require.Len(t, r.Results, 9)
	for _, row := range r.Results {
		require.Positive(t, row.Ratio, row.What)
	}
}

func TestRatio(t *testing.T) {
	// The second round was slow for both, the third for one: neither counts.
	got := times{"a": {1, 10, 9}, "b": {2, 20, 2}}
	require.InDelta(t, 0.5, got.ratio("a", "b"), 0)
	require.False(t, most("s", "w", got, "a", "b", 0.4).Met)
	require.True(t, most("s", "w", got, "a", "b", 0.5).Met)
	require.InDelta(t, 2, least("s", "w", got, "a", "b", 3).Ratio, 0)
	require.False(t, least("s", "w", got, "a", "b", 3).Met)
	require.True(t, besides("s", "w", got, "a", "b").Met)
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, table(&out, []promiseRow{
		{What: "one", Ratio: 0.5, Target: 0.7, Met: true}, {What: "two", Ratio: 2, Target: 3, Least: true}, {What: "three", Ratio: 1, Met: true},
	}))
	require.Contains(t, out.String(), "one    0.500  <= 0.7  met")
	require.Contains(t, out.String(), "two    2.000  >= 3    MISSED")
	require.Contains(t, out.String(), "three  1.000                 ")
}

// TestCheck checks that a suite fails only if each of its measurements is beyond
// the accepted spread, and if it lost a row.
func TestCheck(t *testing.T) {
	a := ratios{}
	a.accept([]promiseRow{{Suite: "s", What: "time", Ratio: 1}, {Suite: "s", What: "rate", Ratio: 0.5, Least: true}})
	a.accept([]promiseRow{{Suite: "s", What: "time", Ratio: 1.2}, {Suite: "s", What: "rate", Ratio: 0.4, Least: true}})
	require.Equal(t, accepted{Low: 1, High: 1.2, Runs: 2}, a["s"]["time"])
	file := filepath.Join(t.TempDir(), "ratios.json")
	require.NoError(t, a.write(file))
	measured := 0
	measuring := func(times, rates []float64) []suite {
		measured = 0
		return []suite{{"s", func(clock) ([]promiseRow, error) {
			n := measured
			measured++
			return []promiseRow{{Suite: "s", What: "time", Ratio: times[n]}, {Suite: "s", What: "rate", Ratio: rates[n], Least: true}, {Suite: "s", What: "new", Ratio: 9}}, nil
		}}}
	}
	var out bytes.Buffer
	require.NoError(t, check(&out, file, measuring([]float64{1.3}, []float64{0.36}), clock{}), "within the slack")
	require.NoError(t, check(&out, file, measuring([]float64{2, 1}, []float64{0.5, 0.5}), clock{}), "one measurement is spoilt")
	require.Equal(t, 2, measured)
	require.Error(t, check(&out, file, measuring([]float64{2, 2, 1.5}, []float64{0.5, 0.5, 0.5}), clock{}))
	require.Contains(t, out.String(), "time: 1.500, and it was at most 1.200 in 2 runs")
	require.Error(t, check(&out, file, measuring([]float64{1, 1, 1}, []float64{0.1, 0.1, 0.3}), clock{}))
	require.Contains(t, out.String(), "rate: 0.300, and it was at least 0.400 in 2 runs")
	lost := []suite{{"s", func(clock) ([]promiseRow, error) { return []promiseRow{{Suite: "s", What: "time", Ratio: 1}}, nil }}}
	require.Error(t, check(&out, file, lost, clock{}))
	require.NoError(t, accept(file, []promiseRow{{Suite: "s", What: "time", Ratio: 1}}))
	require.NoError(t, check(&out, file, lost, clock{}), "accepted")
	_, err := matching("nothing like it")
	require.Error(t, err)
}

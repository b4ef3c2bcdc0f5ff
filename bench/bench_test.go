package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRuns runs each quick comparison once, so that a broken one is found
// before it is needed.
func TestRuns(t *testing.T) {
	var out bytes.Buffer
	_, err := run(&out, "decide|call|write", clock{rounds: 1, slice: time.Microsecond}, true)
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

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRead: what tests say they proved is found among everything else, and all of it
// is shown.
func TestRead(t *testing.T) {
	var shown bytes.Buffer
	found, err := read(strings.NewReader(`{"Action":"run","Test":"A"}
{"Action":"output","Test":"A","Output":"=== RUN   A\n"}
{"Action":"output","Test":"A","Output":"    a_test.go:1: proved: cuts: 1000 states, 0 violations\n"}
not json
{"Action":"output","Test":"A","Output":"    a_test.go:2: proved: cuts, but not so\n"}
{"Action":"output","Test":"A","Output":"    a_test.go:3: proved: kills: 7, 2 violations\n"}
`), &shown)
	require.NoError(t, err)
	require.Equal(t, []result{{what: "cuts", count: "1000 states", violations: "0"}, {what: "kills", count: "7", violations: "2"}}, found)
	require.NotContains(t, shown.String(), "=== RUN")
	require.Contains(t, shown.String(), "but not so")
}

// TestTable: a part that failed does not look like one that passed.
func TestTable(t *testing.T) {
	require.Equal(t, `| what | how many | violations | took |
| --- | ---: | ---: | ---: |
| cuts | 12 states | 0 | 1m1s |
| kills |  | FAILED | 0s |
`, table([]result{{what: "cuts", count: "12 states", violations: "0", took: 61 * time.Second}, {what: "kills", failed: true}}))
}

// TestSilence: a part whose tests say nothing has proved nothing.
func TestSilence(t *testing.T) {
	p := part{name: "nothing", args: []string{"-run", "^TestOfThisName$", "."}, lines: 1}
	_, err := p.run(context.Background())
	require.ErrorContains(t, err, "0 of its tests say what they proved, want 1")
	require.Equal(t, 2, run(context.Background(), []string{"unheard-of"}))
}

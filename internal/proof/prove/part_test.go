package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRead checks that the reports of tests are found among all output, and
// that all output is shown.
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

// TestTable checks that a failed part does not look like one that passed.
func TestTable(t *testing.T) {
	require.Equal(t, `| what | how many | violations | took |
| --- | ---: | ---: | ---: |
| cuts | 12 states | 0 | 1m1s |
| kills |  | FAILED | 0s |
`, table([]result{{what: "cuts", count: "12 states", violations: "0", took: 61 * time.Second}, {what: "kills", failed: true}}))
}

// TestOfItself and TestOfItsFailure are run by the parts below.
func TestOfItself(t *testing.T) { t.Log("proved: itself: 1 test, 0 violations") }

func TestOfItsFailure(t *testing.T) {
	if os.Getenv("REMIT_PROVE") != "" {
		t.Log("proved: failure: 1 test, 1 violations")
	}
}

// TestRun checks that the exit code is 0 only if every named part reported no
// violation. A part whose tests report nothing has proved nothing.
func TestRun(t *testing.T) {
	parts := []part{
		{"self", "", []string{"-run", "^TestOfItself$", "."}, 1},
		{"failure", "", []string{"-run", "^TestOfItsFailure$", "."}, 1},
		{"silence", "", []string{"-run", "^TestOfThisName$", "."}, 1},
		{"nowhere", "", []string{"./no/such/folder"}, 0},
	}
	for _, tt := range []struct {
		names []string
		code  int
		says  string
	}{
		{[]string{"self"}, 0, "| itself | 1 test | 0 |"},
		{[]string{"failure"}, 1, "| failure | 1 test | 1 |"},
		{[]string{"self", "silence"}, 1, "| silence |  | FAILED |"},
		{[]string{"nowhere"}, 1, "| nowhere |  | FAILED |"},
		{[]string{"self", "unheard-of"}, 2, ""},
		{nil, 1, "| nowhere |"},
	} {
		var out bytes.Buffer
		require.Equal(t, tt.code, run(t.Context(), &out, parts, tt.names), tt.names)
		require.Contains(t, out.String(), tt.says)
	}
	require.NotEmpty(t, partsNamed())
}

// partsNamed returns the parts as the usage lists them.
func partsNamed() string {
	var out bytes.Buffer
	usage(&out, parts())
	return out.String()
}

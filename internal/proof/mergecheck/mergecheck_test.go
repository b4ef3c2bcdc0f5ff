package mergecheck_test

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/mergecheck"
)

func Example() {
	m := mergecheck.Merge{Before: "one\n", Left: "two\n", Now: "three\n", Result: "one\n", Clean: true}
	_, err := mergecheck.Check(".", m)
	fmt.Println(err != nil)
	// Output: true
}

// TestCheck checks that each kind of wrong merge is found.
func TestCheck(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	good := mergecheck.Merge{Before: "a\nb\nc\nd\n", Left: "A\nb\nc\nd\n", Now: "A\nb\nc\nD\n", Clean: true, Result: "a\nb\nc\nD\n"}
	v, err := mergecheck.Check(t.TempDir(), good)
	require.NoError(t, err)
	require.Equal(t, mergecheck.Verdict{Both: true}, v)
	for name, tt := range map[string]struct {
		change func(m *mergecheck.Merge)
		says   string
	}{
		"a lost line":       {func(m *mergecheck.Merge) { m.Result = "a\nb\nc\nd\n" }, "the line"},
		"a remaining line":  {func(m *mergecheck.Merge) { m.Result = "A\nb\nc\nD\n" }, "the line"},
		"another order":     {func(m *mergecheck.Merge) { m.Result = "a\nc\nb\nD\n" }, "git merges to"},
		"another end":       {func(m *mergecheck.Merge) { m.Result = "a\nb\nc\nD" }, "the line"},
		"no conflict":       {func(m *mergecheck.Merge) { m.Now, m.Result = "X\nb\nc\nd\n", "X\nb\nc\nd\n" }, "the line"},
		"a changed refusal": {func(m *mergecheck.Merge) { m.Clean = false }, "a conflict changed the file"},
	} {
		m := good
		tt.change(&m)
		_, err := mergecheck.Check(t.TempDir(), m)
		require.ErrorContains(t, err, tt.says, name)
	}
	left := good
	left.Clean, left.Result = false, left.Now
	v, err = mergecheck.Check(t.TempDir(), left)
	require.NoError(t, err)
	require.Equal(t, mergecheck.Verdict{Stricter: true}, v)
}

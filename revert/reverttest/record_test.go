package reverttest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/reverttest"
	"github.com/remit-dev/remit/tool"
)

// watched is a test that records messages instead of failing.
type watched struct {
	testing.TB
	failed, logged []string
}

func (w *watched) Helper()      {}
func (w *watched) Name() string { return "TestMine/one" }
func (w *watched) Errorf(format string, args ...any) {
	w.failed = append(w.failed, fmt.Sprintf(format, args...))
}

func (w *watched) Logf(format string, args ...any) {
	w.logged = append(w.logged, fmt.Sprintf(format, args...))
}

// TestTest checks that a grade below the wanted one fails the test, with a
// command that repeats the finding.
func TestTest(t *testing.T) {
	c := reverttest.Config{NewEnv: textStores(false, true), Inputs: []any{"new"}, Seed: 1}
	forgets := made(t, "forgets", both, effect.Reversible, tool.RevertWith("1", back("a")))
	w := &watched{TB: t}
	r := reverttest.Test(w, forgets, provenance.Compensable, c)
	require.Equal(t, provenance.NotUndoable, r.Grade)
	require.Len(t, w.failed, 1)
	require.Contains(t, w.failed[0], "tool forgets is not_undoable, and should be compensable; seed 1")
	require.Contains(t, w.failed[0], "again: REVERTTEST_ONLY='0' go test -v -run '^TestMine$/^one$' .")
	w = &watched{TB: t}
	reverttest.Test(w, forgets, provenance.NotUndoable, c)
	require.Empty(t, w.failed)

	t.Setenv("REVERTTEST_ONLY", "0/5-died")
	for range 2 {
		w = &watched{TB: t}
		reverttest.Test(w, forgets, provenance.Compensable, c)
		require.Empty(t, w.failed)
		require.Len(t, w.logged, 1)
		require.Contains(t, w.logged[0], "0/5-died\n    the process dies: journal: append\n    a new process recovers")
	}
}

// TestKeep checks that a file of other grades fails the test until it is
// written.
func TestKeep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "grades.json")
	keep := func(results ...reverttest.Result) string {
		w := &watched{TB: t}
		reverttest.SaveGrades(w, file, results...)
		return strings.Join(w.failed, "\n")
	}
	one := reverttest.Result{Tool: "one", Digest: "sha256:1", Grade: provenance.CrashUndoable}
	two := reverttest.Result{Tool: "two", Digest: "sha256:2", Grade: provenance.Compensable, Against: &reverttest.Finding{What: "traces"}}
	require.Contains(t, keep(one), "no such file")
	t.Setenv("REVERTTEST_UPDATE", "1")
	require.Empty(t, keep(one, two))
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, keep(one, two))
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(written), string(again), "grades that stand are left as they are")
	t.Setenv("REVERTTEST_UPDATE", "")
	require.Empty(t, keep(one, two))
	require.Contains(t, keep(one), "holds a grade of tool two")
	worse := one
	worse.Grade = provenance.Compensable
	require.Contains(t, keep(worse, two), "does not hold that tool one with digest sha256:1 is compensable; to write what was found: REVERTTEST_UPDATE=1")
	changed := one
	changed.Digest = "sha256:3"
	require.Contains(t, keep(changed, two), "digest sha256:3")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(written), "compensable", "crash_undoable", 1)), 0o600))
	require.Contains(t, keep(one, two), "its sum is of other words")
}

// TestRefused checks that a tool without a usable run has an error and no
// grade.
func TestRefused(t *testing.T) {
	honest := made(t, "both", both, effect.Reversible, tool.RevertWith("1", back("a", "b")))
	world := textStores(false, false)
	for name, tt := range map[string]struct {
		tool tool.Tool
		c    reverttest.Config
		why  string
	}{
		"no tool":        {tool.Tool{}, reverttest.Config{NewEnv: world, Inputs: []any{"x"}}, "the zero Tool"},
		"no environment": {honest, reverttest.Config{Inputs: []any{"x"}}, "Config.NewEnv is missing"},
		"no input":       {honest, reverttest.Config{NewEnv: world}, "Config.Inputs is empty"},
		"a bad input":    {honest, reverttest.Config{NewEnv: world, Inputs: []any{tool.Args{"x": 1}}}, "should work in a fresh world, and ended invalid"},
		"no effect":      {made(t, "none", both, effect.Reversible, tool.RevertWith("1", back("a", "b"))), reverttest.Config{NewEnv: empty(world), Inputs: []any{"new"}}, "changes anything"},
		"no such run":    {honest, reverttest.Config{NewEnv: world, Inputs: []any{"x"}, Only: "nonsense"}, "names no run"},
		"no such fault":  {honest, reverttest.Config{NewEnv: world, Inputs: []any{"x"}, Only: "0/x-died"}, "names no fault"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := reverttest.Grade(tt.tool, tt.c)
			require.ErrorContains(t, err, tt.why)
			require.Equal(t, provenance.Ungraded, r.Grade)
		})
	}
}

// empty returns an environment whose snapshot is empty.
func empty(world func(*reverttest.Wire) (reverttest.TestEnv, error)) func(*reverttest.Wire) (reverttest.TestEnv, error) {
	return func(w *reverttest.Wire) (reverttest.TestEnv, error) {
		made, err := world(w)
		made.Snapshot = func() (map[string]string, error) { return nil, nil }
		return made, err
	}
}

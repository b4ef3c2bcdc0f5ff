package mutant_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/mutant"
)

// suites are the tests that a mutant of a folder is shown, those that find most
// soonest first.
func suites(folder string) [][]string {
	all := [][]string{
		{"./" + folder}, {"./revert/...", "./internal/line", "./tool", "./agent"}, {"./ctxperm/...", "./tool/builtin/..."}, {"./cmd/remit"},
	}
	if strings.HasPrefix(folder, "ctxperm/") {
		all[1], all[2] = all[2], all[1]
	}
	return all
}

// TestSeededBugs plants each bug in turn and wants the tests to notice. It takes an hour,
// so it is run by make prove. REMIT_MUTANT holds a part of the names of those to try.
func TestSeededBugs(t *testing.T) {
	if os.Getenv("REMIT_PROVE") == "" {
		t.Skip("each bug takes the tests of several packages: REMIT_PROVE=1 plants them")
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	files, err := mutant.All(root)
	require.NoError(t, err)
	healthy(t, root)
	planted, noticed := 0, 0
	for _, f := range files {
		all, err := f.Mutants()
		require.NoError(t, err)
		for _, m := range all {
			name := fmt.Sprintf("%s %s, %s", f.Path, m.Name, m.How)
			if !strings.Contains(name, os.Getenv("REMIT_MUTANT")) {
				continue
			}
			v, err := m.Try(t.Context(), root, f.Path, t.TempDir(), suites(path.Dir(f.Path)))
			require.NoError(t, err)
			planted++
			if !v.Survived() && v.Why == "" {
				noticed++
			}
			t.Logf("%-90s %s", name, cmp.Or(v.By, v.Why, "SURVIVED"))
			if v.By == "" {
				t.Errorf("%s:%d: %s: nothing notices: %s", f.Path, m.Line, name, v.Why)
			}
		}
	}
	t.Logf("proved: seeded bugs: %d planted, %d violations", planted, planted-noticed)
	require.NotZero(t, planted, "no bug has such a name")
}

// healthy wants the tests to pass while no bug is planted: one that fails anyway would
// notice every bug.
func healthy(t *testing.T, root string) {
	t.Helper()
	for _, suite := range suites(mutant.Folders()[0]) {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-vet=off"}, suite...)...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

package mutation_test

import (
	"cmp"
	"flag"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/mutation"
)

var update = flag.Bool("update", false, "write down which test notices which bug")

// record is the file with the table of bugs, below the root.
const record = "docs/evidence/seeded-bugs.md"

// slow matches the tests of ctxperm/files that take seconds.
const slow = "^Test(Meddled.*|Crash.*|PowerCuts.*|Storm|DiskTrouble|ShortTrouble)$"

// suites returns the tests for a mutant of a folder, after the test that is
// known to notice it. Those that find most soonest come first.
func suites(folder string) [][]string {
	own, core := []string{"./" + folder}, []string{"./revert/...", "./internal/callstate", "./tool", "./internal/pipeline", "./agent"}
	crashes, handles, command := []string{"./internal/proof/crash"}, []string{"./ctxperm/...", "./tool/builtin/..."}, []string{"./cmd/remit"}
	switch {
	case folder == "revert/sqlite":
		return [][]string{own, {"-run", "^TestContentIsSynced$", "./internal/proof/killtest"}, core, command}
	case folder == "perm/rego":
		return [][]string{own, {"./policies"}, {"./agent"}}
	case folder == "internal/toolstate":
		return [][]string{own, {"-run", "State", "./agent"}, core, command}
	case folder == "ctxperm/files":
		return [][]string{{"-skip", slow, own[0]}, crashes, own, handles, core, command}
	case strings.HasPrefix(folder, "ctxperm"):
		return [][]string{own, handles, core, command}
	}
	return [][]string{own, crashes, core, handles, command}
}

// bug is a mutant and its verdict.
type bug struct {
	mutation.Mutant
	path  string
	title string
	mutation.Verdict
	err error
}

// bugs returns all mutants.
func bugs(t *testing.T, root string) (all []*bug) {
	files, err := mutation.All(root)
	require.NoError(t, err)
	for _, f := range files {
		some, err := f.Mutants()
		require.NoError(t, err)
		for _, m := range some {
			all = append(all, &bug{Mutant: m, path: f.Path, title: m.Title(f.Path)})
		}
	}
	return all
}

func known(t *testing.T, root string) (mutation.Table, string) {
	text, err := os.ReadFile(filepath.Join(root, record))
	require.NoError(t, err)
	table, err := mutation.ParseTable(string(text))
	require.NoError(t, err)
	return table, string(text)
}

// TestTable checks that the table can be read and written, names a test for
// each mutant, and contains no other bug. So a new place needs a test that
// notices it.
func TestTable(t *testing.T) {
	table, text := known(t, "../../..")
	require.Equal(t, text, table.Into(text), "the table is sorted")
	filled := mutation.Table{"b": "./p TestB", "a": "./p TestA"}
	require.Equal(t, text, table.Into(filled.Into(text)))
	all := bugs(t, "../../..")
	require.NotEmpty(t, all)
	for _, b := range all {
		require.NotNil(t, table.Suite(b.title), "%s:%d: which test notices it? REMIT_PROVE=1 REMIT_MUTANT=%q go test ./internal/proof/mutation -run TestSeededBugs -update -v", b.path, b.Line, b.title)
		delete(table, b.title)
	}
	require.Empty(t, table, "no such bug can be planted")
	again, err := mutation.ParseTable(filled.Into(text))
	require.NoError(t, err)
	require.Equal(t, filled, again)
	require.Equal(t, []string{"-run", "^TestA$", "./p"}, again.Suite("a"))
	_, err = mutation.ParseTable("nothing")
	require.ErrorContains(t, err, "no table")
	_, err = mutation.ParseTable("| bug | noticed by |\n| --- | --- |\n| a | b |\n| a | c |\n")
	require.ErrorContains(t, err, "named twice")
}

// TestSeededBugs plants each bug and requires that the tests notice it. It is
// slow, so make prove runs it. REMIT_MUTANT is a part of the names to try.
func TestSeededBugs(t *testing.T) {
	if os.Getenv("REMIT_PROVE") == "" {
		t.Skip("each bug takes a build and a test: REMIT_PROVE=1 plants them")
	}
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	table, text := known(t, root)
	all := slices.DeleteFunc(bugs(t, root), func(b *bug) bool { return !strings.Contains(b.title, os.Getenv("REMIT_MUTANT")) })
	require.NotEmpty(t, all, "no bug has such a name")
	healthy(t, root, all, table)
	plant(t, root, all, table)
	noticed := 0
	for _, b := range all {
		require.NoError(t, b.err)
		if b.By == "" {
			t.Errorf("%s:%d: %s: nothing notices: %s", b.path, b.Line, b.title, b.Why)
			continue
		}
		noticed++
		table[b.title] = strings.Replace(b.By, "github.com/remit-dev/remit", ".", 1)
	}
	t.Logf("proved: seeded bugs: %d planted, %d violations", len(all), len(all)-noticed)
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join(root, record), []byte(table.Into(text)), 0o600))
	}
}

// plant tries all bugs, two at a time: each waits for compilers and disks too.
func plant(t *testing.T, root string, all []*bug, table mutation.Table) {
	next := make(chan *bug)
	var workers sync.WaitGroup
	for range 2 {
		scratch := t.TempDir()
		workers.Go(func() {
			for b := range next {
				var tests [][]string
				if known := table.Suite(b.title); known != nil {
					tests = append(tests, known)
				}
				b.Verdict, b.err = b.Try(t.Context(), root, b.path, scratch, append(tests, suites(path.Dir(b.path))...))
				t.Logf("%-90s %s", b.title, cmp.Or(b.By, b.Why, "SURVIVED"))
			}
		})
	}
	for _, b := range all {
		next <- b
	}
	close(next)
	workers.Wait()
}

// healthy requires that the tests that notice bugs pass without a bug: a test
// that always fails would notice every bug.
func healthy(t *testing.T, root string, all []*bug, table mutation.Table) {
	t.Helper()
	tests := map[string][]string{}
	for _, b := range all {
		if folder, test, ok := strings.Cut(table[b.title], " "); ok && !slices.Contains(tests[folder], test) {
			tests[folder] = append(tests[folder], test)
		}
	}
	for folder, names := range tests {
		cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-run", "^("+strings.Join(names, "|")+")$", folder)
		cmd.Dir, cmd.Env = root, mutation.Ordinary(os.Environ())
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

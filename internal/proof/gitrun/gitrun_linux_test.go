package gitrun_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/proof/gitrun"
	"github.com/remit-dev/remit/internal/proof/treecheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

func TestMain(m *testing.M) {
	handle.Main()
	os.Exit(m.Run())
}

// resultCounts counts the results of the sequences.
type resultCounts struct{ sequences, calls, done, denied, differences int }

// TestGit runs random sequences of git commands under the default policy. It
// reverts each, redoes it, and reverts it again. A checker that shares no code
// with remit compares the trees. REMIT_LONG=1 runs 1,000; REMIT_SEED names one.
func TestGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("this machine has no git")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("this machine has no bash")
	}
	first, count := seeds(t, 4)
	var all resultCounts
	// In sequence: a process that another goroutine has just started briefly
	// holds files that this one has open for writing, and a revert then reports
	// a conflict.
	for seed := first; seed < first+count; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { try(t, seed, &all) })
	}
	t.Logf("%d calls, %d done, %d denied", all.calls, all.done, all.denied)
	t.Logf("proved: random sequences of git commands under the default policy, reverted, redone and reverted: %d sequences, %d violations", all.sequences, all.differences)
}

// seeds returns the first seed of a run and their number. It uses REMIT_LONG
// and REMIT_SEED.
func seeds(t *testing.T, usual uint64) (first, count uint64) {
	t.Helper()
	first, count = 1, usual
	if os.Getenv("REMIT_LONG") != "" {
		count = 1000
	}
	if text := os.Getenv("REMIT_SEED"); text != "" {
		from, to, _ := strings.Cut(text, "-")
		n, err := strconv.ParseUint(from, 10, 64)
		require.NoError(t, err)
		first, count = n, 1
		if to != "" {
			last, err := strconv.ParseUint(to, 10, 64)
			require.NoError(t, err)
			count = last - n + 1
		}
	}
	return first, count
}

func try(t *testing.T, seed uint64, all *resultCounts) {
	t.Helper()
	s := gitrun.New(seed)
	dir := filepath.Join(t.TempDir(), "ws")
	require.NoError(t, os.Mkdir(dir, 0o755))
	build(t, dir, s.Setup)
	d, err := handle.New(handle.Config{Scratch: filepath.Join(t.TempDir(), "scratch")})
	require.NoError(t, err)
	rt, err := agent.New(agent.Log(slog.New(slog.DiscardHandler)), agent.Tools(builtin.Programs()...), agent.Root("workspace", dir), agent.Driver(d))
	require.NoError(t, err)
	defer func() { require.NoError(t, rt.Close()) }()
	session, err := rt.Session(t.Context(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	before := capture(t, dir)
	tx, err := session.Begin(t.Context())
	require.NoError(t, err)
	var told []string
	done := 0
	for _, script := range s.Calls {
		o, err := tx.Invoke(t.Context(), "shell_run", tool.Args{"script": script})
		all.calls++
		switch o.Status {
		case tool.StatusDone:
			done++
		case tool.StatusDenied:
			if strings.Contains(o.Error.Why, "remit doctor") {
				t.Skip("this machine has no sandbox: " + o.Error.Why)
			}
			all.denied++
		default:
			t.Errorf("seed %d: %s: %v\n%s", seed, o.Status, err, script)
		}
		told = append(told, fmt.Sprintf("%s\n--- %s", script, o.Text))
	}
	all.sequences++
	all.done += done
	require.NoError(t, tx.Commit(t.Context()))
	after := capture(t, dir)
	check := func(what string, want treecheck.Tree) {
		found := slices.DeleteFunc(treecheck.Compare(want, capture(t, dir)), func(d treecheck.Difference) bool {
			return d.Field == treecheck.DirMtime // not promised by a revert
		})
		if len(found) > 0 {
			all.differences++
			t.Errorf("seed %d: %s: %v\n%s", seed, what, found[:min(len(found), 20)], strings.Join(told, "\n"))
		}
	}
	rep, err := session.Revert(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err, "seed %d: %+v", seed, rep)
	check("reverted", before)
	if done == 0 {
		return
	}
	rep, err = session.Redo(t.Context(), tx.ID())
	require.NoError(t, err, "seed %d: %+v", seed, rep)
	check("redone", after)
	rep, err = session.Revert(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err, "seed %d: %+v", seed, rep)
	check("reverted again", before)
}

func build(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + t.TempDir(), "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true"}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

func capture(t *testing.T, dir string) treecheck.Tree {
	t.Helper()
	tree, err := treecheck.Capture(dir)
	require.NoError(t, err)
	return tree
}

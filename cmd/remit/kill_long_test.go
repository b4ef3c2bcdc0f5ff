//go:build unix

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/proof/statcheck"
)

// longCalls is how many calls the script has that is killed.
const longCalls = 200

// longKills is at how many instants: 6, or 160 with REMIT_LONG set, as in make prove ARGS=long.
func longKills() int {
	if statcheck.Whole() {
		return 160
	}
	return 6
}

// killSeed is REMIT_SEED, or one that is always the same.
func killSeed(t *testing.T) uint64 {
	text := os.Getenv("REMIT_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, "REMIT_SEED")
	return seed
}

// longSetup makes a workspace with files of several kinds and a script for it.
func longSetup(t *testing.T, seed uint64) (ws, state, script string) {
	dir := t.TempDir()
	ws, state, script = filepath.Join(dir, "ws"), filepath.Join(dir, "state"), filepath.Join(dir, "script.jsonl")
	a := &author{r: rand.New(rand.NewPCG(seed, 200)), files: map[string]string{}, dirs: []string{"", "one", "one/two", "three"}}
	long := time.Date(2024, 2, 3, 4, 5, 6, 789, time.UTC)
	for i, d := range a.dirs {
		require.NoError(t, os.MkdirAll(filepath.Join(ws, d), 0o755))
		for n := range 3 {
			name := filepath.ToSlash(filepath.Join(d, fmt.Sprintf("old%d.txt", n)))
			a.files[name] = a.text()
			file := filepath.Join(ws, name)
			require.NoError(t, os.WriteFile(file, []byte(a.files[name]), 0o600))
			require.NoError(t, os.Chmod(file, []os.FileMode{0o600, 0o640, 0o755}[n]))
			require.NoError(t, os.Chtimes(file, long, long.Add(time.Duration(i)*time.Hour)))
			setTestXattr(t, file, "user.about", fmt.Sprint(i, n))
		}
		require.NoError(t, os.Symlink("old0.txt", filepath.Join(ws, d, "link")))
	}
	require.NoError(t, os.WriteFile(script, []byte(a.script(longCalls)), 0o600))
	return ws, state, script
}

// TestKilledLongRun kills `remit run` of 200 calls over every file tool with
// SIGKILL at random instants; each time recover and revert, which in a third of
// the runs are killed too, bring the workspace back as it was: bytes, modes,
// times, links and attributes. The seed is printed; REMIT_SEED repeats it.
func TestKilledLongRun(t *testing.T) {
	t.Parallel()
	seed := killSeed(t)
	trace := filepath.Join(t.TempDir(), "trace")
	ws, state, script := longSetup(t, seed)
	err := child(t, 0, trace, "run", "--workspace", ws, "--state", state, "--at-end", "leave-open", "--keep-going", script)
	var exit *exec.ExitError
	if errors.As(err, &exit) { // some calls fail: the author forgets, and a batch may meet itself
		require.Equal(t, 5, exit.ExitCode(), "control")
	} else {
		require.NoError(t, err)
	}
	raw, err := os.ReadFile(trace)
	require.NoError(t, err)
	points := strings.Fields(string(raw))
	done := strings.Count(string(raw), "tool.execute")
	require.GreaterOrEqual(t, done, longCalls, "control: the calls ran")
	var mu sync.Mutex
	kinds, again := map[string]int{}, 0
	r := rand.New(rand.NewPCG(seed, 9))
	t.Run("kills", func(t *testing.T) {
		for n := range longKills() {
			at, more := 1+r.IntN(len(points)), r.IntN(3) == 0
			second, third := 1+r.IntN(60), 1+r.IntN(2000)
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				killLong(t, seed, at, second, third, more)
				mu.Lock()
				defer mu.Unlock()
				kinds[kindOfPoint(points[at-1])]++
				if more {
					again++
				}
			})
		}
	})
	t.Logf("seed %d: %d kills over %d scheduling points, recover and revert killed too in %d: %v", seed, longKills(), len(points), again, kinds)
	t.Logf("proved: long runs killed, recovered and reverted: %d kills, %d violations", longKills(), map[bool]int{true: 1}[t.Failed()])
}

func kindOfPoint(point string) string {
	kind, _, _ := strings.Cut(point, ".")
	if strings.HasPrefix(point, "journal.append") {
		kind = "journal.append"
	}
	return kind
}

func killLong(t *testing.T, seed uint64, at, second, third int, more bool) {
	ws, state, script := longSetup(t, seed)
	before := fullSnapshot(t, ws)
	place := []string{"--workspace", ws, "--state", state}
	about := fmt.Sprintf("seed %d, killed at point %d (then %d and %d: %v)", seed, at, second, third, more)
	killed(t, child(t, at, "", append([]string{"run", "--at-end", "leave-open", "--keep-going", script}, place...)...), about)
	if more {
		_ = child(t, second, "", append([]string{"recover"}, place...)...)
	}
	code, out := command(t, append([]string{"recover"}, place...)...)
	require.Zero(t, code, "%s: recover: %s", about, out)
	for _, txn := range unfinished(t, state) {
		if more {
			_ = child(t, third, "", append([]string{"revert", txn}, place...)...)
		}
		code, out = command(t, append([]string{"revert", txn}, place...)...)
		if more && code == int(cli.ExitUsage) && strings.Contains(out, "works on") {
			continue // the killed revert had ended it
		}
		require.Zero(t, code, "%s: revert: %s", about, out)
	}
	require.Equal(t, before, fullSnapshot(t, ws), about)
	code, out = command(t, append([]string{"fsck"}, place...)...)
	require.Zero(t, code, "%s: fsck: %s", about, out)
}

func killed(t *testing.T, err error, about string) {
	t.Helper()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, about)
	status, ok := exit.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	require.Equal(t, syscall.SIGKILL, status.Signal(), about)
}

// fullSnapshot also has what snapshot leaves out: link targets and attributes.
func fullSnapshot(t *testing.T, dir string) map[string]string {
	m := snapshot(t, dir)
	for name := range m {
		path := filepath.Join(dir, name)
		if target, err := os.Readlink(path); err == nil {
			m[name] = "-> " + target
			continue
		}
		m[name] += testXattrs(t, path)
	}
	return m
}

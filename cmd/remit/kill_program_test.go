//go:build linux

package main

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/proof/statcheck"
)

const programScript = `{"tool":"shell_run","args":{"script":"printf one > a.txt; rm c.txt; mkdir n; ln a.txt n/link; ln -s ../b.txt n/sym; chmod 600 b.txt"}}
{"tool":"file_write","args":{"path":"e.txt","content":"between"}}
{"tool":"process_run","args":{"argv":["sed","-i","s/bop/pob/","b.txt"]}}
{"tool":"shell_run","args":{"script":"rm -r sub; mv twin moved; touch -d 2001-01-01 e.txt; for i in 1 2 3; do echo $i > n/$i; done"}}
`

func programSetup(t *testing.T) (ws, state, script string) {
	ws, state, script = killSetup(t)
	require.NoError(t, os.WriteFile(script, []byte(programScript), 0o600))
	require.NoError(t, os.Link(filepath.Join(ws, "a.txt"), filepath.Join(ws, "twin")))
	return ws, state, script
}

// withLinks is fullSnapshot, and which names are one file.
func withLinks(t *testing.T, dir string) map[string]string {
	m := fullSnapshot(t, dir)
	first := map[uint64]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		require.NoError(t, err)
		var is syscall.Stat_t
		require.NoError(t, syscall.Lstat(path, &is))
		name, err := filepath.Rel(dir, path)
		if is.Mode&syscall.S_IFMT == syscall.S_IFREG && is.Nlink > 1 {
			if first[is.Ino] == "" {
				first[is.Ino] = name
			}
			m[name] += " = " + first[is.Ino]
		}
		return err
	}))
	return m
}

// TestKilledPrograms kills a run of programs while their changes are recorded and
// applied, its recovery and its undo: afterwards the workspace is what it was.
func TestKilledPrograms(t *testing.T) {
	t.Parallel()
	if !hasSandbox() {
		t.Skip("no sandbox on this machine")
	}
	ws, state, script := programSetup(t)
	trace := filepath.Join(t.TempDir(), "trace")
	require.NoError(t, child(t, 0, trace, "run", "--at-end", "leave-open", "--workspace", ws, "--state", state, script))
	raw, err := os.ReadFile(trace)
	require.NoError(t, err)
	points := strings.Fields(string(raw))
	seed := killSeed(t)
	r := rand.New(rand.NewPCG(seed, 7))
	kills := statcheck.Size(25, 500)
	for i := range kills {
		at := 1 + r.IntN(len(points))
		about := fmt.Sprintf("seed %d, killed at point %d, %s", seed, at, points[at-1])
		ws, state, script := programSetup(t)
		before := withLinks(t, ws)
		place := []string{"--workspace", ws, "--state", state}
		killed(t, child(t, at, "", append([]string{"run", "--at-end", "leave-open", script}, place...)...), about)
		if i%2 == 1 {
			_ = child(t, 1+r.IntN(20), "", append([]string{"recover"}, place...)...)
		}
		code, out := command(t, append([]string{"recover"}, place...)...)
		require.Zero(t, code, "%s: recover: %s", about, out)
		for _, txn := range unfinished(t, state) {
			if i%3 == 2 {
				_ = child(t, 1+r.IntN(60), "", append([]string{"revert", txn}, place...)...)
			}
			code, out = command(t, append([]string{"revert", txn}, place...)...)
			if i%3 == 2 && code == int(cli.ExitUsage) && strings.Contains(out, "works on") {
				continue // the killed revert had ended it
			}
			require.Zero(t, code, "%s: revert: %s", about, out)
		}
		require.Equal(t, before, withLinks(t, ws), about)
	}
}

// TestKilledRunLeavesNoProgram: with the process that runs it a program is gone, and the
// next run clears away what it wrote.
func TestKilledRunLeavesNoProgram(t *testing.T) {
	t.Parallel()
	if !hasSandbox() {
		t.Skip("no sandbox on this machine")
	}
	ws, state, script := programSetup(t)
	before := withLinks(t, ws)
	mark := fmt.Sprintf("%d.25", 900_000+os.Getpid())
	require.NoError(t, os.WriteFile(script, fmt.Appendf(nil,
		`{"tool":"shell_run","args":{"script":"echo lost > a.txt; setsid sleep %s & sleep %s"}}`, mark, mark), 0o600))
	cmd := exec.Command(self(), "-test.run=^TestKilledChild$")
	argv := fmt.Sprintf(`["run","--workspace",%q,"--state",%q,%q]`, ws, state, script)
	cmd.Env = append(os.Environ(), killArgsEnv+"="+argv, killPointEnv+"=0")
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return len(sleepers(t, mark)) >= 2 }, time.Minute, time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool { return len(sleepers(t, mark)) == 0 }, time.Minute, time.Millisecond)
	require.Equal(t, before, withLinks(t, ws))
	left, err := filepath.Glob(filepath.Join(state, "scratch", "remit-run-*"))
	require.NoError(t, err)
	require.NotEmpty(t, left)
	require.NoError(t, os.WriteFile(script, []byte(`{"tool":"process_run","args":{"argv":["true"]}}`), 0o600))
	code, out := command(t, "run", "--workspace", ws, "--state", state, script)
	require.Zero(t, code, out)
	left, err = filepath.Glob(filepath.Join(state, "scratch", "remit-run-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// sleepers are the processes of this machine that have an argument.
func sleepers(t *testing.T, mark string) (pids []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, path := range lines {
		raw, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(raw), "sleep\x00"+mark) {
			pids = append(pids, path)
		}
	}
	return pids
}

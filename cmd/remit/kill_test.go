//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/sqlite"
)

// kills is at how many instants the run below is killed.
const kills = 50

const (
	killPointEnv  = "REMIT_TEST_KILL_AT"
	killTraceEnv  = "REMIT_TEST_TRACE"
	killStatusEnv = "REMIT_TEST_KILL_STATUS" // where what the kernel says of the process goes when it ends
	killArgsEnv   = "REMIT_TEST_ARGS"
)

// killingHost is the real world, in which the process gets a real SIGKILL at its
// n-th scheduling point.
type killingHost struct {
	host.Host
	mu    sync.Mutex
	at    int
	seen  int
	trace *os.File
}

func (h *killingHost) Point(ctx context.Context, id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen++
	if h.trace != nil {
		_, _ = fmt.Fprintln(h.trace, id)
	}
	if h.at > 0 && h.seen == h.at {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // nothing after the kill may run
	}
	return h.Host.Point(ctx, id)
}

// TestKilledChild is the process that is killed; it does nothing by itself.
func TestKilledChild(t *testing.T) {
	args := os.Getenv(killArgsEnv)
	if args == "" {
		require.Empty(t, os.Getenv(killPointEnv), "the parent gives both")
		return
	}
	var argv []string
	require.NoError(t, json.Unmarshal([]byte(args), &argv))
	h := &killingHost{Host: host.Real()}
	_, err := fmt.Sscan(os.Getenv(killPointEnv), &h.at)
	require.NoError(t, err)
	if path := os.Getenv(killTraceEnv); path != "" {
		h.trace, err = os.Create(path)
		require.NoError(t, err)
	}
	code := run(context.Background(), argv, cli.Env{
		In: strings.NewReader(""), Out: os.Stdout, Err: os.Stderr, Getenv: func(string) string { return "" }, ExtraTools: mailTools(os.Getenv(killMailEnv)),
		Host: h, Username: func() (string, error) { return "tester", nil }, Caller: personHere,
	})
	if path := os.Getenv(killStatusEnv); path != "" {
		status, err := os.ReadFile("/proc/self/status")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, status, 0o600))
	}
	os.Exit(code)
}

func child(t *testing.T, at int, trace string, argv ...string) error {
	out, err := childTraced(at, trace, argv...)
	if err != nil && at == 0 && len(out) < 10_000 {
		t.Logf("%s", out)
	}
	return err
}

func childOutput(at int, argv ...string) (string, error) { return childTraced(at, "", argv...) }

func childTraced(at int, trace string, argv ...string) (string, error) {
	args, err := json.Marshal(argv)
	if err != nil {
		return "", err
	}
	cmd := exec.Command(self(), "-test.run=^TestKilledChild$")
	cmd.Env = append(os.Environ(), killArgsEnv+"="+string(args), fmt.Sprint(killPointEnv, "=", at), killTraceEnv+"="+trace)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// killScript touches existing files, new ones, and one file again and again.
const killScript = `{"tool":"file_write","args":{"path":"a.txt","content":"one"}}
{"tool":"file_edit","args":{"path":"b.txt","old":"bee","new":"wasp"}}
{"tool":"file_read","args":{"path":"b.txt"}}
{"tool":"file_delete","args":{"path":"c.txt"}}
{"tool":"file_write","args":{"path":"new.txt","content":"fresh"}}
{"savepoint":"half"}
{"tool":"file_write","args":{"path":"a.txt","content":"two"}}
{"tool":"file_write","args":{"path":"sub/d.txt","content":"deep"}}
{"tool":"file_delete","args":{"path":"new.txt"}}
{"revert_to":"half"}
{"tool":"file_edit","args":{"path":"a.txt","old":"one","new":"three","all":true}}
{"tool":"file_write","args":{"path":".env","content":"no"}}
{"tool":"file_write","args":{"path":"e.txt","content":"last"}}
`

func killWorkspace(t *testing.T, dir string) {
	for name, content := range map[string]string{
		"a.txt": "alpha", "b.txt": "bee bee-bop is one\n", "c.txt": strings.Repeat("c", 100_000), "sub/d.txt": "dee",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o640))
	}
	edited := strings.Replace("bee bee-bop is one\n", "bee ", "be ", 1) // "bee" must occur once for the edit
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.txt"), []byte(edited), 0o640))
}

func snapshot(t *testing.T, dir string) map[string]string {
	m := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		require.NoError(t, err)
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		m[name] = info.Mode().String()
		if !d.IsDir() {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			m[name] += " " + info.ModTime().String() + " " + string(data)
		}
		return nil
	}))
	return m
}

// TestKilledRun kills `remit run` with SIGKILL at 50 scheduling points, at least
// 40 of them between the first Started and the last Done, with every gap between
// two journal appends hit. Each time: recover, revert, and the workspace is
// identical to before.
func TestKilledRun(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	ws, state, script := killSetup(t)
	err := child(t, 0, trace, "run", "--workspace", ws, "--state", state, "--at-end", "leave-open", "--keep-going", script)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 3, exit.ExitCode(), "control: the script runs through, and one call is denied")
	raw, err := os.ReadFile(trace)
	require.NoError(t, err)
	points := strings.Fields(string(raw))
	plan, gaps := chooseKills(t, points)
	hit := map[int]int{}
	for _, at := range plan {
		killOnce(t, at)
		hit[gaps[at-1]]++
	}
	appends := gaps[len(points)-1]
	var histogram bytes.Buffer
	for gap := range appends {
		fmt.Fprintf(&histogram, "before append %2d %-60s %s\n", gap+1, appendName(points, gap), strings.Repeat("*", hit[gap]))
		require.Positive(t, hit[gap], "no kill before append %d", gap+1)
	}
	t.Logf("%d kills, %d scheduling points\n%s", len(plan), len(points), histogram.String())
}

// chooseKills picks the instants: one in each gap between appends, the rest
// spread evenly from the first Started to the last Done.
func chooseKills(t *testing.T, points []string) (plan, gaps []int) {
	first, last, gap := -1, -1, 0
	gaps = make([]int, len(points))
	var atAppend []int
	for i, p := range points {
		gaps[i] = gap
		if strings.HasPrefix(p, "journal.append") {
			gap++
			atAppend = append(atAppend, i+1)
			if first < 0 && strings.Contains(p, "started") {
				first = i + 1
			}
			if strings.Contains(p, "done") {
				last = i + 1
			}
		}
	}
	require.Positive(t, first)
	require.Greater(t, last, first)
	chosen := map[int]bool{}
	for _, at := range atAppend {
		chosen[at] = true
	}
	require.LessOrEqual(t, len(chosen), kills, "a shorter script, or more kills")
	for i, extra := 1, kills-len(chosen); i <= extra; i++ {
		at := i * (last - first) / (extra + 1)
		for chosen[first+1+at%(last-first)] { // the next one that is free
			at++
		}
		chosen[first+1+at%(last-first)] = true
	}
	between := 0
	for at := range len(points) {
		if chosen[at+1] {
			plan = append(plan, at+1)
			if at+1 > first && at+1 <= last {
				between++
			}
		}
	}
	require.Len(t, plan, kills)
	require.GreaterOrEqual(t, between, 40, "instants between the first Started and the last Done")
	return plan, gaps
}

func appendName(points []string, gap int) string {
	for _, p := range points {
		if strings.HasPrefix(p, "journal.append") {
			if gap == 0 {
				return p
			}
			gap--
		}
	}
	return ""
}

func killSetup(t *testing.T) (ws, state, script string) {
	dir := t.TempDir()
	ws, state, script = filepath.Join(dir, "ws"), filepath.Join(dir, "state"), filepath.Join(dir, "script.jsonl")
	killWorkspace(t, ws)
	require.NoError(t, os.WriteFile(script, []byte(killScript), 0o600))
	return ws, state, script
}

func killOnce(t *testing.T, at int) {
	ws, state, script := killSetup(t)
	before := snapshot(t, ws)
	err := child(t, at, "", "run", "--workspace", ws, "--state", state, "--at-end", "leave-open", "--keep-going", script)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "killed at point %d", at)
	status, ok := exit.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	require.Equal(t, syscall.SIGKILL, status.Signal(), "killed at point %d", at)

	code, out := command(t, "recover", "--workspace", ws, "--state", state)
	require.Zero(t, code, "recover after a kill at point %d: %s", at, out)
	for _, txn := range unfinished(t, state) {
		code, out = command(t, "revert", "--workspace", ws, "--state", state, txn)
		require.Zero(t, code, "revert after a kill at point %d: %s", at, out)
	}
	require.Equal(t, before, snapshot(t, ws), "killed at point %d", at)
}

// command runs a command to its end, in a process of its own as its user would.
func command(t *testing.T, argv ...string) (int, string) {
	t.Helper()
	out, err := childOutput(0, argv...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), out
	}
	require.NoError(t, err, out)
	return 0, out
}

func unfinished(t *testing.T, state string) []string {
	j, err := sqlite.Open(context.Background(), state)
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	open, err := j.Unfinished(context.Background())
	require.NoError(t, err)
	var ids []string
	for _, o := range open {
		ids = append(ids, o.Txn)
	}
	return ids
}

var _ journal.Journal = (*sqlite.Journal)(nil)

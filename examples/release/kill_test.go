//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// The inputs of an agent to kill: the locations of the world and the site, the
// scheduling point at which it dies, and the file for the passed points.
const (
	folderEnv = "REMIT_TEST_FOLDER"
	siteEnv   = "REMIT_TEST_SITE"
	exitAtEnv = "REMIT_TEST_DIE"
	traceEnv  = "REMIT_TEST_TRACE"
)

// deadly is the real host. The process gets a real SIGKILL.
type deadly struct {
	host.Host
	mu    sync.Mutex
	left  int
	trace *os.File
}

// Point kills the process at the chosen point.
func (h *deadly) Point(ctx context.Context, id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trace != nil {
		_, _ = fmt.Fprintln(h.trace, id)
	}
	if h.left--; h.left == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // nothing after the kill may run
	}
	return h.Host.Point(ctx, id)
}

// runUntilKilled is the agent in a process that is killed; otherwise it commits.
func runUntilKilled() {
	h := &deadly{Host: host.Real()}
	h.left, _ = strconv.Atoi(os.Getenv(exitAtEnv))
	h.trace, _ = os.OpenFile(os.Getenv(traceEnv), os.O_WRONLY|os.O_APPEND, 0o600)
	ctx := context.Background()
	d, err := newApp(ctx, &releaseEnv{dir: os.Getenv(folderEnv)}, os.Getenv(siteEnv), agent.Host(h))
	if err == nil {
		var tx *agent.Txn
		if tx, err = d.prepare(ctx, func(int, tool.Outcome) {}); err == nil {
			err = tx.Commit(ctx)
		}
		err = errors.Join(err, d.Close())
	}
	if err != nil {
		panic(err)
	}
	os.Exit(0)
}

// runKilled runs an agent that dies at its n-th scheduling point.
func (w *releaseEnv) runKilled(t *testing.T, n int, trace string) error {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), beEnv+"=doomed", folderEnv+"="+w.dir, siteEnv+"="+w.site.url, exitAtEnv+"="+strconv.Itoa(n), traceEnv+"="+trace)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// TestKilledAnywhere kills the agent at its scheduling points, in the long mode
// at all of them. Another process reverts its effects on files, a program, a
// database, a service and mail together. Everything is as before, and the
// report names what was sent, or may have been, and nothing else.
func TestKilledAnywhere(t *testing.T) {
	needSandbox(t)
	need(t)
	trace := filepath.Join(t.TempDir(), "trace")
	require.NoError(t, os.WriteFile(trace, nil, 0o600))
	w, err := newReleaseEnv(t.Context(), t.TempDir())
	require.NoError(t, err)
	require.NoError(t, w.runKilled(t, 0, trace))
	require.NoError(t, w.site.server.Close())
	passed, err := os.ReadFile(trace)
	require.NoError(t, err)
	points := strings.Fields(string(passed))
	step := 89
	if statcheck.Whole() {
		step = 1
	}
	killed, sent, unknown := 0, 0, 0
	for at := 1; at <= len(points); at += step {
		w, err := newReleaseEnv(t.Context(), t.TempDir())
		require.NoError(t, err)
		before, err := w.snapshot(t.Context())
		require.NoError(t, err)
		if err := w.runKilled(t, at, ""); err != nil {
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "at point %d, %s", at, points[at-1])
			status, ok := exit.Sys().(syscall.WaitStatus)
			require.True(t, ok && status.Signal() == syscall.SIGKILL, "at point %d, %s: %v", at, points[at-1], exit)
			killed++
		} else { // it came to its end: the number of points differs, since git's objects are in more or fewer folders
			require.Greater(t, at, len(points)*8/10)
		}
		left := w.tidied(t)
		for name, outcome := range left {
			switch {
			case name == "mail_send" || name == "team_tell":
				sent++
			case slices.Contains(requests, name) && outcome == effect.Unknown: // its response was lost, and it may still arrive
				unknown++
			default:
				require.Fail(t, "not undone", "at point %d, %s: %s is %s", at, points[at-1], name, outcome)
			}
		}
		now, err := w.snapshot(t.Context())
		require.NoError(t, err)
		if left["release_remove"] == effect.Unknown { // it is gone, by an unknown actor
			delete(before["service"], "/releases/r2")
			delete(now["service"], "/releases/r2")
		}
		require.Equal(t, before, now, "at point %d, %s", at, points[at-1])
		require.NoError(t, w.site.server.Close())
	}
	t.Logf("killed %d times at %d points; %d messages were sent, %d requests may still come", killed, len(points), sent, unknown)
	require.Positive(t, sent)
}

// requests are the calls of the site that can be reverted.
var requests = []string{"release_create", "channel_set", "release_remove"}

// tidied reverts everything that a dead agent left, committed or not, and
// returns what was not undone.
func (w *releaseEnv) tidied(t *testing.T) map[string]effect.Outcome {
	ctx := t.Context()
	d, err := newApp(ctx, w, w.site.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	_, err = d.Recover(ctx)
	require.NoError(t, err)
	left := map[string]effect.Outcome{}
	for e, err := range d.Journal().Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindBegun}}) {
		require.NoError(t, err)
		report, err := d.Revert(ctx, e.Header.Txn, revert.Options{})
		if err != nil {
			require.ErrorIs(t, err, agent.ErrPartialRevert)
		}
		for _, item := range report.NotReverted() {
			left[item.Tool] = item.Outcome
		}
	}
	_, told := left["team_tell"]
	if w.site.messages() > 0 {
		require.True(t, told, "what was sent is told")
	}
	_, mailed := left["mail_send"]
	require.True(t, w.mails() == 0 || mailed, "what was sent is told")
	checked, err := revert.Fsck(ctx, d.Journal(), revert.FsckOptions{})
	require.NoError(t, err)
	require.NoError(t, checked.Err())
	return left
}

// messages returns the number of messages in the chat.
func (s *downloadSite) messages() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.chat)
}

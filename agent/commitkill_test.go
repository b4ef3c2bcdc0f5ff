package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

const commitKillDir, commitKillAt, commitKillHow = "REMIT_COMMIT_KILLED_IN", "REMIT_COMMIT_KILLED_AT", "REMIT_COMMIT_KILLED_HOW"

// noMoreWrites is the exit code of a process that made all its writes.
const noMoreWrites = 3

// killingHost ends the process before a write of a commit.
type killingHost struct {
	host.Host
	armed atomic.Bool
	left  int
}

func (h *killingHost) Point(ctx context.Context, name string) error {
	if h.armed.Load() && strings.HasPrefix(name, "journal.append") {
		if h.left--; h.left == 0 {
			kill()
		}
	}
	return h.Host.Point(ctx, name)
}

// killedCommits is a process that commits a write and a held mail, as how says,
// and dies before a write of that.
func killedCommits(t *testing.T, dir, how string, h *killingHost) {
	ctx := context.Background()
	rt, end := commitRuntime(t, dir, h)
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	require.NoError(t, err)
	tx, err := s.Begin(ctx)
	require.NoError(t, err)
	saves(t, tx, "a", "new\n")
	if how == "denied" {
		saves(t, tx, "secret", "key\n")
	}
	saves(t, tx, "c", "new\n")
	holds(t, tx, "mail", "one")
	if how == "approved" || how == "rejected" {
		gate := commitWaits(t, tx)
		require.NoError(t, rt.Answer(ctx, agent.Answer{Txn: tx.ID(), Approved: how == "approved", By: "boss", RequestDigest: gate.Request}))
	}
	h.armed.Store(true)
	_ = tx.Commit(ctx)
	h.armed.Store(false)
	end()
}

// mailFile delivers mail as lines of a file outside the workspace.
func mailFile(dir string) *post {
	return &post{fails: func(m sentMessage) error {
		f, err := os.OpenFile(filepath.Join(dir, "sent"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteString(m.text + "\n")
		return errors.Join(err, f.Close())
	}}
}

func commitRuntime(t *testing.T, dir string, h revert.Host) (*agent.Runtime, func()) {
	t.Helper()
	j, err := sqlite.Open(context.Background(), filepath.Join(dir, "journal"))
	require.NoError(t, err)
	rt, err := agent.New(quiet(), agent.Tools(builtin.Files()...), agent.Tools(mailFile(dir).mail(t)), agent.Root("workspace", filepath.Join(dir, "ws")), agent.Journal(j), agent.Host(h),
		agent.Policy(mustLoad(t, rego.Options{Modules: map[string]string{"p.rego": oneLook}})))
	require.NoError(t, err)
	return rt, func() { require.NoError(t, errors.Join(rt.Close(), j.Close())) }
}

// TestKilledAtACommit kills a process before each write of a commit, and after
// the last one. What was allowed is committed or decided
// again, what was denied is reverted, and what waited waits.
func TestKilledAtACommit(t *testing.T) {
	if dir := os.Getenv(commitKillDir); dir != "" {
		var at int
		_, err := fmt.Sscan(os.Getenv(commitKillAt), &at)
		require.NoError(t, err)
		killedCommits(t, dir, os.Getenv(commitKillHow), &killingHost{Host: host.Real(), left: at})
		os.Exit(noMoreWrites)
	}
	for _, how := range []string{"asked", "approved", "rejected", "denied"} {
		t.Run(how, func(t *testing.T) {
			for at, going := 1, true; going; at++ {
				dir := t.TempDir()
				ws := filepath.Join(dir, "ws")
				require.NoError(t, os.Mkdir(ws, 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(ws, "a"), []byte("one\n"), 0o600))
				cmd := exec.Command(os.Args[0], "-test.run=^TestKilledAtACommit$")
				cmd.Env = append(os.Environ(), commitKillDir+"="+dir, commitKillHow+"="+how, fmt.Sprintf("%s=%d", commitKillAt, at))
				out, err := cmd.CombinedOutput()
				var ended *exec.ExitError
				require.ErrorAs(t, err, &ended, "%s", out)
				if going = ended.ExitCode() != noMoreWrites; going {
					require.Equal(t, -1, ended.ExitCode(), "%s", out)
					requireRecoveredCommit(t, dir, how, fmt.Sprint(how, " before write ", at))
				}
			}
		})
	}
}

// requireRecoveredCommit recovers and ends what the killed process left.
func requireRecoveredCommit(t *testing.T, dir, how, at string) {
	ctx := t.Context()
	rt, end := commitRuntime(t, dir, host.Real())
	defer end()
	rec, err := rt.Recover(ctx)
	require.NoError(t, err, at)
	txn := onlyTxn(t, rt)
	ws := filepath.Join(dir, "ws")
	reverted := func() {
		require.Equal(t, "one\n", contentOf(t, ws, "a"), at)
		require.Equal(t, "absent", contentOf(t, ws, "c"), at)
		require.Equal(t, "absent", contentOf(t, dir, "sent"), at)
		require.Equal(t, revert.TxnReverted, loadTxn(t, rt, txn).State(), at)
	}
	switch now := loadTxn(t, rt, txn); {
	case now.State() == revert.TxnReverted:
		require.Contains(t, []string{"rejected", "denied"}, how, at)
		require.NotContains(t, rec.Abandoned, txn, at)
		reverted()
	case now.State() == revert.TxnCommitted:
		require.Equal(t, "approved", how, at)
	default:
		require.Equal(t, revert.TxnOpen, now.State(), at)
		require.False(t, now.Aborting, at)
		require.Equal(t, "new\n", contentOf(t, ws, "a"), at)
		tx, err := rt.ResumeTxn(ctx, txn)
		require.NoError(t, err, at)
		err = tx.Commit(ctx)
		switch how {
		case "asked":
			require.ErrorIs(t, err, tool.ErrPending, at)
			require.Equal(t, "absent", contentOf(t, dir, "sent"), at)
		case "approved":
			require.NoError(t, err, at) // one look: the answer stands
		default:
			require.ErrorIs(t, err, tool.ErrDenied, at)
			reverted()
		}
	}
	if how == "approved" {
		require.Equal(t, revert.TxnCommitted, loadTxn(t, rt, txn).State(), at)
		require.Equal(t, "new\n", contentOf(t, ws, "c"), at)
		require.LessOrEqual(t, strings.Count(contentOf(t, dir, "sent"), "one"), 1, at)
	}
	fsckClean(t, rt)
}

func onlyTxn(t *testing.T, rt *agent.Runtime) (txn string) {
	t.Helper()
	for e, err := range rt.Journal().Entries(t.Context(), journal.Query{Kinds: []record.Kind{record.KindBegun}}) {
		require.NoError(t, err)
		txn = e.Header.Txn
	}
	return txn
}

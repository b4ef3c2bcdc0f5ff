//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/proof/fakemodel"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/wire"
)

// The inputs of a process to kill: its folder, the format, the server, and the
// scheduling point.
const (
	folderEnv = "REMIT_TEST_FOLDER"
	formatEnv = "REMIT_TEST_FORMAT"
	serverEnv = "REMIT_TEST_SERVER"
	exitAtEnv = "REMIT_TEST_DIE"
)

func TestMain(m *testing.M) {
	if os.Getenv(exitAtEnv) != "" {
		runUntilKilled()
	}
	os.Exit(m.Run())
}

// deadly is the real host. The process gets a real SIGKILL at one of its
// scheduling points.
type deadly struct {
	host.Host
	mu     sync.Mutex // never held across a wait
	passed int
	exit   int
}

func (h *deadly) Point(ctx context.Context, id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.passed++; h.passed == h.exit {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // nothing after the kill may run
	}
	return h.Host.Point(ctx, id)
}

// runUntilKilled converses in a process that is killed; otherwise it prints the number
// of its points.
func runUntilKilled() {
	die, _ := strconv.Atoi(os.Getenv(exitAtEnv))
	h := &deadly{Host: host.Real(), exit: die}
	model, err := fakemodel.New(os.Getenv(formatEnv), ledgerScript()...)
	if err == nil {
		l := ledger{dir: os.Getenv(folderEnv), format: wire.Format(os.Getenv(formatEnv)), server: os.Getenv(serverEnv), model: model}
		err = l.live(context.Background(), h)
	}
	if err != nil {
		panic(err)
	}
	fmt.Print(h.passed)
	os.Exit(0)
}

// ledgerScript returns calls without a revert, two of them equal.
func ledgerScript() []fakemodel.Turn {
	c := func(n int) fakemodel.Call {
		return fakemodel.Call{Tool: "book", Args: fmt.Sprintf(`{"n":%d}`, n)}
	}
	return []fakemodel.Turn{{Calls: []fakemodel.Call{c(1), c(2), c(1)}}, {Calls: []fakemodel.Call{c(3)}}, {Text: "Booked."}}
}

// ledger is a conversation about a book that no revert reaches.
type ledger struct {
	dir    string
	format wire.Format
	server string
	model  *fakemodel.Model
}

func (l ledger) book() (tool.Tool, error) {
	return tool.FromSpec(tool.Spec{
		Name: "book", Description: "Books a number.", EffectClass: effect.Pivot,
		Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`),
		Execute: func(_ context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			f, err := os.OpenFile(filepath.Join(l.dir, "book"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return tool.Result{}, err
			}
			_, err = fmt.Fprintln(f, string(in))
			return tool.Text("booked " + string(in)), errors.Join(err, f.Close())
		},
	})
}

// live begins the conversation, or continues it, as far as possible.
func (l ledger) live(ctx context.Context, h host.Host) (err error) {
	journal, err := sqlite.Open(ctx, filepath.Join(l.dir, "state"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	book, err := l.book()
	if err != nil {
		return err
	}
	rt, err := agent.New(agent.Tools(book), agent.Journal(journal), agent.Log(slog.New(slog.DiscardHandler)), agent.Host(h),
		agent.Policy(perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
			return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "everything"}}}), nil
		})))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	if _, err := rt.Recover(ctx); err != nil {
		return err
	}
	d := &app{dir: l.dir, format: l.format}
	tx, c, err := l.begin(ctx, rt, d)
	if err != nil || tx == nil {
		return err
	}
	adapter, err := wire.New(l.format, book)
	if err != nil {
		return err
	}
	s := &server{url: l.server, model: l.model, path: paths[l.format]}
	if _, err = (agent.Loop{Adapter: adapter, CallModel: s.ask, Save: d.keep}).Run(ctx, tx, c); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// begin loads the conversation, or begins one. It returns no transaction if the
// conversation has ended.
func (l ledger) begin(ctx context.Context, rt *agent.Runtime, d *app) (*agent.Txn, agent.Conversation, error) {
	c, err := d.recall()
	if errors.Is(err, os.ErrNotExist) { // nothing ran before it was first saved
		s, err := rt.Session(ctx, perm.Principal{ID: "clerk"})
		if err != nil {
			return nil, c, err
		}
		tx, err := s.Begin(ctx)
		return tx, agent.Conversation{Messages: []json.RawMessage{l.model.User("Book it.")}}, err
	}
	if err != nil {
		return nil, c, err
	}
	if txn, err := revert.Load(ctx, rt.Journal(), c.Txn); err != nil || txn.End != "" {
		return nil, c, err
	}
	tx, err := rt.ResumeTxn(ctx, c.Txn)
	return tx, c, err
}

// TestNoCallRunsTwice kills a conversation at its scheduling points, in the
// long mode at all of them in each format, and continues it in another process.
// Every call is booked once. If its process died during a call, its outcome is
// unknown: it is booked at most once, and the model is told that.
func TestNoCallRunsTwice(t *testing.T) {
	points := ledgerRun(t, wire.Formats()[0], 1<<30)
	require.Greater(t, points, 50)
	step, killed, unknown := points/9, 0, 0
	if statcheck.Whole() {
		step = 1
	}
	for i, at := 0, 1; at < points; i, at = i+1, at+step {
		all := wire.Formats()
		if !statcheck.Whole() {
			all = all[i%len(all):][:1]
		}
		for _, f := range all {
			killed++
			unknown += ledgerRun(t, f, at)
		}
	}
	t.Logf("%d kills, %d calls of unknown outcome", killed, unknown)
}

// ledgerRun converses with a kill, continues, and counts the in-doubt calls;
// without a kill, the points.
func ledgerRun(t *testing.T, f wire.Format, die int) int {
	s, err := serveScript(f, ledgerScript())
	require.NoError(t, err)
	defer s.Close()
	l := ledger{dir: t.TempDir(), format: f, server: s.url, model: s.model}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), folderEnv+"="+l.dir, formatEnv+"="+string(f), serverEnv+"="+s.url, exitAtEnv+"="+strconv.Itoa(die))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if die == 1<<30 {
		require.NoError(t, err)
		points, err := strconv.Atoi(string(out))
		require.NoError(t, err)
		return points
	}
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "point %d", die)
	status, ok := exit.Sys().(syscall.WaitStatus)
	require.True(t, ok && status.Signal() == syscall.SIGKILL, "point %d: %v", die, exit)
	require.NoError(t, l.live(t.Context(), host.Real()), "point %d", die)
	return l.judge(t, die)
}

func (l ledger) judge(t *testing.T, die int) (unknown int) {
	raw, err := os.ReadFile(filepath.Join(l.dir, "book"))
	require.NoError(t, err)
	booked := map[string]int{}
	for _, line := range strings.Fields(string(raw)) {
		booked[line]++
	}
	at, doubt := map[string]int{}, map[string]int{}
	for i, told := range l.model.Received() {
		n := []string{`{"n":1}`, `{"n":2}`, `{"n":1}`, `{"n":3}`}[i]
		if told.Failed {
			require.Contains(t, told.Text, "It is not known", "point %d", die)
			doubt[n]++
			unknown++
			continue
		}
		require.Equal(t, "booked "+n, told.Text, "point %d", die)
		at[n]++
	}
	require.LessOrEqual(t, unknown, 1, "point %d: only the call that ran when the process died", die)
	for n, want := range map[string]int{`{"n":1}`: 2, `{"n":2}`: 1, `{"n":3}`: 1} {
		require.Equal(t, want, at[n]+doubt[n], "point %d", die)
		require.GreaterOrEqual(t, booked[n], at[n], "point %d: %v", die, booked)
		require.LessOrEqual(t, booked[n], want, "point %d: %v", die, booked)
	}
	return unknown
}

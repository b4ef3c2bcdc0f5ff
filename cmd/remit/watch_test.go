package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/internal/proof/pgtest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// watching is a workspace with a runtime, and remit watch on it.
type watching struct {
	t                *testing.T
	workspace, state string
	rt               *agent.Runtime
	session          *agent.Session
}

func newWatching(t *testing.T, tools ...tool.Tool) *watching {
	t.Helper()
	w := &watching{t: t}
	w.workspace, w.state = testPlace(t)
	j, err := sqlite.Open(t.Context(), w.state)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	w.rt, err = agent.New(agent.Journal(j), agent.Log(slog.New(slog.DiscardHandler)), agent.Tools(append(builtin.Files(), tools...)...), agent.Root("workspace", w.workspace), agent.Policy(permissive()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.rt.Close()) })
	w.session, err = w.rt.Session(t.Context(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	return w
}

// permissive is a policy that allows all, and holds what cannot be sent twice.
func permissive() perm.Engine {
	return perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		does := perm.Allow
		if r.Tool.Name == "send" {
			does = perm.Hold
		}
		return perm.NewDecision(does, perm.Details{Reasons: []perm.Reason{{Text: "everything"}}}), nil
	})
}

// writes makes a call that writes a file, and returns its ID.
func (w *watching) writes(name string) string {
	w.t.Helper()
	out, err := w.session.Call(w.t.Context(), "file_write", tool.Args{"path": name, "content": "x"})
	require.NoError(w.t, err)
	return out.Call
}

// lines runs remit watch, and returns what it writes. End interrupts it.
func (w *watching) lines(flags ...string) (lines *bufio.Scanner, end func()) {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	w.t.Cleanup(stop)
	out, to := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		args := append([]string{"watch", "--workspace", w.workspace, "--state", w.state}, flags...)
		ended <- run(ctx, args, testEnv(strings.NewReader(""), to, io.Discard))
		_ = to.Close()
	}()
	return bufio.NewScanner(out), func() {
		w.t.Helper()
		stop()
		for lines.Scan() {
			require.Fail(w.t, "nothing more happened", lines.Text())
		}
		require.Zero(w.t, <-ended)
	}
}

// TestWatchLines: elsewhere than on a terminal, each call is a line when it ends, without escape sequences.
func TestWatchLines(t *testing.T) {
	w := newWatching(t)
	for _, name := range []string{"a", "b", "odd\x1b[2J\u202e\n.txt"} {
		w.writes(name)
	}
	lines, end := w.lines("-n", "2")
	require.True(t, lines.Scan())
	require.Regexp(t, `^✓ \d\d:\d\d:\d\d c_[0-9a-z]{12}  file_write  done  reversible  \d+ ms  created b$`, lines.Text())
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), `created "odd\x1b[2J\u202e\n.txt"`)
	id := w.writes("later")
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), id+"  file_write  done")
	tx, err := w.session.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Invoke(t.Context(), "file_write", tool.Args{"path": "c", "content": "x"})
	require.NoError(t, err)
	require.True(t, lines.Scan())
	_, err = tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), "transaction "+tx.ID()+" was reverted or redone: remit log --txn "+tx.ID())
	end()
}

// TestWatchLosesNothing: each of many calls is written once, in the order of their ends, however fast they come.
func TestWatchLosesNothing(t *testing.T) {
	const calls = 3000
	w := newWatching(t)
	w.writes("a")
	lines, end := w.lines("--json", "-n", "1")
	next := func() (id string) {
		var r struct{ Event, Call, Status string }
		require.True(t, lines.Scan())
		strictObject(t, lines.Text())
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		require.Equal(t, "ended", r.Event)
		require.Equal(t, "done", r.Status)
		return r.Call
	}
	next()
	made := make(chan string, calls)
	go func() {
		defer close(made)
		for range calls {
			out, err := w.session.Call(t.Context(), "file_read", tool.Args{"path": "a"})
			if err != nil {
				return
			}
			made <- out.Call
		}
	}()
	n := 0
	for id := range made {
		require.Equal(t, id, next())
		n++
	}
	require.Equal(t, calls, n)
	end()
}

// TestWatchRefuses: what is no journal or no number is an error at once.
func TestWatchRefuses(t *testing.T) {
	workspace, state := testPlace(t)
	for _, args := range [][]string{{"-n", "-1"}, {"more"}, {"--workspace", filepath.Join(workspace, "none")}} {
		require.Equal(t, int(cli.ExitUsage), run(t.Context(), append([]string{"watch", "--workspace", workspace}, args...), jsonEnv(io.Discard)), args)
	}
	require.NoDirExists(t, state)
}

// TestWatchBeforeTheFirstRun: the command waits for the journal of a workspace,
// says so, and writes the calls of the first run.
func TestWatchBeforeTheFirstRun(t *testing.T) {
	workspace, state := testPlace(t)
	script := filepath.Join(t.TempDir(), "s.jsonl")
	require.NoError(t, os.WriteFile(script, []byte(`{"tool":"file_write","args":{"path":"a.txt","content":"x"}}`+"\n"), 0o600))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	start := func(ctx context.Context) (out, errs *bufio.Reader, ended chan int) {
		out1, to := io.Pipe()
		errs1, toErrs := io.Pipe()
		ended = make(chan int, 1)
		go func() {
			ended <- run(ctx, []string{"watch", "--json", "--workspace", workspace, "--state", state}, testEnv(strings.NewReader(""), to, toErrs))
			_, _ = to.Close(), toErrs.Close()
		}()
		return bufio.NewReader(out1), bufio.NewReader(errs1), ended
	}
	out, errs, ended := start(ctx)
	said, err := errs.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, said, "nothing is recorded yet for "+workspace+", in "+state+"; this command waits for the first run")
	require.NoDirExists(t, state, "it makes nothing")

	interrupted, end := context.WithCancel(t.Context())
	_, errs2, over := start(interrupted)
	_, err = errs2.ReadString('\n')
	require.NoError(t, err)
	end()
	require.Zero(t, <-over)

	require.Zero(t, run(t.Context(), []string{"run", "--workspace", workspace, "--state", state, script}, jsonEnv(io.Discard)))
	line, err := out.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, `"tool":"file_write"`)
	stop()
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	require.Empty(t, string(rest))
	require.Zero(t, <-ended)
}

// TestWatchClosedOutput: the command ends when nothing reads its lines.
func TestWatchClosedOutput(t *testing.T) {
	w := newWatching(t)
	w.writes("a")
	var errs strings.Builder
	code := run(t.Context(), []string{"watch", "--workspace", w.workspace, "--state", w.state}, testEnv(nil, closedPipe{}, &errs))
	require.Equal(t, int(cli.ExitInternal), code, "as remit log does")
	require.Empty(t, errs.String())
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, os.NewSyscallError("write", syscall.EPIPE) }

// countingJournal counts the entries that are read of a journal. It can say that all owners are dead.
type countingJournal struct {
	journal.Journal
	read int
	dead bool
}

func (c *countingJournal) Alive(ctx context.Context, owner string) (bool, error) {
	if c.dead {
		return false, nil
	}
	return c.Journal.Alive(ctx, owner)
}

func (c *countingJournal) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for e, err := range c.Journal.Entries(ctx, q) {
			c.read++
			if !yield(e, err) {
				return
			}
		}
	}
}

func plainLine(c *revert.Call) callview.Line { return callview.LineOf(c, nil) }

// TestFeedReadsLittle: the first page costs its calls, and a step costs what is new, also inside a large transaction.
func TestFeedReadsLittle(t *testing.T) {
	w := newWatching(t)
	tx, err := w.session.Begin(t.Context())
	require.NoError(t, err)
	read := func() string {
		out, err := tx.Invoke(t.Context(), "file_list", tool.Args{})
		require.NoError(t, err)
		return out.Call
	}
	var ids []string
	for range 1000 {
		ids = append(ids, read())
	}
	j := &countingJournal{Journal: w.rt.Journal()}
	f, err := callview.NewFeed(t.Context(), j, plainLine)
	require.NoError(t, err)
	s, err := f.Last(t.Context(), 50)
	require.NoError(t, err)
	require.Less(t, j.read, 500)
	var last []string
	for _, c := range s.Ended {
		last = append(last, c.ID)
	}
	require.Equal(t, ids[950:], last)

	j.read = 0
	id := read()
	s, err = f.Next(t.Context())
	require.NoError(t, err)
	require.Len(t, s.Ended, 1)
	require.Equal(t, id, s.Ended[0].ID)
	require.Less(t, j.read, 20)
	require.NoError(t, tx.Commit(t.Context()))
	s, err = f.Next(t.Context())
	require.NoError(t, err)
	require.Empty(t, s.Ended)
	require.False(t, s.Waiting)
}

// slowTool is a tool whose call sends to enter, and then waits for leave.
func slowTool(t *testing.T) (slow tool.Tool, enter, leave chan struct{}) {
	t.Helper()
	enter, leave = make(chan struct{}), make(chan struct{})
	slow, err := tool.FromSpec(tool.Spec{Name: "slow", Description: "Waits.", EffectClass: effect.Pivot, Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
		enter <- struct{}{}
		<-leave
		return tool.Text("done"), nil
	}})
	require.NoError(t, err)
	return slow, enter, leave
}

// TestFeedOutcomes: a step has each outcome as a call has it, a held call twice, and a call in flight until it ends.
func TestFeedOutcomes(t *testing.T) {
	ctx := t.Context()
	slow, enter, leave := slowTool(t)
	w := newWatching(t, append(toolsForTests(), slow)...)
	f, err := callview.NewFeed(ctx, w.rt.Journal(), plainLine)
	require.NoError(t, err)
	step := func() (said []string) {
		s, err := f.Next(ctx)
		require.NoError(t, err)
		require.NoError(t, s.Damage)
		for _, c := range s.Ended {
			said = append(said, c.Tool+" "+c.Status)
		}
		return said
	}
	require.Empty(t, step())
	ended := make(chan error, 1)
	go func() {
		_, err := w.session.Call(ctx, "slow", "x")
		ended <- err
	}()
	select {
	case <-enter:
	case err := <-ended:
		require.NoError(t, err)
	}
	require.Empty(t, step())
	require.Len(t, f.Running(), 1)
	require.Equal(t, "slow", f.Running()[0].Tool)
	seen := &countingJournal{Journal: w.rt.Journal()}
	again, err := callview.NewFeed(ctx, seen, plainLine)
	require.NoError(t, err)
	require.Empty(t, again.Running())
	require.NoError(t, again.FindRunning(ctx))
	require.Equal(t, f.Running()[0].ID, again.Running()[0].ID)
	require.NoError(t, again.DropDead(ctx))
	require.Len(t, again.Running(), 1)
	seen.dead = true
	require.NoError(t, again.DropDead(ctx))
	require.Empty(t, again.Running(), "its process has ended")
	leave <- struct{}{}
	require.NoError(t, <-ended)
	require.Equal(t, []string{"slow done"}, step())
	require.Empty(t, f.Running())

	for _, name := range []string{"fail", "lose", "missing"} {
		_, err = w.session.Call(ctx, name, "x")
		require.Error(t, err)
	}
	require.Equal(t, []string{"fail failed", "lose unknown", "missing invalid"}, step())

	tx, err := w.session.Begin(ctx)
	require.NoError(t, err)
	out, err := tx.Invoke(ctx, "send", "x")
	require.NoError(t, err)
	require.Equal(t, tool.StatusHeld, out.Status, fmt.Sprint(out))
	require.Equal(t, []string{"send held"}, step())
	require.NoError(t, tx.Commit(ctx))
	require.Equal(t, []string{"send done"}, step())
	require.Empty(t, f.Running())
}

// TestWatchHidesArguments: sensitive arguments are in no line.
func TestWatchHidesArguments(t *testing.T) {
	workspace, state := testPlace(t)
	script := filepath.Join(t.TempDir(), "s.jsonl")
	require.NoError(t, os.WriteFile(script, []byte(`{"tool":"login","args":{"user":"me","password":"sesame"}}`+"\n"), 0o600))
	require.Zero(t, run(t.Context(), []string{"run", "--workspace", workspace, "--state", state, script}, jsonEnv(io.Discard)))
	for _, flags := range [][]string{nil, {"--json"}} {
		ctx, stop := context.WithCancel(t.Context())
		out, to := io.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			run(ctx, append([]string{"watch", "--workspace", workspace, "--state", state}, flags...), jsonEnv(to))
			_ = to.Close()
		}()
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "login")
		require.Contains(t, line, "password=(hidden)")
		require.NotContains(t, line, "sesame")
		stop()
		<-ended
	}
}

// TestWatchShared follows a journal in PostgreSQL.
func TestWatchShared(t *testing.T) {
	location, _ := pgtest.Database(t)
	workspace, state := testPlace(t)
	at := []string{"--workspace", workspace, "--state", state, "--journal", location}
	script := filepath.Join(t.TempDir(), "s.jsonl")
	runs := func(content string) {
		require.NoError(t, os.WriteFile(script, []byte(`{"tool":"file_write","args":{"path":"a.txt","content":"`+content+`"}}`+"\n"), 0o600))
		require.Zero(t, run(t.Context(), append([]string{"run", script}, at...), jsonEnv(io.Discard)))
	}
	runs("one")
	ctx, stop := context.WithCancel(t.Context())
	out, to := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"watch", "--json"}, at...), jsonEnv(to))
		_ = to.Close()
	}()
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), `"kind":"create"`)
	runs("two")
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), `"kind":"write"`)
	stop()
	require.False(t, lines.Scan())
	require.Zero(t, <-ended)
}

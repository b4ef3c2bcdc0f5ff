package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/approve"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// watch starts remit pending --watch. End ends it, and requires its code 0.
func (p targetPlace) watch(t *testing.T) (lines *bufio.Scanner, end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	out, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, p.at("pending", "--watch", "--json"), testEnv(strings.NewReader(""), w, io.Discard))
		_ = w.Close()
	}()
	return bufio.NewScanner(out), func() {
		t.Helper()
		stop()
		require.Zero(t, <-ended)
	}
}

// TestWatchPending: calls are told of when they begin to wait, are answered, and wait no more.
func TestWatchPending(t *testing.T) {
	p := newTarget(t)
	lines, end := p.watch(t)
	next := func() (r approve.PendingRecord) {
		require.True(t, lines.Scan())
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		return r
	}
	first := next()
	require.Equal(t, p.call, first.Call)
	require.Equal(t, "waits", first.State)
	require.Contains(t, first.Diff, "+x")
	require.Equal(t, "agent", first.Principal)
	require.NotEmpty(t, first.Access)
	require.False(t, first.Since.IsZero())
	require.True(t, first.Expires.After(first.Since))
	second := p.ask(t, "b.txt")
	require.Equal(t, second, next().Call)
	answer, said, errs := p.run(personHere, p.at("approve", p.call)...)
	require.Zero(t, answer, said+errs)
	require.Equal(t, "approved", next().State)
	answer, said, errs = p.run(personHere, p.at("resume", p.call, "--policy", p.policy)...)
	require.Zero(t, answer, said+errs)
	gone := next()
	require.Equal(t, p.call, gone.Call)
	require.Equal(t, "gone", gone.State)
	end()
}

// TestWatchCommits: a commit that waits, is answered, and waits no more is told of like a call.
func TestWatchCommits(t *testing.T) {
	p := newTarget(t)
	code, said, errs := p.run(personHere, p.at("deny", p.call)...)
	require.Zero(t, code, said+errs)
	code, said, errs = p.run(personHere, p.at("resume", p.call, "--policy", p.policy)...)
	require.Equal(t, int(cli.ExitDenied), code, said+errs)
	gate := filepath.Join(p.dir, "gate.rego")
	require.NoError(t, os.WriteFile(gate, []byte("package remit\n\nallow contains \"all\" if true\n\nask_commit contains \"look\" if input.txn.totals.effects > 0\n"), 0o600))
	code, said, errs = p.run(personHere, p.at("run", "--policy", gate, filepath.Join(p.dir, "s.jsonl"))...)
	require.Equal(t, int(cli.ExitPending), code, said+errs)
	txn := regexp.MustCompile(`t_[0-9a-z]{12}`).FindString(said)

	lines, end := p.watch(t)
	next := func(state string) {
		t.Helper()
		var r struct{ Commit, State string }
		require.True(t, lines.Scan())
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		require.Equal(t, txn, r.Commit)
		require.Equal(t, state, r.State)
	}
	next("waits")
	code, said, errs = p.run(personHere, p.at("deny", txn)...)
	require.Zero(t, code, said+errs)
	next("denied")
	code, said, errs = p.run(personHere, p.at("revert", txn)...)
	require.Zero(t, code, said+errs)
	next("gone")
	end()
}

// TestWatchNothing: a watch that finds nothing to show says that it goes on, beside what it writes for programs.
func TestWatchNothing(t *testing.T) {
	p := newTarget(t)
	code, said, errs := p.run(personHere, p.at("deny", p.call)...)
	require.Zero(t, code, said+errs)
	code, said, errs = p.run(personHere, p.at("resume", p.call, "--policy", p.policy)...)
	require.Equal(t, int(cli.ExitDenied), code, said+errs)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	errors, w := io.Pipe()
	var out bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, p.at("pending", "--watch", "--json"), testEnv(strings.NewReader(""), &out, w))
		_ = w.Close()
	}()
	lines := bufio.NewScanner(errors)
	require.True(t, lines.Scan())
	require.Equal(t, "remit: no call waits for approval; this command goes on watching until it is interrupted", lines.Text())
	stop()
	require.False(t, lines.Scan())
	require.Zero(t, <-ended)
	require.Empty(t, out.String())
}

// TestWaitsShown: what a call holds does not steer the terminal, and a large difference is cut with a note.
func TestWaitsShown(t *testing.T) {
	p := newTarget(t)
	script := filepath.Join(p.dir, "odd.jsonl")
	odd, err := json.Marshal("odd\x1b[2J\u202e.txt")
	require.NoError(t, err)
	long, err := json.Marshal(strings.Repeat("line\x1b[31m\n", 500))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(script, []byte(`{"tool":"file_write","args":{"path":`+string(odd)+`,"content":`+string(long)+`}}`+"\n"), 0o600))
	_, said, notice := p.run(personHere, p.at("run", "--on-ask", "wait", "--policy", p.policy, script)...)
	require.NotContains(t, said+notice, "\x1b")
	code, out, errs := p.run(personHere, p.at("pending")...)
	require.Zero(t, code, errs)
	require.NotContains(t, out, "\x1b")
	require.NotContains(t, out, "\u202e")
	require.Contains(t, out, "more lines of the difference are left out")
	require.Contains(t, out, p.call)
	require.Regexp(t, `\n  asked by  agent, in session s_`, out)
	require.Regexp(t, `\n  since     2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d \(`, out)
	_, out, _ = p.runAs(func(w *cli.Env) { w.OutTerminal = true }, p.at("pending", p.call)...)
	require.Contains(t, out, "\x1b[32m+x", "colours are for terminals")
}

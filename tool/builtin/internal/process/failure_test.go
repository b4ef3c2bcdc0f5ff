package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/process"
)

// TestNothingRuns: where a run cannot begin it is said why, nothing happens in the
// workspace, and nothing is left beside it.
func TestNothingRuns(t *testing.T) {
	driver := func(c handle.Config) agent.Option {
		d, err := handle.New(c)
		require.NoError(t, err)
		return agent.Driver(d)
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	masked := func(mask string) agent.Option {
		return deciding(func(perm.Request) perm.Decision { return allowed(perm.Details{Masks: []string{mask}}) })
	}
	for _, tt := range []struct {
		name, why string
		status    tool.Status
		opts      []agent.Option
		spoil     func(w programSetup)
	}{
		{"a shim that is none", "does the binary call sandbox.Main?", tool.StatusFailed, []agent.Option{driver(handle.Config{Shim: "/bin/true"})}, nil},
		{"a shim that is not there", "there is no sandbox here", tool.StatusDenied, []agent.Option{driver(handle.Config{Shim: "/none/such"})}, nil},
		{"no scratch folder", "the scratch folder " + file, tool.StatusFailed, []agent.Option{driver(handle.Config{Scratch: file})}, nil},
		{"no scratch folder for a copy", "the scratch folder " + file, tool.StatusFailed, []agent.Option{driver(handle.Config{Scratch: file, UseCopies: true})}, nil},
		{"no path", "is not in PATH", tool.StatusFailed, []agent.Option{driver(handle.Config{Path: "/none"})}, nil},
		{"a mask that is none", `nonsense`, tool.StatusDenied, []agent.Option{masked("nonsense")}, nil},
		{"the workspace is gone", "workspace", tool.StatusFailed, nil, func(w programSetup) { require.NoError(t, os.RemoveAll(w.dir)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			newProgramSetup(t) // or there is no sandbox at all
			w := newFastSetup(t, append([]agent.Option{allowAll()}, tt.opts...)...)
			fill(t, w.dir)
			before := listing(t, w.dir, true)
			if tt.spoil != nil {
				tt.spoil(w)
			}
			_, o, err := w.invoke(t, "echo x > a")
			require.Error(t, err)
			require.Equal(t, tt.status, o.Status, o.Error)
			require.Contains(t, o.Error.Why, tt.why)
			if tt.spoil != nil {
				require.NoDirExists(t, w.dir)
				return
			}
			equal(t, before, listing(t, w.dir, true), "nothing happened")
		})
	}
}

// runner is a tool that runs scripts as it is told.
func runner(t *testing.T, do func(ctx context.Context, tc ctxperm.ToolContext, script string) (tool.Result, error), needs ...perm.ResourceAccess) tool.Tool {
	t.Helper()
	if needs == nil {
		for _, a := range []perm.Action{perm.Read, perm.Write, perm.Delete} {
			needs = append(needs, perm.Access(a, "file://*/**"))
		}
	}
	made, err := tool.FromSpec(tool.Spec{
		Name: "runner", Description: "Runs a script.", Needs: append(needs, perm.Access(perm.Execute, "exec://sh")),
		EffectClass: "reversible", Destination: tool.NoDestination, Confinement: tool.Handles,
		Execute: func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			return do(ctx, tc, text(in))
		},
	})
	require.NoError(t, err)
	return made
}

func sh(script string) handle.Cmd { return handle.Cmd{Argv: []string{"sh", "-c", script}} }

// TestToolThatIgnoresAnError checks that the runtime does not apply the changes
// of a killed program, even if the tool ignores the error.
func TestToolThatIgnoresAnError(t *testing.T) {
	for _, way := range writeModeCases(t) {
		var got error
		round := 0
		w := newProgramSetup(t, allowAll(), agent.Driver(way.driver), agent.Tools(runner(t, func(ctx context.Context, tc ctxperm.ToolContext, script string) (tool.Result, error) {
			cmd := sh(script)
			cmd.Timeout = []time.Duration{1, time.Millisecond, 100 * time.Millisecond}[round]
			_, got = handle.Run(ctx, tc, cmd)
			return tool.Result{Text: "fine"}, nil
		})))
		fill(t, w.dir)
		before := listing(t, w.dir, true)
		tx, err := w.s.Begin(t.Context())
		require.NoError(t, err)
		for ; round < 3; round++ {
			o, err := tx.Invoke(t.Context(), "runner", "echo x > a; while :; do :; done")
			require.NoError(t, err)
			require.ErrorIs(t, got, handle.ErrTimeout)
			require.Equal(t, tool.StatusDone, o.Status)
			require.Empty(t, o.Changes)
			equal(t, before, listing(t, w.dir, true), "nothing happened")
		}
		require.NoError(t, tx.Commit(t.Context()))
	}
}

// TestProgramMeetsItsEnd: a program whose caller gives up, or whose sandbox dies under it,
// has had no effect, and what it left beside the workspace is cleared away.
func TestProgramMeetsItsEnd(t *testing.T) {
	enough := errors.New("enough")
	for name, end := range map[string]func(cancel context.CancelCauseFunc){
		"cancelled":             func(cancel context.CancelCauseFunc) { cancel(enough) },
		"its sandbox is killed": func(context.CancelCauseFunc) { killChildren(t) },
	} {
		for _, copies := range []bool{false, true} {
			t.Run(fmt.Sprint(name, copies), func(t *testing.T) {
				scratch := filepath.Join(t.TempDir(), "scratch")
				d, err := handle.New(handle.Config{Scratch: scratch, UseCopies: copies})
				require.NoError(t, err)
				ctx, cancel := context.WithCancelCause(t.Context())
				var once sync.Once
				own, err := process.Program(tool.Spec{Name: "own", Description: "Runs a script."}, func(in json.RawMessage) (handle.Cmd, error) {
					cmd := sh(text(in))
					cmd.Output = func(handle.Stream, []byte) { once.Do(func() { end(cancel) }) }
					return cmd, nil
				})
				require.NoError(t, err)
				w := newProgramSetup(t, allowAll(), agent.Driver(d), agent.Tools(own))
				fill(t, w.dir)
				before := listing(t, w.dir, true)
				tx, err := w.s.Begin(t.Context())
				require.NoError(t, err)
				o, err := tx.Invoke(ctx, "own", "echo x > a; rm b; echo ready; while :; do :; done")
				require.Error(t, err)
				require.Contains(t, []tool.Status{tool.StatusFailed, tool.StatusCancelled}, o.Status)
				equal(t, before, listing(t, w.dir, true), "nothing happened")
				require.NoError(t, d.Close())
				left, err := filepath.Glob(scratch + "/remit-run-*")
				require.NoError(t, err)
				require.Empty(t, left)
				_, err = tx.Revert(t.Context(), revert.Options{})
				require.NoError(t, err)
			})
		}
	}
}

// killChildren kills what this process started and has not waited for.
func killChildren(t *testing.T) {
	found, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	killed := 0
	for _, name := range found {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		for _, pid := range strings.Fields(string(data)) {
			n, err := strconv.Atoi(pid)
			require.NoError(t, err)
			require.NoError(t, syscall.Kill(n, syscall.SIGKILL))
			killed++
		}
	}
	require.NotZero(t, killed)
}

// TestNothingToSee: a program is started nowhere but in a folder that its call may read,
// and without the right to run it not at all.
func TestNothingToSee(t *testing.T) {
	var kept ctxperm.ToolContext
	run := func(ctx context.Context, tc ctxperm.ToolContext, script string) (tool.Result, error) {
		kept = tc
		_, err := handle.Run(ctx, tc, sh(script))
		return tool.Result{}, err
	}
	blind := runner(t, run, perm.Access(perm.Read, "file://other/**"))
	w := newProgramSetup(t, allowAll(), agent.Root("other", t.TempDir()), agent.Tools(blind))
	tx, err := w.s.Begin(t.Context())
	require.NoError(t, err)
	o, err := tx.Invoke(t.Context(), "runner", "true")
	require.ErrorIs(t, err, tool.ErrFailed)
	require.Contains(t, o.Error.Why, `nothing of root "workspace" may be read by this call`)
	_, err = handle.Run(t.Context(), kept, sh("true"))
	require.ErrorIs(t, err, ctxperm.ErrClosed, "the call has ended")

	w = newProgramSetup(t, agent.Tools(runner(t, run)), deciding(func(r perm.Request) perm.Decision {
		if r.Access.Action == perm.Execute && r.Access.Resource.Program == "sh" {
			return refusedFor("no shells")
		}
		return allowed(perm.Details{})
	}))
	tx, err = w.s.Begin(t.Context())
	require.NoError(t, err)
	o, err = tx.Invoke(t.Context(), "runner", "true")
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Contains(t, o.Error.Why, "no shells")
}

// TestPipesAndSockets: those that a program leaves are left out, and said so; in the place
// of a file they are refused with all the rest.
func TestPipesAndSockets(t *testing.T) {
	for _, way := range writeModeCases(t) {
		w := newProgramSetup(t, allowAll(), agent.Driver(way.driver))
		fill(t, w.dir)
		before := listing(t, w.dir, true)
		txn, o := w.shell(t, "mkfifo src/p q; echo x > n")
		var out struct {
			LeftOut []string `json:"left_out"`
		}
		require.NoError(t, json.Unmarshal(o.Output, &out))
		require.Equal(t, []string{"workspace/q: a socket, a pipe or a device", "workspace/src/p: a socket, a pipe or a device"}, out.LeftOut)
		require.Len(t, o.Changes, 1)
		_, err := w.s.Revert(t.Context(), txn, revert.Options{})
		require.NoError(t, err)
		_, o, err = w.invoke(t, "rm a; mkfifo a; echo x > n")
		require.ErrorIs(t, err, tool.ErrFailed)
		require.Contains(t, o.Error.Why, "put a socket, a pipe or a device where a file was")
		equal(t, before, listing(t, w.dir, true), "nothing happened")
	}
}

// TestStrictOrNothing: a policy that demands the sandbox demands all of it.
func TestStrictOrNothing(t *testing.T) {
	d, err := handle.New(handle.Config{Require: handle.Partial})
	require.NoError(t, err)
	w := newProgramSetup(t, agent.Driver(d), deciding(func(perm.Request) perm.Decision {
		return allowed(perm.Details{Requires: []perm.Reason{{Text: "sandbox"}}})
	}))
	_, o := w.shell(t, "true")
	require.Contains(t, string(o.Output), `"sandbox":"strict"`)
}

// TestOneProgramPerCall: a program that came to nothing leaves its place to another, of
// which everything is applied and of the first nothing. One that ended does not, and its
// changes stay what they are.
func TestOneProgramPerCall(t *testing.T) {
	timed := func(script string) handle.Cmd {
		cmd := sh(script)
		cmd.Timeout = 50 * time.Millisecond
		return cmd
	}
	for _, tt := range []struct {
		name   string
		first  handle.Cmd
		ended  bool
		second handle.Cmd
	}{
		{"not there", handle.Cmd{Argv: []string{"no-such-program"}}, false, sh("echo second > a")},
		{"ran out of time", timed("rm a; echo first > b; while :; do :; done"), false, sh("cat a; echo second > a")},
		{"failed", sh("echo first > b; exit 1"), true, sh("echo second > a")},
	} {
		for _, way := range writeModeCases(t) {
			t.Run(tt.name+way.name, func(t *testing.T) {
				var again error
				own := runner(t, func(ctx context.Context, tc ctxperm.ToolContext, _ string) (tool.Result, error) {
					_, err := handle.Run(ctx, tc, tt.first)
					require.Equal(t, tt.ended, err == nil)
					_, again = handle.Run(ctx, tc, tt.second)
					return tool.Result{}, nil
				}, perm.Access(perm.Execute, "exec://no-such-program"), perm.Access(perm.Read, "file://*/**"), perm.Access(perm.Write, "file://*/**"), perm.Access(perm.Delete, "file://*/**"))
				w := newProgramSetup(t, allowAll(), agent.Driver(way.driver), agent.Tools(own))
				fill(t, w.dir)
				before := listing(t, w.dir, true)
				tx, err := w.s.Begin(t.Context())
				require.NoError(t, err)
				_, err = tx.Invoke(t.Context(), "runner", "")
				require.NoError(t, err)
				a, err := os.ReadFile(w.dir + "/a")
				require.NoError(t, err)
				b, err := os.ReadFile(w.dir + "/b")
				require.NoError(t, err)
				if tt.ended {
					require.ErrorIs(t, again, ctxperm.ErrInvalid)
					require.ErrorContains(t, again, "the call has already run a program or used a database")
					require.Equal(t, []string{"aaa\n", "first\n"}, []string{string(a), string(b)})
				} else {
					require.NoError(t, again)
					require.Equal(t, []string{"second\n", "b\n"}, []string{string(a), string(b)})
				}
				_, err = tx.Revert(t.Context(), revert.Options{})
				require.NoError(t, err)
				equal(t, before, listing(t, w.dir, true), "undo")
			})
		}
	}
}

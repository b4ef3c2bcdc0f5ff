package process_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

func TestMain(m *testing.M) {
	process.Main()
	os.Exit(m.Run())
}

// serverScript is a server that runs each line as a command, and responds.
const serverScript = `while read -r line; do eval "$line"; echo ok; done`

// serverEnv is a workspace, and a server that calls of the tool "say" use, each
// for one line.
type serverEnv struct {
	t       *testing.T
	dir     string
	driver  *process.Driver
	service *process.Server
	out     *bufio.Reader
	rt      *agent.Runtime
	calls   chan *process.ServerCall // those of the tools
}

func newServerEnv(t *testing.T) *serverEnv {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	o := &serverEnv{t: t, dir: dir, calls: make(chan *process.ServerCall, 1024)}
	o.driver, err = process.New(process.Config{Scratch: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.driver.Close()) })
	o.serve(serverScript)
	t.Cleanup(func() { o.service.Close() })
	o.rt, err = agent.New(agent.Log(slog.New(slog.DiscardHandler)), agent.Root("workspace", dir), agent.Driver(o.driver), agent.Tools(o.tool()),
		agent.Policy(perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
			return perm.NewDecision(perm.Allow, perm.Details{}), nil
		})))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.rt.Close()) })
	return o
}

func (o *serverEnv) serve(script string) {
	o.t.Helper()
	s, err := o.driver.Serve(o.t.Context(), process.ServerConfig{Argv: []string{"sh", "-c", script}, Roots: map[string]string{"workspace": o.dir}})
	if err != nil && strings.Contains(err.Error(), "remit doctor") {
		o.t.Skip("this machine has no sandbox: " + err.Error())
	}
	require.NoError(o.t, err)
	_, out, _ := s.Pipes()
	o.service, o.out = s, bufio.NewReader(out)
}

// tool sends one line to the server, and waits for its response.
func (o *serverEnv) tool() tool.Tool {
	o.t.Helper()
	spec := tool.Spec{Name: "say", Input: json.RawMessage(`{"type":"object"}`), EffectClass: effect.Reversible, Verify: verify.Changes}
	for _, a := range []perm.Action{perm.Read, perm.List, perm.Write, perm.Delete} {
		spec.Needs = append(spec.Needs, perm.Access(a, "file://workspace/**"))
	}
	spec.Execute = func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
		var say struct{ Line string }
		if err := json.Unmarshal(in, &say); err != nil {
			return tool.Result{}, err
		}
		t, err := o.service.Begin(ctx, tc)
		if err != nil {
			return tool.Result{}, err
		}
		t.SetBusy(strings.Contains(say.Line, "# busy"))
		o.calls <- t
		to, _, _ := o.service.Pipes()
		if _, err := fmt.Fprintln(to, say.Line); err != nil {
			return tool.Result{}, err
		}
		answer, err := o.out.ReadString('\n')
		if err != nil {
			return tool.Result{}, err
		}
		wrote, _, err := t.End(ctx)
		return tool.Result{Text: fmt.Sprintf("%s wrote %d", strings.TrimSpace(answer), wrote)}, err
	}
	made, err := tool.FromSpec(toolaccess.Of[tool.Tool, tool.Spec, tool.Registry, tool.RevertContext]().InSandbox(spec))
	require.NoError(o.t, err)
	return made
}

// say makes one call, in its own session and transaction. It reverts a failed
// call.
func (o *serverEnv) say(format string, args ...any) tool.Outcome {
	o.t.Helper()
	out, _ := o.sayIn(o.t.Context(), fmt.Sprintf(format, args...))
	return out
}

func (o *serverEnv) sayIn(ctx context.Context, text string) (out tool.Outcome, undo func() error) {
	s, err := o.rt.Session(o.t.Context(), perm.Principal{ID: "coder"})
	if err != nil {
		o.t.Error(err)
		return out, nil
	}
	id, _ := s.Update(o.t.Context(), func(tx *agent.Txn) (err error) {
		out, err = tx.Invoke(ctx, "say", tool.Args{"line": text})
		return err
	})
	return out, func() error {
		_, err := s.Revert(o.t.Context(), id, revert.Options{})
		return err
	}
}

func (o *serverEnv) file(name string) string {
	o.t.Helper()
	raw, err := os.ReadFile(filepath.Join(o.dir, name))
	if os.IsNotExist(err) {
		return "(none)"
	}
	require.NoError(o.t, err)
	return string(raw)
}

// TestServerCalls checks that the server's changes during a call belong to that call,
// and are reverted with it. The server sees its own writes, those of others,
// and reverts.
func TestServerCalls(t *testing.T) {
	o := newServerEnv(t)
	level, missing := o.service.Level()
	require.NotEmpty(t, level, missing)
	require.Equal(t, "ok wrote 1", o.say("echo one > a").Text)
	require.Equal(t, "one\n", o.file("a"))
	require.NoError(t, os.WriteFile(filepath.Join(o.dir, "a"), []byte("other\n"), 0o644))
	out, undo := o.sayIn(t.Context(), "cat a > b; echo two >> b")
	require.Equal(t, tool.StatusDone, out.Status, out.Text)
	require.Equal(t, "other\ntwo\n", o.file("b"))
	require.NoError(t, undo())
	require.Equal(t, "(none)", o.file("b"))
	require.Equal(t, "ok wrote 1", o.say("test -e b || echo gone > c").Text)
	require.Equal(t, "gone\n", o.file("c"))
	require.Equal(t, "ok wrote 0", o.say(":").Text)
}

// TestServerCallsQueue checks that concurrent calls get the server one after the
// other, each with only its own changes.
func TestServerCallsQueue(t *testing.T) {
	o := newServerEnv(t)
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			out, _ := o.sayIn(t.Context(), fmt.Sprintf("echo %d > f%d; ls > /dev/null", i, i))
			if out.Status != tool.StatusDone || len(out.Changes) != 1 || out.Changes[0].Resource != fmt.Sprintf("file://workspace/f%d", i) {
				t.Errorf("%d: %s %v", i, out.Text, out.Changes)
			}
		})
	}
	all.Wait()
	for i := range 12 {
		require.Equal(t, fmt.Sprintln(i), o.file(fmt.Sprintf("f%d", i)))
	}
}

// TestServerDiesDuringCall checks that a call whose server dies has no changes,
// and that no later call gets the server.
func TestServerDiesDuringCall(t *testing.T) {
	o := newServerEnv(t)
	out := o.say("echo half > a; kill -9 $$")
	require.Equal(t, tool.StatusFailed, out.Status, out.Text)
	require.Equal(t, "(none)", o.file("a"))
	<-o.service.Gone()
	out = o.say("echo more > a")
	require.Equal(t, tool.StatusFailed, out.Status, out.Text)
	require.Contains(t, out.Error.Why, "exited")
	o.service.Close()
	o.serve(serverScript) // on the returned copies, which contain more than the root
	require.Equal(t, "ok wrote 1", o.say("cat a > b 2>/dev/null").Text)
	require.Empty(t, o.file("b"))
}

// TestCloseDuringCall checks that Close ends the server during a call. It returns
// after that call has ended, without changes.
func TestCloseDuringCall(t *testing.T) {
	o := newServerEnv(t)
	ended := make(chan tool.Outcome, 1)
	go func() {
		out, _ := o.sayIn(t.Context(), "echo half > a; cat /dev/zero > /dev/null")
		ended <- out
	}()
	<-o.calls
	o.service.Close()
	o.service.Close() // a second Close does nothing
	out := <-ended
	require.Equal(t, tool.StatusFailed, out.Status, out.Text)
	require.Equal(t, "(none)", o.file("a"))
	require.Equal(t, tool.StatusFailed, o.say(":").Status)
}

// TestCloseWithQueuedCalls checks that each call ends done with its changes, or
// failed without any, whenever the server is closed.
func TestCloseWithQueuedCalls(t *testing.T) {
	for round := range 6 {
		o := newServerEnv(t)
		var all sync.WaitGroup
		var done atomic.Int64
		for i := range 6 {
			all.Go(func() {
				out, _ := o.sayIn(t.Context(), fmt.Sprintf("echo %d > f%d", i, i))
				raw, err := os.ReadFile(filepath.Join(o.dir, fmt.Sprintf("f%d", i)))
				if done.Add(1); (out.Status == tool.StatusDone) != (err == nil && string(raw) == fmt.Sprintln(i)) || out.Status == tool.StatusUnknown {
					t.Errorf("%d: %s, and there is %q", i, out.Status, raw)
				}
			})
		}
		for done.Load() < int64(round) {
			runtime.Gosched()
		}
		o.service.Close()
		all.Wait()
	}
}

// TestServerCallAfterCallEnded checks that another call gets the server after a
// call has ended.
func TestServerCallAfterCallEnded(t *testing.T) {
	o := newServerEnv(t)
	require.Equal(t, tool.StatusDone, o.say("echo one > a").Status)
	old := <-o.calls
	_, _, err := old.End(t.Context())
	require.ErrorIs(t, err, ctxperm.ErrClosed)
	require.Equal(t, tool.StatusDone, o.say("echo two > a").Status)
	require.Equal(t, "two\n", o.file("a"))
}

// TestServerLeftBusy checks that no other call gets a server that a call
// left busy.
func TestServerLeftBusy(t *testing.T) {
	o := newServerEnv(t)
	require.Equal(t, tool.StatusDone, o.say("echo one > a").Status)
	require.Equal(t, tool.StatusDone, o.say("echo two > a # busy").Status)
	for range 2 {
		out := o.say("echo three > a")
		require.Equal(t, tool.StatusFailed, out.Status)
		require.Contains(t, out.Text, process.ErrServerExited.Error())
	}
	require.Equal(t, "two\n", o.file("a"))
	o.service.Close()
	o.serve(serverScript)
	require.Equal(t, tool.StatusDone, o.say("echo three > a").Status)
}

// TestServerCallCancelled checks a call whose time ends during its use of the
// server, or before. It leaves no changes, and the next call finds the copies
// equal to the root.
func TestServerCallCancelled(t *testing.T) {
	o := newServerEnv(t)
	require.NoError(t, os.Mkdir(filepath.Join(o.dir, "d"), 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	wait := make(chan struct{})
	go func() {
		<-o.calls
		cancel()
		o.service.Close() // nothing else makes the server respond
		close(wait)
	}()
	out, _ := o.sayIn(ctx, "rmdir d; echo half > a; cat /dev/zero > /dev/null")
	require.Equal(t, tool.StatusCancelled, out.Status, out.Text)
	<-wait
	require.Equal(t, "(none)", o.file("a"))
	o.serve(serverScript)
	out, _ = o.sayIn(ctx, ":")
	require.Equal(t, tool.StatusCancelled, out.Status, out.Text)
	require.Equal(t, "ok wrote 1", o.say("test -d d && test ! -e a && echo yes > b").Text)
	require.Equal(t, "yes\n", o.file("b"))
}

// TestServerThatStartsPrograms checks that a server that constantly starts
// programs is stopped for each call. This includes a process that waits until
// another one, which is stopped, has released its memory.
func TestServerThatStartsPrograms(t *testing.T) {
	o := newServerEnv(t)
	require.Equal(t, tool.StatusDone, o.say("for i in 1 2 3; do (while :; do /bin/true; done) & done").Status)
	for i := range 60 {
		out := o.say("echo %d > a", i)
		require.Equal(t, tool.StatusDone, out.Status, out.Text)
		require.Len(t, out.Changes, 1)
	}
}

// TestServeRefuses checks that an invalid server is refused, and leaves
// nothing.
func TestServeRefuses(t *testing.T) {
	driver, err := process.New(process.Config{Scratch: t.TempDir()})
	require.NoError(t, err)
	defer func() { require.NoError(t, driver.Close()) }()
	for name, s := range map[string]process.ServerConfig{
		"no program": {},
		"no root":    {Argv: []string{"true"}, Roots: map[string]string{"workspace": filepath.Join(t.TempDir(), "none")}},
		"a mask":     {Argv: []string{"true"}, Masks: []string{"nowhere"}},
	} {
		_, err := driver.Serve(t.Context(), s)
		require.Error(t, err, name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = driver.Serve(ctx, process.ServerConfig{Argv: []string{"true"}, Roots: map[string]string{"workspace": t.TempDir()}})
	require.Error(t, err)
}

// TestLastWords checks that the standard error of a server can be read after
// Close.
func TestLastWords(t *testing.T) {
	o := newServerEnv(t)
	o.service.Close()
	o.serve("echo the reason >&2; echo said; cat")
	_, err := o.out.ReadString('\n')
	require.NoError(t, err)
	o.service.Close()
	_, _, complaints := o.service.Pipes()
	words, err := io.ReadAll(complaints)
	require.NoError(t, err)
	require.Equal(t, "the reason\n", string(words))
	require.NoError(t, complaints.Close())
}

// A server runs in the sandbox, and each call of a tool uses it exclusively.
// The tool is made with Spec.InSandbox, and needs the accesses of the server in
// its root.
func ExampleDriver_Serve() {
	driver, err := process.New(process.Config{})
	if err != nil {
		return
	}
	defer func() { _ = driver.Close() }()
	server, err := driver.Serve(context.Background(), process.ServerConfig{Argv: []string{"my-server"}, Roots: map[string]string{"workspace": "/home/me/work"}})
	if err != nil {
		return
	}
	defer server.Close()
	_ = func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
		turn, err := server.Begin(ctx, tc)
		if err != nil {
			return tool.Result{}, err
		}
		to, from, _ := server.Pipes()
		if _, err := to.Write(append(in, '\n')); err != nil {
			return tool.Result{}, err
		}
		answer, err := bufio.NewReader(io.LimitReader(from, 1<<20)).ReadString('\n')
		if err != nil {
			return tool.Result{}, err // none of the server's changes are applied
		}
		_, _, err = turn.End(ctx)
		return tool.Result{Text: answer}, err
	}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/pgtest"
	"github.com/remit-dev/remit/internal/sandbox"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// TestMain makes the command available to scripts as remit, a process of its
// own: with a clock and ids from a seed, tools that misbehave, and a way to die.
func TestMain(m *testing.M) {
	testscript.Main(withServer{m}, scriptCommands())
}

func scriptCommands() map[string]func() {
	return map[string]func(){
		"remit": remitForTests, "sqlite": sqliteForTests, "depot": depotForTests, "expand": expandForTests,
		"counted": countedForTests, "peer": peerForTests, "troubled": troubledForTests, "really": main, "onpty": onTerminal,
	}
}

// quickly is a folder of the scripts' commands without the race detector, which would
// take most of the time of hundreds of short processes; empty without it.
func quickly(t *testing.T) string {
	own, err := os.Executable()
	require.NoError(t, err)
	if self() == own {
		return ""
	}
	dir := t.TempDir()
	for name := range scriptCommands() {
		require.NoError(t, os.Link(self(), filepath.Join(dir, name)))
	}
	return dir
}

// withServer stops the database server that tests may have started.
type withServer struct{ *testing.M }

// Run runs the tests.
func (w withServer) Run() int {
	defer func() {
		leftBehind.Range(func(dir, _ any) bool {
			_ = os.RemoveAll(dir.(string)) //nolint:errcheck // it holds nothing but names
			return true
		})
	}()
	return pgtest.Run(w.M)
}

// leftBehind are folders that outlive the test that made them.
var leftBehind sync.Map

func leave(dir string) { leftBehind.Store(dir, true) }

func TestScripts(t *testing.T) {
	update, quick := flag.Lookup("update"), quickly(t)
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: update != nil && update.Value.String() == "true",
		Setup: func(e *testscript.Env) error {
			state := e.WorkDir + ".state" // beside the workspace, never inside
			e.Setenv("XDG_STATE_HOME", state)
			e.Defer(func() { _ = os.RemoveAll(state) })
			if quick != "" {
				e.Setenv("PATH", quick+string(filepath.ListSeparator)+e.Getenv("PATH"))
			}
			startDepot(e)
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "sandbox" {
				return false, errors.New("there is no condition " + name)
			}
			return hasSandbox(), nil
		},
		RequireExplicitExec: false,
	})
}

// hasSandbox reports whether this machine can run a program at the level strict.
func hasSandbox() bool {
	p, err := sandbox.Start(context.Background(), "", sandbox.Spec{Argv: []string{"true"}, Require: sandbox.Strict}, sandbox.Stdio{})
	if err != nil {
		return false
	}
	_, err = p.Wait()
	return errors.Join(err, p.Close()) == nil
}

var _ = flag.Bool("update", false, "write what the scripts expect, and the generated parts of docs/reference")

// greetsSomebody makes no tool for nobody.
func greetsSomebody(who perm.Principal, _ perm.SessionFacts, of tool.Spec) (tool.Spec, error) {
	if who.ID == "nobody" {
		return of, errors.New("nobody is greeted")
	}
	return of, nil
}

// remitForTests is the command with everything that differs from run to run
// replaced: an id becomes its kind and a number, in the order of appearance in
// the whole script. Arguments that are such names become ids again. EXIT is the
// code that is wanted: a script then only sees whether it was that.
func remitForTests() {
	names := loadNames(os.Getenv("WORK"))
	args := os.Args[1:]
	for i, a := range args {
		args[i] = names.real(a)
	}
	out, errs := names.writer(os.Stdout), names.writer(os.Stderr)
	code := run(context.Background(), args, cli.Env{
		In: os.Stdin, Out: out, Err: errs, Getenv: os.Getenv, Host: hostForTests(), ExtraTools: toolsForTests(), Customizers: []agent.Option{agent.CustomizeTool("greet", greetsSomebody)},
		Username: func() (string, error) { return "somebody", nil }, Caller: personHere,
		OpenTTY: func() (io.ReadWriteCloser, error) { return terminalOf(os.Getenv("TYPED")) },
	})
	if err := errors.Join(out.flush(), errs.flush()); err != nil {
		panic(err)
	}
	switch want := os.Getenv("EXIT"); want {
	case "":
		os.Exit(code)
	case strconv.Itoa(code):
		os.Exit(0)
	default:
		_, _ = io.WriteString(os.Stderr, "the exit code is "+strconv.Itoa(code)+", want "+want+"\n")
		os.Exit(1)
	}
}

// hostForTests kills the process at the nth time that it passes the scheduling
// point which DIE names as id:n.
func hostForTests() host.Host {
	if os.Getenv("DIE") == "" {
		return host.Real()
	}
	id, n, _ := strings.Cut(os.Getenv("DIE"), ":")
	left, err := strconv.Atoi(n)
	if err != nil {
		panic(err)
	}
	var seed [8]byte
	host.Real().Random(seed[:])
	h := hosttest.New(uint64(seed[0]) | uint64(seed[1])<<8 | uint64(seed[2])<<16 | uint64(seed[3])<<24)
	h.OnPoint = func(at string) error {
		if at == id {
			left--
			if left == 0 {
				exitAbruptly()
			}
		}
		return nil
	}
	return h
}

// exitAbruptly ends the process as a power cut would: nothing after it runs.
func exitAbruptly() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

type typed struct {
	io.Reader
	io.Writer
}

func (typed) Close() error { return nil }

func terminalOf(text string) (io.ReadWriteCloser, error) {
	if text == "" {
		return nil, errors.New("there is none")
	}
	return typed{strings.NewReader(text + "\n"), os.Stderr}, nil
}

// toolsForTests are tools that a script can use to get each outcome.
func toolsForTests() []tool.Tool {
	text := func(out string, err error) tool.Execute {
		return func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text(out), err
		}
	}
	lost := errors.New("the connection broke")
	var tools []tool.Tool
	for _, s := range []tool.Spec{
		{Name: "undeclared", Description: "Says nothing about its effects.", Execute: text("ran", nil)},
		{Name: "send", Description: "Sends something.", EffectClass: effect.Pivot, Execute: text("sent", nil)},
		{Name: "lose", Description: "Loses its connection.", EffectClass: effect.Pivot, Execute: text("", lost)},
		{Name: "fail", Description: "Fails.", EffectClass: effect.Pure, Execute: text("", errors.New("no such thing"))},
		{
			Name: "forecast", Version: "1.0.0", Tags: []string{"weather"}, Description: "Says how the weather will be.", EffectClass: effect.Pure, Execute: text("rain", nil),
			Settings: tool.Params{{Name: "region", Type: "string", Default: "eu"}, {Name: "token", Type: "string", Secret: true, Required: true}},
			CheckSettings: func(_ context.Context, s json.RawMessage) ([]string, error) {
				if strings.Contains(string(s), "mars") {
					return []string{"far away"}, errors.New("no weather there")
				}
				return []string{"the service is slow"}, nil
			},
		},
		{Name: "forecast", Version: "0.9.0", Description: "Guesses.", Deprecated: "use 1.0.0", EffectClass: effect.Pure, Execute: text("sun", nil)},
		{Name: "greet", Description: "Greets.", EffectClass: effect.Pure, Execute: text("hello", nil)},
		{
			Name: "login", Description: "Takes a password.", EffectClass: effect.Pure, Execute: text("in", nil),
			Input: json.RawMessage(`{"type":"object","properties":{"user":{"type":"string"},"password":{"type":"string"}},"additionalProperties":false}`),
			Hints: tool.Hints{Sensitive: []string{"password"}},
		},
		{
			Name: "book", Description: "Books a table; giving it back fails.", EffectClass: effect.Compensable, Execute: text("booked", nil),
			Revert: func(context.Context, tool.RevertContext) error { return errors.New("the restaurant is closed") }, UndoVersion: "1",
		},
	} {
		made, err := tool.FromSpec(s)
		if err != nil {
			panic(err)
		}
		tools = append(tools, made)
	}
	return tools
}

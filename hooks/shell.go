package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// Command is the process that the client started instead of a command: it has
// the outputs of the command, and its exit code is the command's.
type Command struct {
	Dir                   string   // its current folder, absolute
	Environ               []string // its environment, of which the command gets a part
	Stdin, Stdout, Stderr *os.File
	Gone                  <-chan struct{} // closed when the process has ended
	Exit                  chan<- Exit     // receives one element
}

// Exit is how a command ended.
type Exit struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"` // why the command did not run, or why its changes do not stand
}

// The exit codes of a command that remit ended, as those of shells.
const (
	exitRefused = 126 // denied, or its changes were
	exitFailed  = 125 // it could not be run
	exitKilled  = 137 // a signal ended it
)

// shellTool returns the tool that runs commands in the sandbox.
func shellTool() (tool.Tool, error) {
	return tool.FromSpec(internals.InSandbox(common(tool.Spec{
		Name: shellName, Description: "Run a command of the agent's shell in the sandbox.",
		Needs: []perm.ResourceAccess{
			perm.Access(perm.Execute, "exec://*"), perm.Access(perm.Execute, "exec:///**"), perm.Access(perm.Execute, "file://*/**"),
			perm.Access(perm.Read, "file://*/**"), perm.Access(perm.Write, "file://*/**"), perm.Access(perm.Delete, "file://*/**"),
			perm.Access(perm.Connect, "https://*:*/**"), perm.Access(perm.Connect, "http://*:*/**"),
		},
		AccessFor: shellAccess, ParseScript: scriptOf, EffectClass: effect.Reversible, Destination: tool.NoDestination,
		Verify: verify.Changes, Execute: runSandboxed,
	})))
}

// errNotRun says that the client did not run a command.
var errNotRun = errors.New("the client did not run the command")

// runSandboxed waits for the process that shows the command, and runs the
// command for it.
func runSandboxed(ctx context.Context, tc ctxperm.ToolContext, raw json.RawMessage) (tool.Result, error) {
	c, err := usedBy(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	in, err := decoded(raw)
	if err != nil {
		return tool.Result{}, tool.NoEffect(err)
	}
	cmd, err := in.cmd()
	if err != nil {
		return tool.Result{}, tool.NoEffect(err)
	}
	c.started.Do(func() { close(c.ready) })
	var shown *Command
	select {
	case shown = <-c.attach:
	case <-c.ended:
		return tool.Result{}, tool.NoEffect(errNotRun)
	case <-ctx.Done():
		return tool.Result{}, tool.NoEffect(context.Cause(ctx))
	}
	c.shown = shown
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-shown.Gone:
			cancel(errors.New("the client ended the command"))
		case <-ctx.Done():
		}
	}()
	attached := process.Attachment{Stdout: shown.Stdout, Stderr: shown.Stderr, Environment: process.CallerEnvironment(shown.Environ)}
	if shown.Stdin != nil {
		attached.Stdin = shown.Stdin
	}
	cmd.Attachment, cmd.Egress = &attached, true
	r, err := process.Run(ctx, tc, cmd)
	if err != nil {
		return tool.Result{}, err
	}
	if c.code = r.Code; r.Signal != "" {
		c.code = exitKilled
	}
	c.notices = slices.Concat(deniedHosts(r), skippedChanges(r), endedProcesses(in.Command, r))
	return commandResult(r)
}

// maxNotices bounds the notices of one kind.
const maxNotices = 5

// skippedChanges returns which changes of a command are not applied. The command
// saw them, so the model must know.
func skippedChanges(r process.Result) (all []string) {
	for _, what := range r.SkippedChanges {
		if !strings.Contains(what, ": the time of the symbolic link") { // no command relies on it
			all = append(all, "not applied: "+what)
		}
	}
	if n := len(all) - maxNotices; n > 0 {
		all = append(all[:maxNotices], fmt.Sprintf("not applied: %d more changes", n))
	}
	return all
}

// deniedHosts returns which hosts were refused to a command. Many programs hide
// the reason that the proxy gives.
func deniedHosts(r process.Result) (all []string) {
	n := 0
	for _, met := range r.Restrictions {
		if met.Rule != process.RuleDeniedHost {
			continue
		}
		if n++; n <= maxNotices {
			all = append(all, met.Text)
		}
	}
	if n > maxNotices {
		all = append(all, fmt.Sprintf("denied connect to %d more hosts", n-maxNotices))
	}
	return all
}

// background matches a command that starts a process to outlive it. Programs also
// leave processes unknown to the model, such as a clean-up of git.
var background = regexp.MustCompile(`\b(nohup|setsid|disown)\b|(^|[^&>])&([^&>]|$)`)

// endedProcesses says that a process of a command ended with it, so that the
// model does not rely on it.
func endedProcesses(command string, r process.Result) []string {
	if r.Survivors == 0 || !background.MatchString(command) {
		return nil
	}
	return []string{"the processes that the command left running were ended with it, as always in the sandbox. To keep one running, use the way of the shell tool to run a command in the background"}
}

func commandResult(r process.Result) (tool.Result, error) {
	text := string(r.Stdout)
	if len(r.Stderr) > 0 {
		text += "\n[stderr]\n" + string(r.Stderr)
	}
	raw, err := canon.Marshal(map[string]any{
		"reported": true, "failed": r.Code != 0, "exit_code": r.Code, "output": printable(text), "cut": r.TruncatedBytes, "sandbox": string(r.Level),
	})
	return tool.Result{JSON: raw, Text: printable(text)}, err
}

// finish tells the process that shows the command how it ended.
func (c *call) finish() {
	if c.shown == nil {
		return
	}
	e := Exit{Code: c.code, Message: strings.Join(c.notices, "\nremit: ")}
	switch c.out.Status {
	case tool.StatusDone, tool.StatusHeld:
	case tool.StatusDenied, tool.StatusPending, tool.StatusVerifyFailed:
		e = Exit{Code: exitRefused, Message: refusal(c.out)}
	default:
		e = Exit{Code: exitFailed, Message: c.out.Text}
	}
	c.shown.Exit <- e
}

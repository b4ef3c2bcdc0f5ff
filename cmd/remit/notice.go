package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/render"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/tool"
)

// notices reports pending calls to people: on standard error, never in output
// that an agent reads.
type notices struct {
	a     *cli.App
	tools func() tool.Registry
	// look and approve return the commands that a person runs for a call.
	look, approve func(call string) string
	state         string    // state folder
	notify        *notifier // nil: no program is notified
}

// waits reports one call whose approval request is on the journal.
func (n *notices) waits(ask ctxperm.ApprovalRequest) {
	var b strings.Builder
	p := n.a.ErrStyle()
	_, _ = fmt.Fprintf(&b, "%s%s asks to run %s: call %s waits for approval\n", p.Doubt("remit: "), cli.Printable(ask.Principal.ID), cli.Printable(ask.Tool), ask.Call)
	row := func(name, text string) {
		if text != "" {
			_, _ = fmt.Fprintf(&b, "     %s%s\n", p.Faint(fmt.Sprintf("%-8s", name)), cli.Printable(text))
		}
	}
	var why []string
	for _, r := range ask.Reasons {
		why = append(why, cli.WithPlace(r.Text, r.At))
	}
	row("again", ask.Earlier)
	row("why", strings.Join(why, "; "))
	row("with", render.Arguments(ask.Input, sensitive(n.tools(), ask.Tool)))
	if ask.InPlace > 0 {
		row("here", fmt.Sprintf("it has begun, so this process waits for the answer, at most %s; then the call is denied", ask.InPlace))
	}
	row("look", n.look(ask.Call))
	if ask.Preview == "" { // otherwise the person first looks at the changes
		row("approve", n.approve(ask.Call))
	}
	_, _ = fmt.Fprint(n.a.Err, b.String())
	n.notify.tell(n, ask)
}

// newNotices returns notices that show the commands look and approve. Program
// is notified of each pending call, if it is not empty.
func newNotices(a *cli.App, state, program string, look, approve func(call string) string) *notices {
	warn := func(text string) { _, _ = fmt.Fprintln(a.Err, "remit: "+cli.Printable(text)) }
	return &notices{a: a, state: state, look: look, approve: approve, notify: newNotifier(program, ownEnv(), warn)}
}

// setTools sets the tools whose sensitive arguments the notices hide.
func (n *notices) setTools(tools func() tool.Registry) { n.tools = tools }

// Close waits for the notified program.
func (n *notices) Close() error { return n.notify.Close() }

// sensitive returns the arguments of a tool that must not be shown: all of them
// for an unknown tool.
func sensitive(tools tool.Registry, name string) []string {
	if t, ok := tools.Get(name); ok {
		return t.Spec().Hints.Sensitive
	}
	return nil
}

// approveHint is the command that approves a call of a run, lets it go on and ends its transaction.
func (f *runFlags) approveHint(call string) string {
	words := []string{"approve", call, "--resume"}
	for _, path := range f.policies {
		words = append(words, "--policy", cli.Quote(path))
	}
	return f.Hint(words...)
}

// anywhere returns the same run with flags that work in any folder.
func (f *runFlags) anywhere() *runFlags {
	out := *f
	out.Workspace.GivenFlags, out.policies = []string{"--state", whole(f.StateDir)}, nil
	for _, path := range f.policies {
		if !strings.HasPrefix(path, policies.Prefix) {
			path = whole(path)
		}
		out.policies = append(out.policies, path)
	}
	return &out
}

func whole(path string) string {
	if dir, err := filepath.Abs(path); err == nil {
		return dir
	}
	return path
}

// startupNotices returns the notices of a run or of a server. They contain absolute
// paths, as a person can read them in any folder. A server resumes the call
// itself; for a run, the approval command does.
func startupNotices(a *cli.App, f *runFlags) *notices {
	at := f.anywhere()
	approve := at.approveHint
	if f.settles {
		approve = func(call string) string { return at.Hint("approve", call) }
	}
	return newNotices(a, whole(f.StateDir), f.notify, func(call string) string { return at.Hint("pending", call) }, approve)
}

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/tool"
)

// notices tells people of calls that wait: on standard error, never in what an agent reads.
type notices struct {
	a     *app
	tools func() tool.Registry
	// look and approve are the commands that a person runs for a call.
	look, approve func(call string) string
	state         string    // folder
	notify        *notifier // nil: no program is told
}

// waits tells of one call whose question is on the journal.
func (n *notices) waits(ask ctxperm.ApprovalRequest) {
	var b strings.Builder
	p := n.a.paintErr()
	_, _ = fmt.Fprintf(&b, "%s%s asks to run %s: call %s waits for approval\n", p.doubt("remit: "), printable(ask.Principal.ID), printable(ask.Tool), ask.Call)
	row := func(name, text string) {
		if text != "" {
			_, _ = fmt.Fprintf(&b, "     %s%s\n", p.faint(fmt.Sprintf("%-8s", name)), printable(text))
		}
	}
	var why []string
	for _, r := range ask.Reasons {
		why = append(why, withPlace(r.Text, r.At))
	}
	row("again", ask.Earlier)
	row("why", strings.Join(why, "; "))
	row("with", argWords(ask.Input, sensitive(n.tools(), ask.Tool)))
	if ask.InPlace > 0 {
		row("here", fmt.Sprintf("it has begun, so this process waits for the answer, at most %s; then the call is denied", ask.InPlace))
	}
	row("look", n.look(ask.Call))
	if ask.Preview == "" { // else a person looks at what it wants to change first
		row("approve", n.approve(ask.Call))
	}
	_, _ = fmt.Fprint(n.a.err, b.String())
	n.notify.tell(n, ask)
}

// notices makes those of a run or of a server. A person reads them in any folder, so they name each path whole. A server goes on with
// the call itself; of a run the approval does.
func (a *app) notices(f *runFlags) *notices {
	at := f.anywhere()
	n := &notices{a: a, state: whole(f.state), look: func(call string) string { return at.hint("pending", call) }, approve: at.approveHint}
	n.notify = newNotifier(f.notify, ownEnv(), func(text string) { _, _ = fmt.Fprintln(a.err, "remit: "+printable(text)) })
	if f.settles {
		n.approve = func(call string) string { return at.hint("approve", call) }
	}
	return n
}

// sensitive are the arguments of a tool that are not shown; all of one that is not at hand.
func sensitive(tools tool.Registry, name string) []string {
	if t, ok := tools.Get(name); ok {
		return t.Spec().Hints.Sensitive
	}
	return nil
}

// anywhere is the same run in the words of a command that can be run in any folder.
func (f *runFlags) anywhere() *runFlags {
	out := *f
	out.workspaceState.given, out.policies = []string{"--state", whole(f.state)}, nil
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

// approveHint is the command that approves a call of a run, lets it go on and ends its transaction.
func (f *runFlags) approveHint(call string) string {
	words := []string{"approve", call, "--resume"}
	for _, path := range f.policies {
		words = append(words, "--policy", quoted(path))
	}
	return f.hint(words...)
}

// resumes reports whether a command lets a call go on.
func resumes(args []string) bool {
	return len(args) > 0 && (args[0] == "resume" || slices.Contains(args, "--resume"))
}

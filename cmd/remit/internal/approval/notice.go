package approval

import (
	"fmt"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// Notices reports pending calls to people: on standard error, never in output
// that an agent reads.
type Notices struct {
	a     *cli.App
	Tools func() tool.Registry
	// look and approve return the commands that a person runs for a call.
	look, approve func(call string) string
	state         string    // state folder
	notify        *notifier // nil: no program is notified
}

// Show reports one call whose approval request is on the journal.
func (n *Notices) Show(ask ctxperm.ApprovalRequest) {
	var b strings.Builder
	p := n.a.ErrStyle()
	commit := ask.Purpose == perm.PurposeCommit
	if commit {
		_, _ = fmt.Fprintf(&b, "%s%s asks to commit: transaction %s waits for approval\n", p.Doubt("remit: "), cli.Printable(ask.Principal.ID), ask.Txn)
	} else {
		_, _ = fmt.Fprintf(&b, "%s%s asks to run %s: call %s waits for approval\n", p.Doubt("remit: "), cli.Printable(ask.Principal.ID), cli.Printable(ask.Tool), ask.Call)
	}
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
	if commit { // the person first looks at the changes
		row("look", n.look(ask.Txn))
		_, _ = fmt.Fprint(n.a.Err, b.String())
		n.notify.enqueue(n, ask)
		return
	}
	row("with", callview.Arguments(ask.Input, sensitive(n.Tools(), ask.Tool)))
	if ask.InPlace > 0 {
		row("here", fmt.Sprintf("it has begun, so this process waits for the answer, at most %s; then the call is denied", ask.InPlace))
	}
	row("look", n.look(ask.Call))
	if ask.Preview == "" { // otherwise the person first looks at the changes
		row("approve", n.approve(ask.Call))
	}
	_, _ = fmt.Fprint(n.a.Err, b.String())
	n.notify.enqueue(n, ask)
}

// NewNotices returns notices that show the commands look and approve. Program
// is notified of each pending call, if it is not empty.
func NewNotices(a *cli.App, state, program string, look, approve func(call string) string) *Notices {
	warn := func(text string) { _, _ = fmt.Fprintln(a.Err, "remit: "+cli.Printable(text)) }
	return &Notices{a: a, state: state, look: look, approve: approve, notify: newNotifier(program, ownEnv(), warn)}
}

// SetTools sets the tools whose sensitive arguments the notices hide.
func (n *Notices) SetTools(tools func() tool.Registry) { n.Tools = tools }

// Close waits for the notified program.
func (n *Notices) Close() error { return n.notify.Close() }

// sensitive returns the arguments of a tool that must not be shown: all of them
// for an unknown tool.
func sensitive(tools tool.Registry, name string) []string {
	if t, ok := tools.Get(name); ok {
		return t.Spec().Hints.Sensitive
	}
	return nil
}

package approve

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// writeAsked writes the reverts and redos that nodes of a shared journal ask of
// this one, and what this one asked of others. It returns their number.
func writeAsked(ctx context.Context, a *cli.App, p *state.Workspace, j journal.Journal, asJSON bool) (int, error) {
	here := ""
	if requests, shared := j.(journal.Requests); shared {
		here = requests.NodeID()
	}
	all, err := (&revert.Reverter{Journal: j, Host: a.Host}).AllAsked(ctx)
	for _, q := range all {
		q.Report = nil // remit revert shows it
		if asJSON {
			a.WriteJSON(q)
			continue
		}
		writeRequest(a, p, q, here == q.Node)
	}
	return len(all), err
}

// writeRequest writes one request; here says that this node carries it out.
func writeRequest(a *cli.App, p *state.Workspace, q revert.Request, here bool) {
	s := a.Style()
	who, what := "asked of node "+cli.Printable(q.Node), q.Verb()+" of "+cli.Printable(q.Target)
	if here {
		who = "asked on node " + cli.Printable(q.From)
	}
	if q.By != "" {
		who += " by " + cli.Printable(q.By)
	}
	how := map[journal.RequestState]string{
		journal.RequestAsked: "no process has begun it", journal.RequestTaken: "a process has begun it",
		journal.RequestDone: "done", journal.RequestFailed: "nothing was done",
	}[q.State]
	_, _ = fmt.Fprintf(a.Out, "%s %s, %s, since %s: %s\n", s.Doubt("…"), s.Bold(what), who, when(q.Asked), how)
	if here {
		_, _ = fmt.Fprintln(a.Out, s.Faint("do it: "+p.Hint("recover")))
	} else {
		me, _ := a.Username() // without a name, the hint has --by
		_, _ = fmt.Fprintln(a.Out, s.Faint("show its report: "+p.RequestHint(q, me)))
	}
	if q.State == journal.RequestAsked {
		_, _ = fmt.Fprintln(a.Out, s.Faint("withdraw it: "+p.WithdrawHint(q)))
	}
}

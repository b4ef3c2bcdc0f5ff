package approve

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/remit-dev/remit/cmd/remit/internal/approval"
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
		if q.Damage != "" {
			writeDamaged(a, p, q)
			continue
		}
		writeRequest(a, p, q, here == q.Node)
	}
	return len(all), err
}

// writeDamaged writes a request that cannot be read, or that no node asks. It is
// named by its number, because its other fields can be wrong.
func writeDamaged(a *cli.App, p *state.Workspace, q revert.Request) {
	s := a.Style()
	_, _ = fmt.Fprintf(a.Out, "%s %s, for node %s, from node %s: no process carries it out\n", s.Bad("✗"), s.Bold(fmt.Sprintf("damaged request %d", q.Number)), cli.Printable(q.Node), cli.Printable(q.From))
	s.Details(a.Out, &cli.Problem{Why: q.Damage})
	_, _ = fmt.Fprintln(a.Out, s.Faint("delete it: "+p.Hint("pending", "--discard", strconv.FormatInt(q.Number, 10))))
}

// discard deletes a damaged request.
func discard(ctx context.Context, a *cli.App, p *state.Workspace, number int64, asJSON bool) (err error) {
	j, err := p.Read(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if err = approval.CheckNodeRequest(a, p); err != nil {
		return err
	}
	what := fmt.Sprintf("request %d was not deleted", number)
	switch err = (&revert.Reverter{Journal: j, Host: a.Host}).DiscardAsked(ctx, number); {
	case errors.Is(err, journal.ErrNotOwner):
		return &cli.Problem{Code: cli.ExitUsage, What: what, Why: "the request is not damaged", Fix: p.Hint("pending") + " tells how to withdraw it"}
	case errors.Is(err, journal.ErrNotFound):
		return &cli.Problem{Code: cli.ExitUsage, What: what, Why: "the journal has no such request", Fix: p.Hint("pending") + " lists the requests of this node, and " + p.Hint("fsck") + " those of all nodes"}
	case err != nil:
		return err
	}
	if asJSON {
		a.WriteJSON(discardedRecord{number, "deleted"})
		return nil
	}
	_, _ = fmt.Fprintf(a.Out, "%s deleted: the damaged request %d\n", a.Style().Good("✓"), number)
	return nil
}

// discardedRecord is the JSON form of a request that was deleted.
type discardedRecord struct {
	Request int64  `json:"request"`
	State   string `json:"state"` // deleted
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

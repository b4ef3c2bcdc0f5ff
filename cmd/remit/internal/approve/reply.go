package approve

import (
	"context"
	"errors"
	"slices"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// Request is an approval request as a person saw it.
type Request struct {
	Digest string // names the request in an answer
	Shown  string // digest of the difference that was shown; empty: there was none
	Waits  bool   // an answer can be given
	Covers bool   // an approval also covers later calls, unless the person limits it
}

// WriteRequest writes the approval request of a call or a commit, as remit
// pending does for one ID.
func WriteRequest(ctx context.Context, a *cli.App, at *state.Workspace, rt *agent.Runtime, id string) (Request, error) {
	if isTxn(id) {
		return writeCommitRequest(ctx, a, at, rt, id)
	}
	t, c, err := revert.LoadCall(ctx, rt.Journal(), id)
	if err != nil {
		return Request{}, err
	}
	if !c.Waits() || c.Asked == nil || t.End != "" {
		return Request{}, &cli.Problem{Code: cli.ExitUsage, What: "call " + id + " does not wait", Fix: at.Hint("show", id) + " tells how it stands"}
	}
	alive, err := rt.Journal().Alive(ctx, t.Owner)
	if err != nil {
		return Request{}, err
	}
	tools, err := tool.NewRegistry(state.RecordedTools(a)...)
	if err != nil {
		return Request{}, err
	}
	r, err := recordOf(ctx, a, at, rt.Journal(), callview.Pending{Txn: t, Call: c, Alive: alive}, tools, approval.ShownLines)
	if err != nil {
		return Request{}, err
	}
	writePending(a.Style(), a.Out, at, r, a.Host.Now())
	var f rememberFlags
	f.byPolicy(c)
	return Request{c.Asked.Digest, r.Shown, r.State == "waits", f.scope != ""}, nil
}

func writeCommitRequest(ctx context.Context, a *cli.App, at *state.Workspace, rt *agent.Runtime, txn string) (Request, error) {
	all, damage := callview.FindPendingCommits(ctx, rt.Journal())
	i := slices.IndexFunc(all, func(w callview.PendingCommit) bool { return w.Txn.ID == txn })
	if i < 0 {
		return Request{}, errors.Join(damage, &cli.Problem{Code: cli.ExitUsage, What: "the commit of transaction " + txn + " does not wait", Fix: at.Hint("log", "--txn", txn) + " tells how it stands"})
	}
	r, err := commitRecordOf(ctx, a, at, rt, all[i], approval.ShownLines)
	if err != nil {
		return Request{}, err
	}
	writeCommit(a, at, r)
	return Request{r.Question, "", r.State == "waits", false}, nil
}

// Reply is the answer of a person to a request that the person saw.
type Reply struct {
	ID       string // of a call, or of a transaction whose commit waits
	Approves bool
	Once     bool // covers only this call, whatever the policy lets an approval cover
	Why      string
	Request  string // Digest of the Request
	Shown    string // Shown of the Request
}

// Give records an answer under the rules of remit approve and remit deny, and
// writes what follows from it. If an approval is for something else than what
// the person saw, changed is true, and nothing was answered.
func Give(ctx context.Context, a *cli.App, at *state.Workspace, rt *agent.Runtime, r Reply) (changed bool, err error) {
	if err = give(ctx, a, at, rt, r); errors.Is(err, errChanged) {
		return true, nil
	}
	return false, err
}

func give(ctx context.Context, a *cli.App, at *state.Workspace, rt *agent.Runtime, r Reply) error {
	who, err := a.Person()
	if err != nil {
		return err
	}
	f := answerFlags{approves: r.Approves, why: r.Why, question: r.Request, shown: r.Shown, again: true}
	if r.Once {
		f.scope = "once"
	}
	if isTxn(r.ID) {
		_, err = recordCommitAnswer(ctx, a, rt, &f, at, r.ID, who)
		return err
	}
	_, err = recordAnswer(ctx, a, rt, &f, at, r.ID, who)
	return err
}

package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/postgres"
	"github.com/remit-dev/remit/revert/record"
)

// answerInterval is how often a command looks for the answer of another node.
const answerInterval = 200 * time.Millisecond

// asking asks the nodes that have the files for reverts and redos.
type asking struct {
	wait     time.Duration // for all answers of the command
	waits    bool          // the user gave the time: also for a node that does not live
	withdraw bool
}

// addAskFlags adds the flags of a command that can ask another node.
func addAskFlags(cmd *cobra.Command, k *asking) {
	cmd.Flags().DurationVar(&k.wait, "wait", time.Minute, "`TIME` to wait for the report of the node that has the files; without the flag, remit waits only if a process of that node lives")
	cmd.Flags().BoolVar(&k.withdraw, "withdraw", false, "withdraw what waits for another node, if no process has begun it")
}

// check checks the flags.
func (k *asking) check(a *cli.App, cmd *cobra.Command, id string) error {
	k.waits = cmd.Flags().Changed("wait")
	switch {
	case k.wait < 0:
		return cli.UsageProblem(fmt.Sprintf("--wait %s: must not be negative; 0 only asks", k.wait))
	case k.withdraw && id == "":
		return cli.UsageProblem("--withdraw needs the id of the transaction, call or revert")
	case k.withdraw && a.Agent != nil:
		return a.Agent.AgentProblem("--withdraw changes what a person asked for")
	}
	return nil
}

// elsewhere returns the error of a transaction whose files belong to a node that
// can be asked; nil: this node answers itself.
func (r revertRun) elsewhere(p *state.Workspace, rt *agent.Runtime, err error) *agent.NodeError {
	at, ok := errors.AsType[*agent.NodeError](err)
	_, shared := rt.Journal().(journal.Requests)
	if !ok || !shared || at.Node == "" || at.Txn == "" || r.asking == nil || r.way == previewing || len(p.Moved) > 0 {
		return nil
	}
	return at
}

// request returns what to ask another node.
func (r revertRun) request(id string) revert.Request {
	h := r.how
	return revert.Request{
		Redo: r.way == redoing, Target: id, Resources: h.Resources, Cascade: h.Cascade, Force: h.Force, NoMerge: h.NoMerge, Overlaps: h.Overlaps, By: h.By,
	}
}

// ask asks the node that has the files, and waits for its answer. It returns the
// request as it is then.
func (r revertRun) ask(ctx context.Context, a *cli.App, p *state.Workspace, rt *agent.Runtime, id string, at *agent.NodeError) (q revert.Request, node postgres.NodeInfo, err error) {
	if node, err = nodeInfo(ctx, rt.Journal(), at.Node); err != nil {
		return q, node, err
	}
	if err = approval.CheckNodeRequest(a, p); err != nil {
		return q, node, err
	}
	if q, err = rt.AskNode(ctx, r.request(id), at); err != nil || q.State.Ended() {
		return q, node, err
	}
	if node.Processes == 0 && !r.asking.waits {
		return q, node, nil
	}
	if r.asking.wait > 0 {
		_, _ = fmt.Fprintf(a.Err, "remit: asked %s for the %s of %s; waiting for its report\n", nodeWords(node), q.Verb(), cli.Printable(id))
	}
	was := a.Host.Now()
	q, err = waitForAnswer(ctx, a, asker(a, rt.Journal()), q, r.asking.wait)
	r.asking.wait = max(r.asking.wait-a.Host.Now().Sub(was), 0)
	return q, node, err
}

// waitForAnswer waits until a request has ended, at most for a time. It returns
// the request as it is then, also if ctx ends.
func waitForAnswer(ctx context.Context, a *cli.App, r *revert.Reverter, q revert.Request, most time.Duration) (revert.Request, error) {
	if most <= 0 {
		return q, nil
	}
	release := a.Progress.Hold()
	defer release()
	a.Progress.Show("waiting for node " + q.Node)
	timed, cancel := a.Host.WithTimeout(ctx, most, nil)
	defer cancel()
	for !q.State.Ended() {
		now, err := r.Asked(timed, q.Number)
		if timed.Err() != nil {
			break
		}
		if err != nil {
			return q, err
		}
		if q = now; q.State.Ended() {
			break
		}
		pause, free := a.Host.WithTimeout(timed, answerInterval, nil)
		<-pause.Done()
		free()
	}
	return q, nil
}

// asker returns what reads and writes requests.
func asker(a *cli.App, j journal.Journal) *revert.Reverter {
	return &revert.Reverter{Journal: j, Host: a.Host}
}

// nodeInfo describes a node of a shared journal. It returns only the ID of one
// that is not on the journal.
func nodeInfo(ctx context.Context, j journal.Journal, id string) (postgres.NodeInfo, error) {
	here, ok := j.(*postgres.Node)
	if !ok {
		return postgres.NodeInfo{ID: id}, nil
	}
	all, err := here.Nodes(ctx)
	for _, n := range all {
		if n.ID == id {
			return n, err
		}
	}
	return postgres.NodeInfo{ID: id}, err
}

// nodeWords names a node, and its machine if it is known.
func nodeWords(n postgres.NodeInfo) string {
	if n.Host == "" {
		return "node " + n.ID
	}
	return fmt.Sprintf("node %s on %s", n.ID, cli.Printable(n.Host))
}

// answered returns the report of the node that was asked. If there is none yet,
// it writes how the request is, and done is false.
func (r revertRun) answered(ctx context.Context, a *cli.App, p *state.Workspace, q revert.Request, node postgres.NodeInfo) (rep revert.Report, done bool, err error) {
	nothing := map[bool]string{false: "nothing was reverted", true: "nothing was redone"}[q.Redo]
	switch {
	case q.State == journal.RequestDone && q.Report != nil:
		return *q.Report, true, nil
	case q.State == journal.RequestFailed:
		return rep, true, &cli.Problem{Code: cli.ExitPartial, What: nothing, Why: nodeWords(node) + " answered: " + q.Why, Fix: "repeat the command, which asks again, or run it on that node"}
	case q.State.Ended():
		return rep, true, &cli.Problem{Code: cli.ExitPartial, What: nothing, Why: "a person withdrew the request"}
	}
	if again := p.RequestHint(q, userName(a)); ctx.Err() != nil {
		return rep, false, &cli.Problem{Code: cli.ExitPending, What: fmt.Sprintf("interrupted; the %s of %s still waits for %s", q.Verb(), q.Target, nodeWords(node)), Fix: again + " shows the report; " + p.WithdrawHint(q) + " withdraws the request"}
	}
	a.ExitWith(cli.ExitPending)
	if r.asJSON {
		a.WriteJSON(revertOutput{Report: revert.Report{Txn: q.Txn, Items: []revert.ResourceResult{}}, NotReverted: []revert.ResourceResult{}, PassedOver: r.passed, Waits: &q})
		return rep, false, nil
	}
	writeWaiting(a, p, q, node)
	return rep, false, nil
}

// writeWaiting says that a request waits, for whom, and what to do.
func writeWaiting(a *cli.App, p *state.Workspace, q revert.Request, node postgres.NodeInfo) {
	s := a.Style()
	_, _ = fmt.Fprintf(a.Out, "%s the %s of %s waits for %s: %s\n", s.Doubt("…"), q.Verb(), cli.Printable(q.Target), nodeWords(node), howFar(q, node))
	_, _ = fmt.Fprintln(a.Out, s.Faint("show its report: "+p.RequestHint(q, userName(a))))
	if q.State == journal.RequestAsked {
		_, _ = fmt.Fprintln(a.Out, s.Faint("withdraw it: "+p.WithdrawHint(q)))
	}
}

// howFar says how a request is that has not ended.
func howFar(q revert.Request, node postgres.NodeInfo) string {
	switch {
	case node.Processes == 0:
		return "no process of it lives; a server, remit run or remit recover there does it"
	case q.State == journal.RequestTaken:
		return "it has begun"
	default:
		return "a process of it lives; if none of them takes it, remit recover there does"
	}
}

// withdrawAsked withdraws what an ID selects.
func withdrawAsked(ctx context.Context, a *cli.App, p *state.Workspace, id string, redo, asJSON bool) (err error) {
	j, err := p.Read(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	ids, err := ResolveTxns(ctx, j, id)
	if err == nil {
		err = approval.CheckNodeRequest(a, p)
	}
	if err != nil {
		return err
	}
	r, found := asker(a, j), 0
	all, err := r.AllAsked(ctx)
	for _, q := range all {
		if err != nil || q.Damage != "" || q.Redo != redo || q.State.Ended() || q.Target != id && !slices.Contains(ids, q.Target) {
			continue
		}
		found++
		if err = r.WithdrawAsked(ctx, q.Number); errors.Is(err, journal.ErrNotOwner) {
			return &cli.Problem{Code: cli.ExitPartial, What: fmt.Sprintf("the %s of %s was not withdrawn", q.Verb(), q.Target), Why: "node " + q.Node + " has begun it, or it has ended", Fix: p.Hint(q.Verb(), q.Target) + " shows its report"}
		}
		if q.State = journal.RequestWithdrawn; err == nil && asJSON {
			a.WriteJSON(q)
		} else if err == nil {
			_, _ = fmt.Fprintf(a.Out, "%s withdrawn: the %s of %s, asked of node %s\n", a.Style().Good("✓"), q.Verb(), cli.Printable(q.Target), cli.Printable(q.Node))
		}
	}
	if err == nil && found == 0 {
		err = cli.UsageProblem(fmt.Sprintf("no %s of %s waits for another node", map[bool]string{false: "revert", true: "redo"}[redo], id))
	}
	return err
}

// askProblem returns the problem of a request that was not stored.
func askProblem(p *state.Workspace, a *cli.App, err error, way revertOp, at *agent.NodeError) error {
	if errors.Is(err, journal.ErrNotFound) { // the journal of that node was not this one
		return folderProblem(p, a, at, way, at.Txn)
	}
	if errors.Is(err, record.ErrDamaged) {
		return &cli.Problem{Code: cli.ExitInternal, What: "node " + cli.Printable(at.Node) + " could not be asked", Why: err.Error(), Fix: p.Hint("pending") + " shows a damaged request, and how to delete it"}
	}
	if errors.Is(err, postgres.ErrRights) {
		return &cli.Problem{Code: cli.ExitUsage, What: "node " + at.Node + " could not be asked", Why: err.Error(), Fix: "grant this role the rights that docs/guides/nodes.md lists, or run the command on that node"}
	}
	return err
}

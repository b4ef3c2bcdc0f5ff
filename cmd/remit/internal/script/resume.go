package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/cmd/remit/internal/upstream"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// ResumeCommand returns remit resume.
func ResumeCommand(a *cli.App) *cobra.Command {
	var f startup.Flags
	cmd := &cobra.Command{
		Use: "resume CALL | TXN", Short: "Continue a call after its approval, or end a transaction that was left open",
		Long: "Continues a call. The policy decides the recorded call again. If the call is approved and has not changed, it runs\n" +
			"once. Otherwise it is denied, or waits on. Its transaction stays open for further calls, unless --at-end ends it. With\n" +
			"the ID of a transaction that its process left open, and --at-end, the command ends the transaction.\n\n" +
			"A commit releases held calls in the order in which they were held. The policy decided them at that time. A commit that\n" +
			"stopped continues like this: a call that is known to have had no effect is sent again. A call with an unknown outcome\n" +
			"is not sent again, unless its tool declares that one key has one effect; remit resolve resolves it. To continue\n" +
			"without a call, remove it from the queue: remit revert CALL. The exit codes are those of remit run.",
		Args: cli.WantIDs(1, 1, "the id of one call or transaction"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Check(); err != nil {
				return err
			}
			return Resume(cmd.Context(), a, f, args[0])
		},
	}
	state.AddFlags(cmd, &f.Workspace)
	startup.AddResumeFlags(cmd, &f)
	cmd.Flags().StringVar(&f.AtEnd, "at-end", "leave-open", "`END` of the transaction after the call: commit, revert or leave-open")
	cmd.Flags().BoolVar(&f.JSON, "json", false, "write one JSON object per line")
	return cmd
}

// Resume continues a pending call, or ends an open transaction.
func Resume(ctx context.Context, a *cli.App, f startup.Flags, id string) (err error) {
	engine, err := policyfile.Load(f.Policies, false)
	if err != nil {
		return err
	}
	j, err := f.Read(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if id, err = state.FullID(ctx, j, id); err != nil {
		return err
	}
	if err := f.CheckTxn(ctx, a, j, "resume", id); err != nil {
		return err
	}
	roots, err := f.RecordedRoots(ctx, j, id)
	if err != nil {
		return err
	}
	folders := state.FoldersOf(roots)
	opts, err := f.NamedRootOptions(a, folders...)
	if err != nil {
		return err
	}
	known, err := f.Services.Names(folders)
	if err != nil {
		return err
	}
	if err := state.Declare(ctx, a, &f.Declared, folders, known); err != nil {
		return err
	}
	databases, err := state.DatabaseOptions(a, &f.Workspace)
	if err != nil {
		return err
	}
	programs, err := startup.Programs(&f.Workspace, j)
	if err != nil {
		return err
	}
	mirrored, err := upstream.Reopen(ctx, a, &f.Workspace, programs)
	if err != nil {
		return err
	}
	filters, err := f.Limits.Filters()
	if err != nil {
		return err
	}
	tell := startup.Notices(a, &f)
	rt, err := startup.New(a, j, append(slices.Concat(opts, databases, mirrored), agent.Driver(programs), agent.Policy(policyfile.AskBeforeChange(engine, f.Policies, f.Upstreams.Config, roots)), agent.SuspendForApproval(), agent.OnWaiting(tell.Show), agent.Filters(filters...))...)
	if err != nil {
		return &cli.Problem{Code: cli.ExitUsage, What: "remit cannot start", Why: err.Error()}
	}
	tell.SetTools(rt.Tools)
	defer func() { err = errors.Join(err, rt.Close()) }()
	r := &runner{journal: j, flags: f, results: newResultWriter(a, &f, rt.Tools()), sum: newSummary()}
	t, c, err := revert.LoadCall(ctx, j, id)
	switch {
	case err == nil:
		err = r.resumeCall(ctx, rt, engine, t, c)
	case errors.Is(err, journal.ErrNotFound):
		err = r.endAbandoned(ctx, rt, id)
	}
	a.ExitWith(r.code)
	return err
}

// resumeCall resumes a pending call.
func (r *runner) resumeCall(ctx context.Context, rt *agent.Runtime, engine *rego.Engine, t *revert.Txn, c *revert.Call) (err error) {
	if c.Phase != revert.PhasePending {
		return &cli.Problem{
			Code: cli.ExitUsage, What: "call " + c.Ref.Call + " does not wait for an approval", Why: "it is " + string(c.Phase),
			Fix: r.flags.Hint("show", c.Ref.Call) + " tells of it",
		}
	}
	if t.End != "" || t.Aborting {
		return &cli.Problem{
			Code: cli.ExitUsage, What: "call " + c.Ref.Call + " does not wait any more", Why: "its transaction " + t.ID + " " + endWords(t),
			Fix: r.flags.Hint("log", "--txn", t.ID) + " tells of it",
		}
	}
	if err := r.samePolicy(engine, c); err != nil {
		return err
	}
	if err := r.open(ctx, rt, t.ID); err != nil {
		return err
	}
	r.queue(t)
	r.sum.Calls, r.sum.Held = len(r.held), len(r.held)
	out, _ := r.tx.Resume(ctx, c.Ref.Call)
	r.answer(1, call{tool: c.Tool.Name, args: c.Asked.Input}, r.withFix(ctx, out))
	end := r.flags.AtEnd
	if out.Status == tool.StatusPending || othersWait(t, c) {
		end = "leave-open"
	}
	return r.finish(ctx, end)
}

// open takes the ownership of an abandoned transaction.
func (r *runner) open(ctx context.Context, rt *agent.Runtime, id string) (err error) {
	var lost *agent.RootError
	if r.tx, err = rt.ResumeTxn(ctx, id); errors.As(err, &lost) {
		err = &cli.Problem{Code: cli.ExitUsage, What: "transaction " + id + " cannot go on", Why: lost.Error(), Fix: "name the folder: " + r.flags.Hint("resume", id) + " --workspace DIR"}
	}
	if errors.Is(err, revert.ErrBusy) {
		err = &cli.Problem{Code: cli.ExitUsage, What: "transaction " + id + " is in use", Why: err.Error(), Fix: r.flags.Hint("log", "--txn", id) + " tells of it"}
	}
	return err
}

// endWords says why a transaction takes no more calls.
func endWords(t *revert.Txn) string {
	if t.End == "" {
		return "is being reverted"
	}
	return "is " + string(t.State())
}

// othersWait reports whether another call of the transaction is pending. The
// transaction must not end before that call.
func othersWait(t *revert.Txn, c *revert.Call) bool {
	return slices.ContainsFunc(t.Calls, func(o *revert.Call) bool { return o.Phase == revert.PhasePending && o.Ref != c.Ref })
}

// samePolicy rejects the default policy for a call that another policy asked
// about. The default policy could deny the call, and a denial is final.
func (r *runner) samePolicy(engine *rego.Engine, c *revert.Call) error {
	var then perm.DecisionRecord
	if len(r.flags.Policies) > 0 || json.Unmarshal(c.Asked.Decision, &then) != nil || then.Revision == engine.Revision() {
		return nil
	}
	return &cli.Problem{
		Code: cli.ExitUsage, What: "another policy asked about call " + c.Ref.Call,
		Why: fmt.Sprintf("its revision is %s, that of the workspace policy is %s", then.Revision, engine.Revision()),
		Fix: "name the policy that the run had: " + r.flags.Hint("resume", c.Ref.Call) + " --policy PATH",
	}
}

// endAbandoned ends an abandoned transaction.
func (r *runner) endAbandoned(ctx context.Context, rt *agent.Runtime, id string) error {
	t, err := revert.Load(ctx, r.journal, id)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return fmt.Errorf("transaction or call %s: %w", id, journal.ErrNotFound)
	case err != nil:
		return err
	case r.flags.AtEnd == "leave-open":
		return cli.UsageProblem("say how transaction " + id + " ends: --at-end commit or --at-end revert")
	case t.State() != revert.TxnOpen || t.Reverts+t.Redoes != "":
		return &cli.Problem{Code: cli.ExitUsage, What: "transaction " + id + " is not left open", Why: "it is " + string(t.State()), Fix: r.flags.Hint("log", "--txn", id) + " tells of it"}
	}
	for _, c := range t.Calls {
		if status := tool.Status(callview.Status(c)); c.IsHeld() { // earlier attempts do not count
			r.sum.count(tool.Outcome{Status: tool.StatusHeld})
		} else if c.Phase != revert.PhaseDropped {
			r.sum.count(tool.Outcome{Status: status})
		}
		if c.Phase == revert.PhasePending && r.flags.AtEnd == "commit" {
			return &cli.Problem{
				Code: cli.ExitUsage, What: "call " + c.Ref.Call + " of transaction " + id + " still waits",
				Fix: "answer it first: " + approveHint(&r.flags.Workspace, c) + ", or " + r.flags.Hint("deny", c.Ref.Call) + "; then " + r.flags.ResumeHint(c.Ref.Call),
			}
		}
	}
	if err := r.open(ctx, rt, id); err != nil {
		return err
	}
	r.queue(t)
	return r.finish(ctx, r.flags.AtEnd)
}

package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// RedoCommand returns remit redo.
func RedoCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var last, asJSON bool
	var ask asking
	cmd := &cobra.Command{
		Use: "redo [PROMPT | TXN | REVERT]", Short: "Redo a reverted transaction",
		Long: "Reverts the revert of a transaction. A file that changed since stays as it is, and the command lists it: the exit code\n" +
			"is then 6. The command restores what a forced revert overwrote. The ID of a revert, which remit log and remit revert\n" +
			"--json print, identifies the transaction that it reverted. Without an argument, the command redoes the newest undo\n" +
			"of which a redo can restore something, with all transactions that this undo reverted. If the files belong to another\n" +
			"node of a shared journal, the command asks that node, like remit revert: the exit code is 4 while it waits.",
		Args: cli.WantIDs(0, 1, "the id of at most one prompt, transaction or revert"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if last && len(args) == 1 {
				return cli.UsageProblem("name one transaction, or give --last")
			}
			if a.Agent != nil && len(args) == 0 {
				return cli.UsageProblem("name the transaction: the newest revert can be one of another session")
			}
			if err := ask.check(a, cmd, strings.Join(args, "")); err != nil {
				return err
			}
			p.MustExist = true
			if ask.withdraw {
				return withdrawAsked(cmd.Context(), a, &p, args[0], true, asJSON)
			}
			return runRedo(cmd.Context(), a, &p, target{strings.Join(args, ""), len(args) == 0}, asJSON, &ask)
		},
	}
	state.AddFlags(cmd, &p)
	state.AddRootFlag(cmd, &p)
	state.AddDatabaseFlag(cmd, &p)
	cmd.Flags().BoolVar(&last, "last", false, "select the newest undo of which a redo can restore something (the default)")
	addAskFlags(cmd, &ask)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object for each transaction")
	return cmd
}

// runRedo redoes the newest undo, its last transaction first, or what an ID
// selects, oldest first.
func runRedo(ctx context.Context, a *cli.App, p *state.Workspace, which target, asJSON bool, ask *asking) error {
	return startup.WithRuntime(ctx, a, p, func(rt *agent.Runtime) error {
		ids, passed, err := toRedo(ctx, rt, which)
		for _, id := range ids {
			if err != nil {
				break
			}
			r := revertRun{way: redoing, which: which, id: id, passed: passed, others: len(ids) > 1, asJSON: asJSON, asking: ask, how: revert.Options{By: userName(a)}}
			r.do = func(id string) (revert.Report, error) { return rt.Redo(ctx, id, userName(a)) }
			if a.Agent != nil {
				r.asking = nil
				r.do = func(id string) (revert.Report, error) {
					return a.Agent.Revert(ctx, cli.AgentRevert{ID: id, Redo: true})
				}
			}
			err, passed = r.run(ctx, a, p, rt), nil
		}
		return err
	})
}

// toRedo returns what to redo, in this order: the reverts of the newest undo, or
// the transactions that an ID selects. An empty ID says that there is nothing.
func toRedo(ctx context.Context, rt *agent.Runtime, which target) (ids []string, over []passedOver, err error) {
	if which.last {
		ids, over, err = lastUndo(ctx, rt)
		if err == nil && len(ids) == 0 {
			ids = []string{""}
		}
		return ids, over, err
	}
	ids, err = ResolveTxns(ctx, rt.Journal(), which.id)
	if len(ids) > 1 {
		ids = endedTxns(ctx, rt, ids)
	}
	slices.Reverse(ids)
	return ids, nil, err
}

// endedTxns leaves out the transactions of a prompt in which a call still waits
// for an approval: nothing of them is reverted. It leaves all if none has ended.
func endedTxns(ctx context.Context, rt *agent.Runtime, ids []string) []string {
	ended := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		t, err := rt.Load(ctx, id)
		return err == nil && t.State() == revert.TxnOpen
	})
	if len(ended) == 0 {
		return ids
	}
	return ended
}

// lastUndo returns the revert transactions of the newest undo of these folders
// that a redo can redo, in the order of the redo: the last one first. It also
// returns the calls of newer undos that no redo brings back.
func lastUndo(ctx context.Context, rt *agent.Runtime) (ids []string, over []passedOver, err error) {
	newest, over, err := lastRevert(ctx, rt)
	if err != nil || newest == "" {
		return nil, over, err
	}
	all, err := sameUndo(ctx, rt, newest)
	for _, id := range all {
		can := id == newest
		if err == nil && !can {
			can, _, err = redoableRevert(ctx, rt, id)
		}
		if can {
			ids = append(ids, id)
		}
	}
	return ids, over, err
}

// lastRevert returns the newest revert transaction of these folders that a redo
// can redo, and the calls of newer ones that no redo brings back. It returns "" if
// there is none.
func lastRevert(ctx context.Context, rt *agent.Runtime) (found string, over []passedOver, err error) {
	stop := errors.New("found")
	err = state.EachOwnTxn(ctx, rt, func(id string) error {
		can, lost, err := redoableRevert(ctx, rt, id)
		if err == nil && can {
			found, err = id, stop
		}
		over = append(over, lost...)
		return err
	})
	if errors.Is(err, stop) {
		err = nil
	}
	return found, over, err
}

// redoableRevert reports whether a redo of a transaction can redo something. If
// it can not, lost has the calls that only their tools could bring back.
func redoableRevert(ctx context.Context, rt *agent.Runtime, id string) (can bool, lost []passedOver, err error) {
	t, err := rt.Load(ctx, id)
	if err != nil || t.Reverts == "" {
		return false, nil, err
	}
	for _, of := range append([]string{t.Reverts}, t.AlsoReverts...) {
		subject, err := rt.Load(ctx, of)
		if err != nil {
			return false, nil, err
		}
		if !slices.Contains(subject.RevertedBy, id) {
			continue
		}
		if t.End == "" || subject.Redoable(id) {
			return true, nil, nil
		}
		for _, c := range subject.Calls {
			if revertedByTool(c, id) {
				lost = append(lost, passedOver{Txn: of, Call: c.Ref.Call, Tool: c.Tool.Name, Why: "a redo does not undo the tool's Revert; call the tool again", left: true})
			}
		}
	}
	return false, lost, nil
}

// revertedByTool reports whether a call is reverted because its tool's own Revert
// ran in the revert transaction.
func revertedByTool(c *revert.Call, by string) bool {
	return slices.ContainsFunc(c.Reversals(), func(u *revert.Reversal) bool {
		return u.Txn == by && u.Reverted != nil && slices.ContainsFunc(u.Reverted.Results, func(r effect.Result) bool {
			return r.Outcome == effect.Restored && strings.HasPrefix(r.Resource, "tool://")
		})
	})
}

// sameUndo returns the revert transactions of the undo that a revert transaction
// belongs to, newest first. An undo is a process of its own, so its reverts are
// those that this process began. A process that also did other work reverted for
// a coding agent: there, the reverts of one prompt belong together.
func sameUndo(ctx context.Context, rt *agent.Runtime, id string) (all []string, err error) {
	begun, err := begunBy(ctx, rt.Journal(), id)
	if err != nil {
		return nil, err
	}
	mixed, subject := false, ""
	for _, b := range begun {
		mixed = mixed || b.Reverts == ""
		if b.id == id {
			subject = b.Reverts
		}
	}
	for _, b := range begun {
		same := b.Reverts != "" && (!mixed || b.id == id)
		if b.Reverts != "" && !same {
			if same, err = samePrompt(ctx, rt.Journal(), b.Reverts, subject); err != nil {
				return nil, err
			}
		}
		if same {
			all = append(all, b.id)
		}
	}
	return all, nil
}

// samePrompt reports whether two transactions follow the same prompt.
func samePrompt(ctx context.Context, j journal.Journal, one, other string) (bool, error) {
	p, err := revert.PromptOf(ctx, j, one)
	q, failed := revert.PromptOf(ctx, j, other)
	return p != nil && q != nil && p.Client == q.Client && p.ID == q.ID, errors.Join(err, failed)
}

type begunTxn struct {
	id string
	*record.Begun
}

// begunBy returns the transactions that the process which began a transaction
// began, newest first.
func begunBy(ctx context.Context, j journal.Journal, id string) (all []begunTxn, err error) {
	var this *record.Begun
	q := journal.Query{Txn: id, Kinds: []record.Kind{record.KindBegun}}
	for range 2 {
		for e, err := range j.Entries(ctx, q) {
			if err != nil {
				return nil, err
			}
			r, err := record.Unseal(e)
			if err != nil {
				return nil, err
			}
			switch b, ok := r.Body.(*record.Begun); {
			case !ok:
			case this == nil:
				this = b
			case b.Owner == this.Owner && q.Txn == "":
				all = append(all, begunTxn{e.Header.Txn, b})
			}
		}
		if this == nil {
			return nil, nil
		}
		q = journal.Query{Kinds: q.Kinds, About: []string{this.Owner}, Newest: true}
	}
	return all, nil
}

// redoable reports whether a redo redoes something of a revert. It does not
// redo a tool's own Revert, and an open transaction has no redo.
func redoable(ctx context.Context, rt *agent.Runtime, rep revert.Report) bool {
	if rep.State == revert.TxnOpen || !slices.ContainsFunc(rep.Items, func(i revert.ResourceResult) bool {
		return i.Outcome.Applies() && !strings.HasPrefix(i.Resource, "tool://")
	}) {
		return false
	}
	if rep.RevertTxn == "" { // an abort
		return true
	}
	can, _, err := redoableRevert(ctx, rt, rep.RevertTxn)
	return err == nil && can
}

// redoID returns the argument of the redo of a revert: the transaction if it
// has no other revert, otherwise the revert.
func redoID(ctx context.Context, rt *agent.Runtime, rep revert.Report) string {
	t, err := rt.Load(ctx, rep.Txn)
	others := slices.ContainsFunc(rep.Items, func(i revert.ResourceResult) bool { return i.Txn != "" })
	if rep.RevertTxn == "" || err == nil && !others && len(t.RevertedBy) == 1 {
		return rep.Txn
	}
	return rep.RevertTxn
}

// undonePart is a transaction of an undo that a redo can redo.
type undonePart struct {
	redo    string // argument of the redo
	aborted bool   // the revert ended an abandoned transaction, and has none of its own
}

// writeRedoHint writes the command that redoes what an undo reverted. Of several
// transactions, it is the newest undo. An agent must name each, and so must a
// person whose undo ended an abandoned transaction: no revert records it.
func writeRedoHint(a *cli.App, p *state.Workspace, parts []undonePart) {
	aborted := slices.ContainsFunc(parts, func(u undonePart) bool { return u.aborted })
	if len(parts) > 1 && a.Agent == nil && !aborted {
		_, _ = fmt.Fprintln(a.Out, a.Style().Faint("redo these changes: "+p.Hint("redo")))
		return
	}
	for _, u := range slices.Backward(parts) {
		_, _ = fmt.Fprintln(a.Out, a.Style().Faint("redo these changes: "+p.Hint("redo", u.redo)))
	}
}

// cannotRedo reports whether the redo of a whole transaction brought nothing
// back, although the transaction is reverted.
func cannotRedo(rep revert.Report, id string) bool {
	return id != "" && id == rep.Txn && len(rep.Items) == 0 && (rep.State == revert.TxnReverted || rep.State == revert.TxnRevertedPartial)
}

// whyNotRedone says why a redo of a reverted transaction has nothing to redo.
func whyNotRedone(ctx context.Context, rt *agent.Runtime, id string) string {
	t, err := rt.Load(ctx, id)
	switch {
	case err == nil && slices.ContainsFunc(t.Calls, func(c *revert.Call) bool { return c.Phase == revert.PhaseErased }):
		return "the records of its calls were erased or pruned, with what a revert removed"
	case err == nil && slices.ContainsFunc(t.Calls, func(c *revert.Call) bool { return c.Phase == revert.PhaseUnknown }):
		return "the outcome of a call is unknown, and no revert changed a file of it"
	default:
		return "its calls failed and reverted themselves, or no revert changed anything"
	}
}

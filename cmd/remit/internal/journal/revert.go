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
)

// RevertCommand returns remit revert.
func RevertCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var last, asJSON, preview bool
	var how revert.Options
	cmd := &cobra.Command{
		Use: "revert TXN | CALL | --last", Short: "Revert a transaction or a call, also after its commit",
		Long: "Reverts a transaction, or a call with the later calls of its transaction that changed the same files. If a text file\n" +
			"changed since at other lines, the command keeps these lines and reverts those of the call (merged). Any other file that\n" +
			"changed since stays as it is, and the command lists it: the exit code is then 6. --last selects the newest transaction\n" +
			"that can be reverted, or whose process ended while calls are held for the commit.\n\n" +
			"--preview shows the result for each file, and changes nothing. --cascade also reverts later transactions that changed\n" +
			"the same files. --no-merge leaves each file as it is that changed since. --force overwrites what changed since and was\n" +
			"not merged. It stores each overwritten version first: remit redo restores it.\n\n" +
			"Exit codes: 0 everything was reverted; 2 usage, or an unknown transaction; 6 not everything could be reverted.",
		Args: cli.WantIDs(0, 1, "the id of one transaction or call, or --last"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if last == (len(args) == 1) {
				return cli.UsageProblem("name one transaction or call, or give --last")
			}
			if !cmd.Flags().Changed("by") {
				how.By = userName(a)
			} else if strings.TrimSpace(how.By) == "" {
				return cli.UsageProblem("--by is empty: name the person who reverts")
			}
			if how.Force && how.By == "" {
				return cli.UsageProblem("--force needs --by NAME: the system does not know the name of this account")
			}
			how.Overlaps = true // the caller is a person
			do := func(rt *agent.Runtime, ctx context.Context, id string) (revert.Report, error) {
				return rt.Revert(ctx, id, how)
			}
			way := reverting
			if preview {
				way = previewing
				do = func(rt *agent.Runtime, ctx context.Context, id string) (revert.Report, error) {
					return rt.Preview(ctx, id, how)
				}
			}
			over := func(rt *agent.Runtime, ctx context.Context, id string) bool {
				return !how.Force && forceHelps(ctx, rt, id, how)
			}
			return runRevert(cmd.Context(), a, &p, target{strings.Join(args, ""), last, false}, asJSON, way, do, over)
		},
	}
	state.AddFlags(cmd, &p)
	state.AddRootFlag(cmd, &p)
	state.AddDatabaseFlag(cmd, &p)
	cmd.Flags().BoolVar(&last, "last", false, "select the newest transaction that can be reverted")
	cmd.Flags().BoolVar(&preview, "preview", false, "show the result for each file, and change nothing")
	cmd.Flags().BoolVar(&how.Cascade, "cascade", false, "also revert later transactions that changed the same files")
	cmd.Flags().BoolVar(&how.NoMerge, "no-merge", false, "leave each file as it is that changed since, also at other lines")
	cmd.Flags().BoolVar(&how.Force, "force", false, "overwrite what changed since; remit stores each overwritten version first, so redo restores it")
	cmd.Flags().StringVar(&how.By, "by", "", "`NAME` of the person who reverts, for the record (default: your account)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// RedoCommand returns remit redo.
func RedoCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var last, asJSON bool
	cmd := &cobra.Command{
		Use: "redo TXN | REVERT | --last", Short: "Redo a reverted transaction",
		Long: "Reverts the revert of a transaction. A file that changed since stays as it is, and the command lists it: the exit code\n" +
			"is then 6. The command restores what a forced revert overwrote. The ID of a revert, which remit log and remit revert\n" +
			"--json print, identifies the transaction that it reverted. --last selects the newest revert of which a redo can\n" +
			"restore something.",
		Args: cli.WantIDs(0, 1, "the id of one transaction, or --last"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if last == (len(args) == 1) {
				return cli.UsageProblem("name one transaction, or give --last")
			}
			return runRevert(cmd.Context(), a, &p, target{strings.Join(args, ""), last, true}, asJSON, redoing, func(rt *agent.Runtime, ctx context.Context, id string) (revert.Report, error) {
				return rt.Redo(ctx, id, userName(a))
			}, nil)
		},
	}
	state.AddFlags(cmd, &p)
	state.AddRootFlag(cmd, &p)
	state.AddDatabaseFlag(cmd, &p)
	cmd.Flags().BoolVar(&last, "last", false, "select the newest revert of which a redo can restore something")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// userName returns the user for the record. It returns "" if the system does not
// know the user, who can revert anyway.
func userName(a *cli.App) string {
	who, err := a.Username()
	if err != nil {
		return ""
	}
	return who
}

// revertOutput is the JSON form of a report. It adds what remains, so that a
// program need not know the outcomes.
type revertOutput struct {
	revert.Report
	Preview     bool                    `json:"preview,omitempty"`
	Complete    bool                    `json:"complete"`
	NotReverted []revert.ResourceResult `json:"not_reverted"`
	// PassedOver lists the newer calls that --last skipped.
	PassedOver []passedOver `json:"passed_over,omitempty"`
	// Missing lists the gaps of the journal that can hide newer calls.
	Missing []gap `json:"missing,omitempty"`
}

// forceHelps reports whether --force --by reverts more than a revert without it.
func forceHelps(ctx context.Context, rt *agent.Runtime, id string, how revert.Options) bool {
	plain, err := rt.Preview(ctx, id, how)
	if err != nil {
		return false
	}
	how.Force = true
	forced, err := rt.Preview(ctx, id, how)
	return err == nil && len(forced.NotReverted()) < len(plain.NotReverted())
}

// runRevert runs a revert, a preview or a redo. Over reports whether --force would
// help.
func runRevert(ctx context.Context, a *cli.App, p *state.Workspace, which target, asJSON bool, way revertOp, do func(*agent.Runtime, context.Context, string) (revert.Report, error), over func(*agent.Runtime, context.Context, string) bool) error {
	p.MustExist = true
	return startup.WithRuntime(ctx, a, p, func(rt *agent.Runtime) error {
		rep := revert.Report{Items: []revert.ResourceResult{}}
		id, passed, err := which.find(ctx, rt)
		if err == nil && id != "" {
			err = p.CheckTxn(ctx, a, rt.Journal(), way.verb(), id)
		}
		if err == nil && id != "" {
			rep, err = do(rt, ctx, id)
		}
		if way == redoing && errors.Is(err, revert.ErrNotEnded) {
			return &cli.Problem{Code: cli.ExitUsage, What: "there is nothing to redo", Why: err.Error(), Fix: p.Hint("log", "--txn", id) + " shows how it stands"}
		}
		if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
			return folderProblem(p, a, err, way, id)
		}
		missing, err := which.gaps(ctx, rt.Journal(), id)
		if err != nil {
			return err
		}
		rep = rep.PerResource()
		complete := id == "" || rep.Complete() // there can be nothing to revert
		if !complete {
			a.ExitWith(cli.ExitPartial)
		}
		if asJSON {
			a.WriteJSON(revertOutput{rep, way == previewing, complete, rep.NotReverted(), passed, missing})
			return nil
		}
		writeReport(a.Style(), a.Out, rep, way, id)
		writeFolders(ctx, a, p, rt.Journal(), rep)
		writePassed(a.Style(), a.Out, passed, p)
		writeGapWarning(a.Style(), a.Out, missing)
		if way != redoing && rep.Txn != "" {
			writeNextCommands(a.Style(), a.Out, rep, p.Hint("revert", id), func() bool { return over(rt, ctx, id) })
		}
		if way == reverting && redoable(rep) {
			_, _ = fmt.Fprintln(a.Out, a.Style().Faint("redo these changes: "+p.Hint("redo", redoID(ctx, rt, rep))))
		}
		return nil
	})
}

// redoable reports whether a redo redoes something of a revert. It does not
// redo a tool's own Revert, and an open transaction has no redo.
func redoable(rep revert.Report) bool {
	return rep.State != revert.TxnOpen && slices.ContainsFunc(rep.Items, func(i revert.ResourceResult) bool {
		return i.Outcome.Applies() && !strings.HasPrefix(i.Resource, "tool://")
	})
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

package journal

import (
	"context"
	"errors"
	"fmt"
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
	var last, asJSON, preview, exitZero bool
	var how revert.Options
	var count int
	var files []string
	var ask asking
	cmd := &cobra.Command{
		Use: "revert [PROMPT | TXN | CALL]", Aliases: []string{"undo"}, Short: "Revert a prompt, a transaction or a call, also after its commit",
		Long: "Reverts the calls that followed a prompt of a coding agent, a transaction, or a call with the later calls of its\n" +
			"transaction that changed the same files. remit undo is the same command. A prompt is named by the client's ID or its\n" +
			"unique beginning. Without an argument, the command reverts the newest prompt or other transaction that can be reverted,\n" +
			"or whose process ended while calls are held for the commit; -n N reverts the newest N. A text file that\n" +
			"changed since at other lines keeps them (merged). Any other file that changed since stays as it is, and the command\n" +
			"lists it: the exit code is then 6.\n\n" +
			"--file limits the revert to changes of this path and what is below it, with what they need: the folder that a call\n" +
			"deleted around them, the other name of a moved file. The rest stays. Without an argument, it is the newest prompt or\n" +
			"transaction that changed the file.\n\n" +
			"--preview shows the result for each file, and changes nothing. --cascade also reverts later transactions that changed\n" +
			"the same files. --no-merge leaves each file as it is that changed since. --force overwrites what changed since and was\n" +
			"not merged. It stores each overwritten version first: remit redo restores it.\n\n" +
			"If the files belong to another node of a shared journal, the command asks that node and waits for its report. Without one,\n" +
			"the exit code is 4, and the same command shows the report later.\n\n" +
			"Exit codes: 0 everything was reverted; 2 usage, or an unknown transaction; 4 it waits for another node; 6 not everything\n" +
			"could be reverted.\n" +
			"With --exit-zero, 6 is 0: for a caller that shows the report and takes another code for a broken command.",
		Args: cli.WantIDs(0, 1, "the id of at most one prompt, transaction or call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case last && len(args) == 1:
				return cli.UsageProblem("name one transaction or call, or give --last")
			case count < 1:
				return cli.UsageProblem(fmt.Sprintf("--newest %d: must be at least 1", count))
			case count > 1 && (len(args) == 1 || len(files) > 0):
				return cli.UsageProblem("--newest selects the newest prompts: it goes with neither an id nor --file")
			case count > 1 && preview:
				return cli.UsageProblem("--preview shows one revert: give it the id of each prompt")
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
			resources, err := fileResources(&p, files)
			if err != nil {
				return err
			}
			if a.Agent != nil && (how.Force || how.Cascade) {
				return a.Agent.AgentProblem("--force and --cascade can change what others did")
			}
			if err := ask.check(a, cmd, strings.Join(args, "")); err != nil {
				return err
			}
			p.MustExist = true
			if ask.withdraw {
				return withdrawAsked(cmd.Context(), a, &p, args[0], false, asJSON)
			}
			which := undoTarget{target{strings.Join(args, ""), len(args) == 0}, count, resources, a.Agent}
			return startup.WithRuntime(cmd.Context(), a, &p, func(rt *agent.Runtime) error {
				atWork, err := startup.EndPrompts(cmd.Context(), a, &p, rt.Journal())
				if err != nil {
					return err
				}
				var undone []undonePart
				err = which.parts(cmd.Context(), rt, func(one part) error {
					r := revertRun{which: which.target, asJSON: asJSON, exitZero: exitZero, undone: &undone, atWork: atWork, asking: &ask}
					return r.runPart(cmd.Context(), a, &p, rt, one, how, preview)
				})
				writeRedoHint(a, &p, undone)
				return err
			})
		},
	}
	state.AddFlags(cmd, &p)
	state.AddRootFlag(cmd, &p)
	state.AddDatabaseFlag(cmd, &p)
	cmd.Flags().BoolVar(&last, "last", false, "select the newest transaction that can be reverted (the default)")
	cmd.Flags().IntVarP(&count, "newest", "n", 1, "revert the newest `N` prompts, newest first")
	cmd.Flags().StringArrayVar(&files, "file", nil, "revert only the changes of this `PATH`, relative to the workspace; can be repeated")
	cmd.Flags().BoolVar(&preview, "preview", false, "show the result for each file, and change nothing")
	cmd.Flags().BoolVar(&how.Cascade, "cascade", false, "also revert later transactions that changed the same files")
	cmd.Flags().BoolVar(&how.NoMerge, "no-merge", false, "leave each file as it is that changed since, also at other lines")
	cmd.Flags().BoolVar(&how.Force, "force", false, "overwrite what changed since; remit stores each overwritten version first, so redo restores it")
	cmd.Flags().StringVar(&how.By, "by", "", "`NAME` of the person who reverts, for the record (default: your account)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object for each transaction")
	addAskFlags(cmd, &ask)
	cmd.Flags().BoolVar(&exitZero, "exit-zero", false, "end with exit code 0 if not everything could be reverted; the report names what is left")
	return cmd
}

// runPart reverts or previews one part.
func (r revertRun) runPart(ctx context.Context, a *cli.App, p *state.Workspace, rt *agent.Runtime, one part, how revert.Options, preview bool) error {
	how.Resources = one.resources
	r.way, r.id, r.passed, r.files = reverting, one.id, one.over, one.resources
	r.do, r.how = func(id string) (revert.Report, error) { return rt.Revert(ctx, id, how) }, how
	if a.Agent != nil {
		r.asking = nil // it reverts only what it did itself, and that is here
		r.do = func(id string) (revert.Report, error) {
			return a.Agent.Revert(ctx, cli.AgentRevert{ID: id, Resources: how.Resources, NoMerge: how.NoMerge})
		}
	}
	if preview {
		r.way = previewing
		r.do = func(id string) (revert.Report, error) { return rt.Preview(ctx, id, how) }
	}
	r.over = func(id string) bool { return !how.Force && forceHelps(ctx, rt, id, how) }
	if one.id != "" && !r.asJSON {
		if err := writePrompt(ctx, a, a.Out, rt.Journal(), one.id); err != nil {
			return err
		}
		if r.atWork[one.id] && a.Agent == nil {
			_, _ = fmt.Fprintln(a.Out, a.Style().Doubt("·")+" the agent had not ended this prompt; what it still does belongs to a new transaction")
		}
	}
	return r.run(ctx, a, p, rt)
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
	// Omitted is the number of items that the report of another node leaves out.
	Omitted int `json:"omitted,omitempty"`
	// Waits is the request that another node has not carried out yet.
	Waits *revert.Request `json:"waits,omitempty"`
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

// revertRun runs one revert, preview or redo.
type revertRun struct {
	way      revertOp
	which    target
	id       string // empty: there is nothing to do
	passed   []passedOver
	files    []string
	asJSON   bool
	others   bool            // it is one of several redos
	exitZero bool            // a partial revert is no failure of the command
	undone   *[]undonePart   // each revert adds what redoes it
	atWork   map[string]bool // transactions of prompts that this undo ended
	how      revert.Options  // what a request to another node says
	asking   *asking         // nil: no other node is asked
	do       func(id string) (revert.Report, error)
	over     func(id string) bool // reports whether --force would help
	saw      func(revert.Report)  // gets the report, if it is not nil
}

func (r revertRun) run(ctx context.Context, a *cli.App, p *state.Workspace, rt *agent.Runtime) (err error) {
	rep, id := revert.Report{Items: []revert.ResourceResult{}}, r.id
	if id != "" {
		if err = p.CheckTxn(ctx, a, rt.Journal(), r.way.verb(), id); err == nil {
			rep, err = r.do(id)
		}
	}
	if at := r.elsewhere(p, rt, err); at != nil {
		return r.runElsewhere(ctx, a, p, rt, at)
	}
	if r.way == redoing && errors.Is(err, revert.ErrNotEnded) {
		return &cli.Problem{Code: cli.ExitUsage, What: "there is nothing to redo", Why: err.Error(), Fix: p.Hint("log", "--txn", id) + " shows how it stands"}
	}
	if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
		return folderProblem(p, a, err, r.way, id)
	}
	return r.write(ctx, a, p, rt, rep.PerResource(), 0)
}

// runElsewhere lets the node that has the files do the revert or the redo.
func (r revertRun) runElsewhere(ctx context.Context, a *cli.App, p *state.Workspace, rt *agent.Runtime, at *agent.NodeError) error {
	q, node, err := r.ask(ctx, a, p, rt, r.id, at)
	if err != nil {
		return askProblem(p, a, err, r.way, at)
	}
	rep, done, err := r.answered(ctx, a, p, q, node)
	if done && err == nil {
		r.over = func(string) bool { return q.ForceHelps }
		err = r.write(ctx, a, p, rt, rep, q.Omitted)
	}
	if done && a.Output.Failure == nil { // a report that nobody got is shown again
		err = errors.Join(err, asker(a, rt.Journal()).MarkRead(context.WithoutCancel(ctx), q.Number))
	}
	return err
}

// write writes a report, and sets the exit code.
func (r revertRun) write(ctx context.Context, a *cli.App, p *state.Workspace, rt *agent.Runtime, rep revert.Report, omitted int) error {
	id := r.id
	missing, err := r.which.gaps(ctx, rt.Journal(), id)
	if err != nil {
		return err
	}
	if r.saw != nil {
		r.saw(rep)
	}
	complete := id == "" || rep.Complete() // there can be nothing to revert
	lost := r.way == redoing && !r.others && cannotRedo(rep, id)
	if lost {
		complete = false
	}
	if !complete && !r.exitZero {
		a.ExitWith(cli.ExitPartial)
	}
	if r.asJSON {
		a.WriteJSON(revertOutput{Report: rep, Preview: r.way == previewing, Complete: complete, NotReverted: rep.NotReverted(), PassedOver: r.passed, Missing: missing, Omitted: omitted})
		return nil
	}
	writeReport(a.Style(), a.Out, rep, r.way, id)
	if omitted > 0 {
		_, _ = fmt.Fprintf(a.Out, "and %s that the report has no room for: %s\n", cli.Count(omitted, "more change"), p.Hint("show", rep.Txn))
	}
	if lost {
		a.Style().Details(a.Out, &cli.Problem{Why: whyNotRedone(ctx, rt, id)})
	}
	writeFolders(ctx, a, p, rt.Journal(), rep)
	writePassed(a.Style(), a.Out, r.passed, p)
	writeGapWarning(a.Style(), a.Out, missing)
	if r.way != redoing && rep.Txn != "" {
		again := []string{"revert", id}
		for _, f := range r.files {
			again = append(again, "--file", fileFlag(f))
		}
		writeNextCommands(a.Style(), a.Out, rep, p.Hint(again...), func() bool { return r.over(id) })
	}
	if r.way == reverting && redoable(ctx, rt, rep) {
		*r.undone = append(*r.undone, undonePart{redoID(ctx, rt, rep), rep.RevertTxn == ""})
	}
	return nil
}

package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// logFlags holds the flags of remit log.
type logFlags struct {
	state.Workspace
	logFilter

	json, calls bool
	all         bool   // list the journals
	only        string // the transaction or the prompt
	newest      int    // 0: all
}

// LogCommand returns remit log.
func LogCommand(a *cli.App) *cobra.Command {
	var f logFlags
	cmd := &cobra.Command{
		Use: "log [PROMPT | TXN]", Short: "List prompts, and transactions with their calls, newest first",
		Long: "Lists transactions, newest first. A prompt of a coding agent is one entry: its ID, its client, its first words, and how\n" +
			"many calls followed it and which files they changed. --calls, or the ID of a prompt, lists these calls.\n\n" +
			"--tool, --outcome, --path and --pending list only the calls that they select, with their transactions; several of them\n" +
			"must all select the call. --since lists transactions that began since then.",
		Args: cli.WantIDs(0, 1, "the id of at most one prompt or transaction"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && f.only != "" {
				return cli.UsageProblem("give the id, or --txn, and not both")
			}
			if !f.json {
				a.Page()
			}
			if f.all {
				return f.listJournals(cmd, a, args)
			}
			f.only = cmp.Or(f.only, strings.Join(args, ""))
			if f.only == "" && cmd.Flags().Changed("txn") {
				return cli.EmptyID()
			}
			if cmd.Flags().Changed("newest") && f.newest < 1 {
				return cli.UsageProblem(fmt.Sprintf("--newest %d: must be at least 1", f.newest))
			}
			if err := f.check(a.Host.Now()); err != nil {
				return err
			}
			return writeLog(cmd.Context(), a, &f)
		},
	}
	state.AddFlags(cmd, &f.Workspace)
	cmd.Flags().BoolVar(&f.json, "json", false, "write one JSON object per line, for each transaction")
	cmd.Flags().BoolVar(&f.calls, "calls", false, "list the calls of prompts too")
	cmd.Flags().IntVarP(&f.newest, "newest", "n", 0, "list only the newest `N` transactions (default: all)")
	cmd.Flags().StringVar(&f.only, "txn", "", "list only the transaction with this `ID`")
	cmd.Flags().BoolVar(&f.all, "all", false, "list the journals in the user's state folder: the workspace of each, also of those that were moved or deleted")
	f.flags(cmd)
	return cmd
}

// listJournals lists the journals. No other flag than --json goes with it.
func (f *logFlags) listJournals(cmd *cobra.Command, a *cli.App, args []string) error {
	other := len(args) > 0
	cmd.Flags().Visit(func(given *pflag.Flag) { other = other || given.Name != "all" && given.Name != "json" })
	if other {
		return cli.UsageProblem("--all lists journals: of the other flags, only --json goes with it")
	}
	return writeJournals(cmd.Context(), a, f.json)
}

// logList lists transactions.
type logList struct {
	*logFlags
	app     *cli.App
	journal journal.Journal
	tools   tool.Registry
	gaps    []gap // gaps that are not written yet, oldest first
	shown   int
	damage  []error
}

func writeLog(ctx context.Context, a *cli.App, f *logFlags) (err error) {
	j, err := f.Read(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	l := &logList{logFlags: f, app: a, journal: j}
	if l.tools, err = tool.NewRegistry(state.RecordedTools(a)...); err != nil {
		return err
	}
	if f.only != "" {
		return l.listOnly(ctx)
	}
	if l.gaps, err = gapsAfter(ctx, j, 0); err != nil {
		l.damage = append(l.damage, err)
	}
	for e, err := range l.transactions(ctx, j) {
		switch {
		case err != nil && e.Pos != 0:
			l.damage = append(l.damage, fmt.Errorf("a transaction: %w", err))
			continue
		case err == nil:
			err = l.show(ctx, e.Header.Txn, l.newerGaps(e.Pos))
		}
		if err != nil {
			return err
		}
		if f.newest > 0 && l.shown == f.newest {
			break
		}
	}
	if l.shown == 0 && len(l.damage) == 0 && !f.json {
		_, _ = fmt.Fprintln(a.Out, l.nothing())
	}
	if !f.json {
		writeGaps(a.Style(), a.Out, l.gaps)
	}
	return errors.Join(l.damage...)
}

// listOnly lists the transactions that an ID selects.
func (l *logList) listOnly(ctx context.Context) error {
	ids, err := ResolveTxns(ctx, l.journal, l.only)
	for _, id := range ids {
		behind, missing := target{id: id}.gaps(ctx, l.journal, id)
		err = errors.Join(err, l.show(ctx, id, behind), missing)
	}
	return err
}

// newerGaps takes the gaps after a position from those that are not written.
func (l *logList) newerGaps(pos int64) (newer []gap) {
	older := slices.IndexFunc(l.gaps, func(g gap) bool { return g.pos > pos })
	if older < 0 {
		return nil
	}
	newer, l.gaps = l.gaps[older:], l.gaps[:older]
	return newer
}

// show writes a transaction if the filter selects it.
func (l *logList) show(ctx context.Context, id string, behind []gap) error {
	t, rec, err := loadTxn(ctx, l.journal, id)
	if errors.Is(err, record.ErrDamaged) && l.only == "" { // list the others too
		l.damage = append(l.damage, fmt.Errorf("transaction %s: %w", id, err))
		return nil
	}
	if err != nil {
		return err
	}
	rec.All = len(rec.Calls)
	if !l.keep(t, &rec) {
		l.gaps = append(l.gaps, behind...) // an older transaction writes them
		return nil
	}
	l.shown++
	rec.Missing = behind
	if l.json {
		l.app.WriteJSON(rec)
	} else {
		writeGaps(l.app.Style(), l.app.Out, behind)
		writeTxn(l.app.Style(), l.app.Out, rec, l.tools, l.calls || l.only != "" || l.narrows())
	}
	return nil
}

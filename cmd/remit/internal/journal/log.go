package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// LogCommand returns remit log.
func LogCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var asJSON, calls bool
	var only string
	var newest int
	cmd := &cobra.Command{
		Use: "log [PROMPT | TXN]", Short: "List prompts, and transactions with their calls, newest first",
		Long: "Lists transactions, newest first. A prompt of a coding agent is one entry: its ID, its client, its first words, and how\n" +
			"many calls followed it and which files they changed. --calls, or the ID of a prompt, lists these calls.",
		Args: cli.WantIDs(0, 1, "the id of at most one prompt or transaction"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && only != "" {
				return cli.UsageProblem("give the id, or --txn, and not both")
			}
			only = cmp.Or(only, strings.Join(args, ""))
			if only == "" && cmd.Flags().Changed("txn") {
				return cli.EmptyID()
			}
			if cmd.Flags().Changed("newest") && newest < 1 {
				return cli.UsageProblem(fmt.Sprintf("--newest %d: must be at least 1", newest))
			}
			return writeLog(cmd.Context(), a, &p, only, newest, asJSON, calls)
		},
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object per line, for each transaction")
	cmd.Flags().BoolVar(&calls, "calls", false, "list the calls of prompts too")
	cmd.Flags().IntVarP(&newest, "newest", "n", 0, "list only the newest `N` transactions (default: all)")
	cmd.Flags().StringVar(&only, "txn", "", "list only the transaction with this `ID`")
	return cmd
}

func writeLog(ctx context.Context, a *cli.App, p *state.Workspace, only string, newest int, asJSON, calls bool) (err error) {
	j, err := p.Read(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	tools, err := tool.NewRegistry(state.RecordedTools(a)...)
	if err != nil {
		return err
	}
	shown := 0
	var damage []error
	gaps, err := gapsAfter(ctx, j, 0)
	if err != nil {
		damage = append(damage, err)
	}
	show := func(id string, behind []gap) error {
		_, rec, err := loadTxn(ctx, j, id)
		if errors.Is(err, record.ErrDamaged) && only == "" { // list the others too
			damage = append(damage, fmt.Errorf("transaction %s: %w", id, err))
			return nil
		}
		if err != nil {
			return err
		}
		shown++
		rec.Missing = behind
		if asJSON {
			a.WriteJSON(rec)
		} else {
			writeGaps(a.Style(), a.Out, behind)
			writeTxn(a.Style(), a.Out, rec, tools, calls || only != "")
		}
		return nil
	}
	if only != "" {
		ids, err := ResolveTxns(ctx, j, only)
		for _, id := range ids {
			behind, missing := target{id: id}.gaps(ctx, j, id)
			err = errors.Join(err, show(id, behind), missing)
		}
		return err
	}
	for e, err := range j.Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindBegun}, Newest: true}) {
		switch {
		case err != nil && e.Pos != 0:
			damage = append(damage, fmt.Errorf("a transaction: %w", err))
			continue
		case err == nil:
			older := slices.IndexFunc(gaps, func(g gap) bool { return g.pos > e.Pos })
			behind := gaps[len(gaps):]
			if older >= 0 {
				gaps, behind = gaps[:older], gaps[older:]
			}
			err = show(e.Header.Txn, behind)
		}
		if err != nil {
			return err
		}
		if shown == newest {
			break
		}
	}
	if shown == 0 && len(damage) == 0 && !asJSON {
		_, _ = fmt.Fprintln(a.Out, "nothing is recorded for this workspace yet")
	}
	if !asJSON {
		writeGaps(a.Style(), a.Out, gaps)
	}
	return errors.Join(damage...)
}

package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// ShowCommand returns remit show.
func ShowCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show CALL|TXN|PROMPT", Short: "Show everything about a call, or about each call of a transaction or prompt",
		Args: cli.WantIDs(1, 1, "the id of one call or transaction"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := state.Declare(cmd.Context(), a, &p.Declared, nil, nil); err != nil {
				return err
			}
			if !asJSON {
				a.Page()
			}
			return writeCalls(cmd.Context(), a, &p, args[0], asJSON)
		},
	}
	state.AddFlags(cmd, &p)
	state.AddDeclarationFlags(cmd, &p.Declared)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object per line, for each call")
	return cmd
}

func writeCalls(ctx context.Context, a *cli.App, p *state.Workspace, id string, asJSON bool) (err error) {
	j, err := p.Read(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	ids, err := ResolveTxns(ctx, j, id)
	var calls []shownCall
	for _, id := range slices.Backward(ids) {
		if err != nil {
			break
		}
		var some []shownCall
		some, err = shownCalls(ctx, a, j, id)
		calls = append(calls, some...)
	}
	if err != nil {
		return err
	}
	for i, c := range calls {
		if asJSON {
			a.WriteJSON(c)
			continue
		}
		if i > 0 {
			_, _ = fmt.Fprintln(a.Out)
		}
		writeCall(a.Style(), a.Out, c)
	}
	return nil
}

// WriteCall writes everything about a call, as remit show does, and what it
// changed, as remit diff does.
func WriteCall(ctx context.Context, a *cli.App, p *state.Workspace, rt *agent.Runtime, id string) error {
	calls, err := shownCalls(ctx, a, rt.Journal(), id)
	if err != nil {
		return err
	}
	changed := false
	for _, c := range calls {
		writeCall(a.Style(), a.Out, c)
		changed = changed || len(c.Changes) > 0
	}
	if !changed {
		return nil
	}
	_, _ = fmt.Fprintln(a.Out)
	return writeDiff(ctx, a, rt, p, id, nil, false)
}

// shownCalls returns the call with an ID, or the calls of the transaction with
// the ID. Those of a revert transaction are the calls that it reverted.
func shownCalls(ctx context.Context, a *cli.App, j journal.Journal, id string) ([]shownCall, error) {
	tools, err := tool.NewRegistry(state.RecordedTools(a)...)
	if err != nil {
		return nil, err
	}
	t, found, err := find(ctx, j, id)
	if err != nil {
		return nil, err
	}
	who, err := state.PrincipalOf(ctx, j, t.Session)
	if err != nil {
		return nil, err
	}
	var out []shownCall
	for _, c := range found {
		r, err := show(t, c, who, tools)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func find(ctx context.Context, j journal.Journal, id string) (*revert.Txn, []*revert.Call, error) {
	t, c, err := revert.LoadCall(ctx, j, id)
	if err == nil {
		return t, []*revert.Call{c}, nil
	}
	if !errors.Is(err, journal.ErrNotFound) {
		return nil, nil, err
	}
	if t, err = revert.Load(ctx, j, id); errors.Is(err, journal.ErrNotFound) {
		return findRevert(ctx, j, id)
	}
	if err != nil || t.Reverts+t.Redoes == "" {
		return t, callsIn(t), err
	}
	subject, err := revert.LoadAt(ctx, j, t.Reverts+t.Redoes, t.Named)
	if err != nil {
		return nil, nil, err
	}
	return subject, workedOn(subject, id), nil
}

func callsIn(t *revert.Txn) []*revert.Call {
	if t == nil {
		return nil
	}
	return t.Calls
}

// findRevert returns the call that the revert with an ID reverted.
func findRevert(ctx context.Context, j journal.Journal, id string) (*revert.Txn, []*revert.Call, error) {
	q := journal.Query{Call: id, Kinds: []record.Kind{record.KindReverting}, Limit: 1}
	for e, err := range j.Entries(ctx, q) {
		if err != nil {
			return nil, nil, err
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return nil, nil, err
		}
		if b, ok := rec.Body.(*record.Reverting); ok {
			return revertedCall(ctx, j, e.Header.Txn, b.Of)
		}
	}
	return nil, nil, fmt.Errorf("%q: %w", id, journal.ErrNotFound)
}

// revertedCall returns a call in the folders where a transaction reverted it.
func revertedCall(ctx context.Context, j journal.Journal, by string, of record.CallRef) (*revert.Txn, []*revert.Call, error) {
	link, err := revert.Load(ctx, j, by)
	if err != nil {
		return nil, nil, err
	}
	t, err := revert.LoadAt(ctx, j, of.Txn, link.Named)
	if err != nil {
		return nil, nil, err
	}
	c, ok := t.Call(of.Call)
	if !ok {
		return nil, nil, fmt.Errorf("call %s: %w", of.Call, journal.ErrNotFound)
	}
	return t, []*revert.Call{c}, nil
}

// workedOn returns the calls that a revert or a redo tried to change.
func workedOn(t *revert.Txn, by string) []*revert.Call {
	return slices.DeleteFunc(slices.Clone(t.Calls), func(c *revert.Call) bool { return !c.WorkedOn(by) })
}

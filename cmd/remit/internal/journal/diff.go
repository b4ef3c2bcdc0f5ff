package journal

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/render"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/diff"
	"github.com/remit-dev/remit/revert/effect"
)

// DiffCommand returns remit diff.
func DiffCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var last, asJSON bool
	cmd := &cobra.Command{
		Use: "diff [PROMPT | TXN | CALL]", Short: "Show what a prompt, a transaction or a call changed, line by line",
		Long: "Shows each file before and after, as a patch for git apply. Names are relative to the workspace; those of another root\n" +
			"begin with its name. Binary content is written for git apply, and as one line on a terminal. Folders, attributes and\n" +
			"content over 4 MiB are named, and are not part of the patch. The patch shows what the call did, even if the files\n" +
			"changed since. For a revert, it shows what the revert did. remit diff changes nothing.\n\n" +
			"The content after a call comes from the file while it is still there, or from what replaced it under remit. If it is\n" +
			"gone, the command says so and names the version. Effects outside files have no difference; the command lists such\n" +
			"calls. Without an argument, it is what remit revert reverts: the newest transaction with something left of it.\n\n" +
			"Exit codes: 2 usage, or an unknown transaction.",
		Args: cli.WantIDs(0, 1, "the id of at most one prompt, transaction or call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if last && len(args) == 1 {
				return cli.UsageProblem("name one transaction or call, or give --last")
			}
			last = len(args) == 0
			if !asJSON {
				a.Page()
			}
			return startup.WithRuntime(cmd.Context(), a, &p, func(rt *agent.Runtime) error {
				id, over, err := target{strings.Join(args, ""), last}.find(cmd.Context(), rt)
				ids := []string{id}
				if err == nil && !last {
					ids, err = ResolveTxns(cmd.Context(), rt.Journal(), id)
				}
				for _, id := range slices.Backward(ids) {
					if err == nil {
						err = writeDiff(cmd.Context(), a, rt, &p, id, over, asJSON)
					}
				}
				return err
			})
		},
	}
	state.AddFlags(cmd, &p)
	state.AddRootFlag(cmd, &p)
	cmd.Flags().BoolVar(&last, "last", false, "select the newest transaction with something to revert (the default)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

func writeDiff(ctx context.Context, a *cli.App, rt *agent.Runtime, p *state.Workspace, id string, over []passedOver, asJSON bool) (err error) {
	d := diff.Diff{}
	if id != "" {
		if err = p.CheckTxn(ctx, a, rt.Journal(), "diff", id); err == nil {
			d, err = rt.Diff(ctx, id)
		}
	}
	if err != nil {
		return err
	}
	if asJSON {
		return diffJSON(ctx, a, d)
	}
	if err := diffPlain(ctx, a, d); err != nil {
		return err
	}
	writePassed(a.Style(), a.Out, over, p)
	return writeInterrupted(ctx, a, rt, p, d.Txn)
}

// fileName returns a resource as a patch names it.
func fileName(resource string) string {
	r, err := perm.ParseResource(resource)
	if err != nil {
		return resource
	}
	switch f := r.Facts(); {
	case f.Kind == "file" && f.Root == "workspace":
		return f.Path
	case f.Kind == "file":
		return f.Root + "/" + f.Path
	default:
		return resource
	}
}

type diffRecord struct {
	Txn       string            `json:"txn"`
	Call      string            `json:"call,omitempty"`
	State     revert.TxnState   `json:"state"`
	Changes   []deltaRecord     `json:"changes"`
	Untracked []untrackedRecord `json:"untracked"`
	Held      []untrackedRecord `json:"held,omitempty"` // held until the commit
	Erased    []string          `json:"erased"`         // calls whose records were erased
}

type deltaRecord struct {
	Resource string         `json:"resource"`
	Kind     string         `json:"kind"`
	Calls    []string       `json:"calls"`
	Before   *versionRecord `json:"before"`
	After    *versionRecord `json:"after"`
	Binary   bool           `json:"binary"`
	Added    int            `json:"added"`
	Removed  int            `json:"removed"`
	Patch    string         `json:"patch"`
	Lost     string         `json:"lost,omitempty"`
}

type versionRecord struct {
	Version effect.Token `json:"version"`
	Type    string       `json:"type"`
	Mode    string       `json:"mode,omitempty"`
	Target  string       `json:"target,omitempty"`
	Content string       `json:"content,omitempty"` // digest
}

type untrackedRecord struct {
	Call        string       `json:"call"`
	Tool        string       `json:"tool"`
	EffectClass effect.Class `json:"effect_class"`
}

func versionOf(s diff.ResourceVersion) *versionRecord {
	if !s.Exists() {
		return nil
	}
	return &versionRecord{Version: s.Token, Type: s.Type, Mode: s.Mode, Target: strings.ToValidUTF8(s.Target, "\uFFFD"), Content: s.Digest}
}

func kindOf(d diff.Delta) string {
	switch {
	case !d.Before.Exists():
		return "create"
	case !d.After.Exists():
		return "delete"
	default:
		return "write"
	}
}

func diffJSON(ctx context.Context, a *cli.App, d diff.Diff) error {
	rec := diffRecord{Txn: d.Txn, Call: d.Call, State: d.State, Changes: []deltaRecord{}, Untracked: []untrackedRecord{}, Erased: cli.Listed(d.Erased)}
	for _, delta := range d.Deltas {
		text, err := delta.Text(ctx, fileName(delta.Resource))
		if err != nil {
			return err
		}
		rec.Changes = append(rec.Changes, deltaRecord{
			Resource: delta.Resource, Kind: kindOf(delta), Calls: delta.Calls, Before: versionOf(delta.Before), After: versionOf(delta.After),
			Binary: text.Binary, Added: text.Added, Removed: text.Removed, Patch: text.Patch, Lost: text.Lost,
		})
	}
	for _, u := range d.Untracked {
		rec.Untracked = append(rec.Untracked, untrackedRecord{u.Call, u.Tool, u.Class})
	}
	for _, u := range d.Held {
		rec.Held = append(rec.Held, untrackedRecord{u.Call, u.Tool, u.Class})
	}
	a.WriteJSON(rec)
	return nil
}

// diffPlain writes a patch. Its notes follow at the end, in lines that no patch
// contains.
func diffPlain(ctx context.Context, a *cli.App, d diff.Diff) error {
	p, added, removed := a.Style(), 0, 0
	for _, delta := range d.Deltas {
		text, err := delta.Text(ctx, fileName(delta.Resource))
		if err != nil {
			return err
		}
		added, removed = added+text.Added, removed+text.Removed
		if a.OutTerminal {
			p.Patch(a.Out, text.Short)
		} else {
			_, _ = io.WriteString(a.Out, text.Patch)
		}
	}
	for _, u := range d.Untracked {
		_, _ = fmt.Fprintf(a.Out, "call %s of %s: what a %s call does outside files is not shown\n", u.Call, cli.Printable(u.Tool), u.Class)
	}
	for _, u := range d.Held {
		_, _ = fmt.Fprintf(a.Out, "call %s of %s: held until the commit, nothing of it has happened\n", u.Call, cli.Printable(u.Tool))
	}
	for _, c := range d.Erased {
		_, _ = fmt.Fprintf(a.Out, "call %s: its records were erased\n", c)
	}
	if d.Txn == "" {
		_, _ = fmt.Fprintln(a.Out, "there is nothing to revert")
		return nil
	}
	of := "transaction " + d.Txn
	if d.Call != "" {
		of = "call " + d.Call + " of " + of
	}
	_, _ = fmt.Fprintf(a.Out, "%s, %s: %s, %s added, %s removed\n", of, render.State(p, d.State, false), cli.Count(len(d.Deltas), "change"), cli.Count(added, "line"), cli.Count(removed, "line"))
	return nil
}

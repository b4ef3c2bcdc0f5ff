package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert/postgres"
)

// NodesCommand returns remit nodes.
func NodesCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var asJSON bool
	cmd := &cobra.Command{
		Use: "nodes", Short: "List the nodes of a shared journal: which of them live, since when, with which roots",
		Long: "Lists the state folders that use a journal in PostgreSQL. Each of them is a node. A node is alive while a process of it\n" +
			"holds its lock in the database. Files belong to the node that recorded them: only it can revert their changes.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return listNodes(cmd.Context(), a, &p, asJSON) },
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object per line, for each node")
	return cmd
}

func listNodes(ctx context.Context, a *cli.App, p *state.Workspace, asJSON bool) (err error) {
	if err := p.Find(a); err != nil {
		return err
	}
	if !p.IsShared() {
		return &cli.Problem{
			Code: cli.ExitUsage, What: "there are no nodes", Why: "the journal is in a state folder of this machine",
			Fix: "name a journal in PostgreSQL with --journal or " + state.JournalVariable,
		}
	}
	j, err := p.Read(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	all, ok := state.PostgresOf(j)
	if !ok {
		return errors.New("the journal has no nodes")
	}
	here := ""
	if n, ok := j.(state.Node); ok {
		here = n.NodeID()
	}
	nodes, err := all.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		is := nodeOutput{NodeInfo: n, Here: n.ID == here}
		if is.Here { // this command is no process that serves the node
			is.Processes--
		}
		if is.Processes == 0 {
			is.Since = time.Time{}
		}
		if asJSON {
			a.WriteJSON(is)
		} else {
			writeNode(a, is)
		}
	}
	return nil
}

type nodeOutput struct {
	postgres.NodeInfo
	Here bool `json:"here,omitempty"` // the node of this command
}

func writeNode(a *cli.App, n nodeOutput) {
	life := a.Style().Faint("no process lives")
	if n.Processes > 0 {
		life = fmt.Sprintf("%s since %s", cli.Count(n.Processes, "process"), n.Since.Format(time.RFC3339))
	}
	here := ""
	if n.Here {
		here = ", this one"
	}
	_, _ = fmt.Fprintf(a.Out, "%s on %s%s: %s\n", cli.Printable(n.ID), cli.Printable(n.Host), here, life)
	_, _ = fmt.Fprintf(a.Out, "    state %s\n", cli.Printable(n.Dir))
	for _, r := range n.Roots {
		_, _ = fmt.Fprintf(a.Out, "    root %s: %s\n", cli.Printable(r.Name), cli.Printable(r.Path))
	}
}

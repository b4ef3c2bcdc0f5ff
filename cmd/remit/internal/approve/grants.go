package approve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// GrantsCommand returns remit grants.
func GrantsCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var asJSON bool
	cmd := &cobra.Command{
		Use: "grants", Short: "List remembered approvals, delegated grants and grants with an end",
		Long: "Lists remembered approvals, grants that sessions delegated to other sessions, and grants that end by themselves. The\n" +
			"list also has the grants that have ended.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return startup.WithRuntime(cmd.Context(), a, &p, func(rt *agent.Runtime) error {
				all, err := rt.Grants(cmd.Context())
				if err != nil {
					return err
				}
				return writeGrants(a, all, asJSON)
			})
		},
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object per line")
	cmd.AddCommand(revokeCommand(a))
	return cmd
}

func revokeCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var why string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Revoke a grant immediately",
		Long: "Revokes a remembered approval or the grant of a session, with all grants that were delegated from it. The record has\n" +
			"your name, as the operating system reports it. The revocation also applies to live runs: at the next access if the\n" +
			"grant is delegated or limited, and otherwise at the next transaction of the session.",
		Args: cli.WantIDs(1, 1, "the id of one grant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			who, err := a.Person()
			if err != nil {
				return err
			}
			return startup.WithRuntime(cmd.Context(), a, &p, func(rt *agent.Runtime) error {
				id, err := fullGrant(cmd.Context(), rt, args[0])
				if err != nil {
					return err
				}
				err = rt.Revoke(cmd.Context(), id, who, why)
				if errors.Is(err, journal.ErrNotFound) || errors.Is(err, tool.ErrInvalid) {
					return &cli.Problem{Code: cli.ExitUsage, What: "there is no grant " + id, Fix: p.Hint("grants") + " lists them"}
				}
				if err == nil && asJSON {
					a.WriteJSON(revokeOutput{id, who, why})
				}
				return err
			})
		},
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().StringVar(&why, "why", "", "`TEXT` with the reason, for the record")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// fullGrant returns the ID of the grant that begins with a text.
func fullGrant(ctx context.Context, rt *agent.Runtime, id string) (string, error) {
	all, err := rt.Grants(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	for _, g := range all {
		if strings.HasPrefix(g.ID, id) {
			found = append(found, g.ID)
		}
	}
	slices.Sort(found)
	return state.OnlyID(id, found)
}

// revokeOutput is the JSON form of a revocation.
type revokeOutput struct {
	Grant string `json:"revoked"`
	By    string `json:"by"`
	Why   string `json:"why"`
}

func writeGrants(a *cli.App, all []agent.GrantInfo, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(a.Out)
		enc.SetEscapeHTML(false)
		for _, g := range all {
			if err := enc.Encode(g); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(a.Out, "nothing is granted beyond one call")
		return err
	}
	for _, g := range all {
		if _, err := fmt.Fprint(a.Out, grantText(g)); err != nil {
			return err
		}
	}
	return nil
}

func grantText(g agent.GrantInfo) string {
	var b strings.Builder
	state := strings.ReplaceAll(g.State, "_", " ")
	if g.Revoked != "" {
		state += " " + cli.Printable(g.Revoked)
	}
	what := "handed on to " + cli.Printable(g.Principal)
	if g.Kind == "remembered" {
		where := "always"
		if g.Session != "" {
			where = "in session " + g.Session
		}
		what = fmt.Sprintf("%s may use %s, %s, approved by %s", cli.Printable(g.Principal), g.Tool, where, cli.Printable(withWhy(g.By, g.Why)))
	}
	_, _ = fmt.Fprintf(&b, "%s  %s  %s\n", g.ID, state, what)
	for _, key := range g.Keys {
		_, _ = fmt.Fprintf(&b, "  only %s\n", cli.Printable(key))
	}
	for _, access := range g.Accesses {
		_, _ = fmt.Fprintf(&b, "  %s\n", cli.Printable(access.String()))
	}
	if g.SameInput {
		b.WriteString("  only with the arguments that were approved\n")
	}
	if g.Uses > 0 {
		_, _ = fmt.Fprintf(&b, "  used %d of %d\n", g.Used, g.Uses)
	}
	if !g.Expires.IsZero() {
		_, _ = fmt.Fprintf(&b, "  until %s\n", g.Expires.Format(time.RFC3339))
	}
	return b.String()
}

func withWhy(who, why string) string {
	if why == "" {
		return who
	}
	return who + ": " + why
}

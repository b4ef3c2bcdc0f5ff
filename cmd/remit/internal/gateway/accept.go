package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/cmd/remit/internal/upstream"
	"github.com/remit-dev/remit/mcp/gateway"
)

// AcceptCommand returns remit gateway accept.
func AcceptCommand(a *cli.App) *cobra.Command {
	p := state.Workspace{Sandbox: "strict"}
	p.Upstreams.Strict = true
	asJSON := false
	cmd := &cobra.Command{
		Use: "accept [SERVER[/TOOL]] --config FILE", Short: "Show the definitions in quarantine, and accept them",
		Long: "Shows the definitions in quarantine: each new or changed tool, with the difference. With the name of a server, or of\n" +
			"one of its tools, the command accepts these definitions, and a running gateway uses them. As for an approval, a person\n" +
			"must accept at a terminal that the agent did not start.",
		Args: cli.WantArgs(0, 1, "one server or tool"),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := openServers(cmd.Context(), a, &p)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return writeQuarantine(a, g.Quarantined(), false, asJSON)
			}
			asked, err := approval.PendingCalls(cmd.Context(), a, &p)
			if err != nil {
				return err
			}
			rules, err := approval.ReadSettings(p.StateDir)
			if err != nil {
				return err
			}
			if err := approval.CheckApprover(a, &p, rules, asked...); err != nil { // it lets new code run, as an approval does
				return err
			}
			server, name, _ := strings.Cut(args[0], "/")
			accepted, err := g.Accept(cmd.Context(), server, name)
			if err != nil {
				return &cli.Problem{Code: cli.ExitUsage, What: "nothing was accepted", Why: err.Error()}
			}
			return writeQuarantine(a, accepted, true, asJSON)
		},
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	upstream.AddFlag(cmd, &p.Upstreams)
	cmd.Flags().StringArrayVar(&p.Moved, "root", nil, "another root for servers, as `NAME=DIR`")
	return cmd
}

// quarantineOutput is a definition in quarantine, or an accepted one, as JSON.
type quarantineOutput struct {
	Server string          `json:"server"`
	Tool   string          `json:"tool,omitempty"` // empty for the server itself
	Why    string          `json:"why"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

func writeQuarantine(a *cli.App, all []gateway.QuarantinedItem, accepted, asJSON bool) error {
	if asJSON {
		list := make([]quarantineOutput, 0, len(all))
		for _, q := range all {
			list = append(list, quarantineOutput(q))
		}
		return json.NewEncoder(a.Out).Encode(map[string][]quarantineOutput{map[bool]string{false: "quarantined", true: "accepted"}[accepted]: list})
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(a.Out, "nothing is in quarantine")
		return err
	}
	did := ""
	if accepted {
		did = "accepted "
	}
	for _, q := range all {
		name := q.Server
		if q.Tool != "" {
			name += "/" + q.Tool
		}
		_, _ = fmt.Fprintf(a.Out, "%s%s: %s\n", did, cli.Printable(name), cli.Printable(q.Why))
		before, after := indentedLines(q.Before), indentedLines(q.After)
		for _, line := range before {
			if !slices.Contains(after, line) {
				_, _ = fmt.Fprintf(a.Out, "  - %s\n", cli.Printable(line))
			}
		}
		for _, line := range after {
			if !slices.Contains(before, line) {
				_, _ = fmt.Fprintf(a.Out, "  + %s\n", cli.Printable(line))
			}
		}
	}
	return nil
}

func indentedLines(raw json.RawMessage) []string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Indent(&b, raw, "", "  ") != nil {
		return nil
	}
	return strings.Split(b.String(), "\n")
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/cmd/remit/internal/upstream"
	"github.com/remit-dev/remit/internal/connect"
	"github.com/remit-dev/remit/mcp/gateway"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
)

func initCommand(a *cli.App) *cobra.Command {
	p := state.Workspace{Sandbox: "strict"}
	write, asJSON := false, false
	var keep []string
	cmd := &cobra.Command{
		Use: "init --config FILE", Short: "Draft what is known of the tools of MCP servers",
		Long: "Asks the servers of a configuration for their tools, and drafts an entry for each that has none: what says that it only reads\n" +
			"may run, and everything else is asked about. A draft is the server's own word; look at it and take \"draft\" away. With\n" +
			"--write remit puts the entries into the file and keeps its comments. The old file stays as FILE.backup.\n\n" +
			"A server by command can act anywhere. Its roots are kept before each call, also of what says that it only reads, so a revert\n" +
			"restores their files; what a call does elsewhere is unknown. --keep names some roots, and --keep none keeps nothing.\n\n" +
			"--sandbox starts each server by command in the sandbox, where it sees its roots and its own code, and no network, and drafts\n" +
			"that for those that start: remit then knows all that their calls change. It says why the others did not start.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := knownRoots(&p, keep); err != nil {
				return err
			}
			g, err := openServers(cmd.Context(), a, &p)
			if err != nil {
				return err
			}
			return writeDrafts(a, append(p.Upstreams.Drafts, g.Drafts(keptRoots(&p, keep)...)...), p.Upstreams.Config, write, asJSON)
		},
	}
	state.AddFlags(cmd, &p)
	upstream.AddFlag(cmd, &p.Upstreams)
	cmd.Flags().StringArrayVar(&p.Moved, "root", nil, "another folder that servers work in, as `NAME=DIR`")
	cmd.Flags().StringArrayVar(&keep, "keep", nil, "draft that the root `NAME` is kept before each call of a server by command; none keeps nothing (default: every root, on Linux)")
	cmd.Flags().BoolVar(&p.Upstreams.Confined, "sandbox", false, "draft a sandbox for each server by command that starts in one")
	cmd.Flags().BoolVar(&write, "write", false, "write the entries into the file")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// rootNames returns the names of the roots that servers work in.
func rootNames(p *state.Workspace) []string {
	known := []string{state.WorkspaceRoot}
	for _, root := range p.Moved {
		if name, _, _ := strings.Cut(root, "="); !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	return known
}

// keepNone is the value of --keep with which drafts take no snapshots.
const keepNone = "none"

// keptRoots returns the roots of which drafts take snapshots: the named ones,
// or all.
func keptRoots(p *state.Workspace, names []string) []string {
	switch {
	case slices.Contains(names, keepNone):
		return nil
	case len(names) > 0:
		return names
	case runtime.GOOS != "linux": // snapshots of folders need Linux
		return nil
	}
	return rootNames(p)
}

// knownRoots rejects the name of an unknown root.
func knownRoots(p *state.Workspace, names []string) error {
	known := rootNames(p)
	for _, name := range names {
		if name == keepNone && len(names) == 1 {
			continue
		}
		if !slices.Contains(known, name) {
			return cli.UsageProblem(fmt.Sprintf("there is no root %q to keep; there are: %s. --root NAME=DIR names another folder", name, strings.Join(known, ", ")))
		}
	}
	return nil
}

// draftOutput is a drafted entry as JSON.
type draftOutput struct {
	Server  string          `json:"server"`
	Tool    string          `json:"tool,omitempty"`
	Entry   json.RawMessage `json:"entry,omitempty"`
	Sandbox json.RawMessage `json:"sandbox,omitempty"` // of the server; replaces tool and entry
}

// writeDrafts prints drafted entries, or writes them to the configuration file.
func writeDrafts(a *cli.App, drafts []gateway.EntryDraft, config string, write, asJSON bool) error {
	backup := ""
	if write {
		var err error
		if backup, err = connect.RewriteFile(config, func(text []byte) ([]byte, error) { return gateway.AddEntries(text, drafts) }); err != nil {
			return &cli.Problem{Code: cli.ExitUsage, What: "the entries could not be written", Why: cli.PlainError(err)}
		}
	}
	if asJSON {
		list := make([]draftOutput, 0, len(drafts))
		for _, d := range drafts {
			if d.Tool == "" {
				list = append(list, draftOutput{Server: d.Server, Sandbox: d.Entry})
				continue
			}
			list = append(list, draftOutput{Server: d.Server, Tool: d.Tool, Entry: d.Entry})
		}
		return json.NewEncoder(a.Out).Encode(struct {
			Drafted []draftOutput `json:"drafted"`
			Written bool          `json:"written"`
		}{list, write})
	}
	if write {
		_, err := fmt.Fprintf(a.Out, "drafted %s in %s\n", draftedWords(drafts), cli.Quote(config))
		if err == nil && backup != "" {
			_, err = fmt.Fprintf(a.Out, "what was there is in %s\n", cli.Quote(backup))
		}
		return err
	}
	for _, d := range drafts {
		if d.Tool == "" {
			_, _ = fmt.Fprintf(a.Out, "%s sandbox %s\n", cli.Printable(d.Server), d.Entry)
			continue
		}
		_, _ = fmt.Fprintf(a.Out, "%s/%s %s\n", cli.Printable(d.Server), cli.Printable(d.Tool), d.Entry)
	}
	return nil
}

func gatewayCommand(a *cli.App) *cobra.Command {
	cmd := serveCommand(a)
	cmd.Use, cmd.Short = "gateway --config FILE [flags]", "Serve the tools of other MCP servers, with policy and undo"
	cmd.Long = "Serves the tools of other MCP servers, and those of transactions. The file lists the servers as clients have them, and says\n" +
		"what is known of their tools; remit init drafts that. Each tool is pinned when it is first seen; one that is new or has\n" +
		"changed is in quarantine until remit gateway accept has shown and accepted it. With --own-tools remit's own tools for\n" +
		"files, programs and the web are served too, as remit serve does."
	own := false
	cmd.Flags().BoolVar(&own, "own-tools", false, "serve remit's own tools too; --database and --definitions serve the tools that they name without it")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("config") {
			return cli.UsageProblem("--config names the file that lists the servers")
		}
		if !own {
			databases := cmd.Flags().Changed("database")
			a.LeftOut = func(t tool.Tool) bool { return ownTool(t, databases) }
		}
		return nil
	}
	return cmd
}

// ownTool reports whether a tool is built in and no flag requests it.
func ownTool(t tool.Tool, databases bool) bool {
	from := t.Spec().Provenance
	asked := from.Implementation != "" || databases && from.Name == "tool/builtin/database"
	return from.Kind == provenance.Builtin && !asked
}

func acceptCommand(a *cli.App) *cobra.Command {
	p := state.Workspace{Sandbox: "strict"}
	p.Upstreams.Strict = true
	asJSON := false
	cmd := &cobra.Command{
		Use: "accept [SERVER[/TOOL]] --config FILE", Short: "Show what is in quarantine, and accept it",
		Long: "Shows what nobody has accepted as it is now: each tool that is new or has changed, with the difference. With the name of a\n" +
			"server, or of one tool of it, that is accepted; a gateway that runs takes it over. A person accepts, at a terminal that the\n" +
			"agent did not start, as for an approval.",
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
			if err := approval.CheckApprover(a, &p, asked...); err != nil { // it lets new code run, as an approval does
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
	cmd.Flags().StringArrayVar(&p.Moved, "root", nil, "another folder that servers work in, as `NAME=DIR`")
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
		before, after := pretty(q.Before), pretty(q.After)
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

func pretty(raw json.RawMessage) []string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Indent(&b, raw, "", "  ") != nil {
		return nil
	}
	return strings.Split(b.String(), "\n")
}

// openServers opens a gateway only to inspect its servers.
func openServers(ctx context.Context, a *cli.App, p *state.Workspace) (*upstream.Gateway, error) {
	if p.Upstreams.Config == "" {
		return nil, cli.UsageProblem("--config names the file that lists the servers")
	}
	if err := p.Find(a); err != nil {
		return nil, err
	}
	j, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	a.OnClose(j.Close)
	programs, err := startup.Programs(p, j)
	if err != nil {
		return nil, err
	}
	roots := append([]string{state.WorkspaceRoot + "=" + p.Folder()}, p.Moved...)
	if p.Upstreams.Confined {
		if err := draftSandboxes(a, p, roots); err != nil {
			return nil, err
		}
	}
	begin := func() (*upstream.Gateway, error) {
		g, err := upstream.Open(ctx, a, p, roots, programs)
		if err == nil {
			g.Start()
			g.Await(ctx)
		}
		return g, err
	}
	g, err := begin()
	if err != nil {
		return nil, err
	}
	if unconfine(p, g) {
		closed := g.Close()
		g, err = begin()
		if err = errors.Join(closed, err); err != nil {
			return nil, err
		}
	}
	writeServers(a, p, g)
	return g, nil
}

// unavailableProblem returns the problem of a server that is not available, and its
// fix.
func unavailableProblem(p *state.Workspace, s gateway.ServerStatus) *cli.Problem {
	e := &cli.Problem{
		What: "server " + s.Server + " cannot be had", Why: s.Why,
		Fix: "see that what its entry in " + p.Upstreams.Config + " names can be started, or reached, from here, and do this again for its tools",
	}
	if s.Login { // the reason names the command to run
		e.Fix = "log in there, and do this again for its tools"
	}
	return e
}

package gateway

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/cmd/remit/internal/upstream"
	"github.com/remit-dev/remit/internal/connect"
	"github.com/remit-dev/remit/mcp/gateway"
)

// InitCommand returns remit init.
func InitCommand(a *cli.App) *cobra.Command {
	p := state.Workspace{Sandbox: "strict"}
	write, asJSON := false, false
	var keep []string
	cmd := &cobra.Command{
		Use: "init --config FILE", Short: "Draft what is known of the tools of MCP servers",
		Long: "Asks the servers of a configuration for their tools, and drafts an entry for each that has none: what says that it only reads\n" +
			"may run, and everything else is asked about. A draft is the server's own word; look at it and take \"draft\" away. With\n" +
			"--write remit puts the entries into the file and keeps its comments. The old file stays as FILE.backup.\n\n" +
			"A server by command can act anywhere. Its roots are kept before each call, also of what says that it only reads, so a revert\n" +
			"restores their files; what a call does elsewhere is unknown. --snapshot names some roots, and --snapshot none takes none.\n\n" +
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
	cmd.Flags().StringArrayVar(&keep, "snapshot", nil, "draft a snapshot of the root `NAME` before each call of a server by command; none takes no snapshots (default: every root, on Linux)")
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

// keepNone is the value of --snapshot with which drafts take no snapshots.
const keepNone = "none"

// keptRoots returns the roots that drafts take snapshots of: the named ones, or
// all.
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

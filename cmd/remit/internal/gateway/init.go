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
	"github.com/remit-dev/remit/mcp/gateway/config"
)

// InitCommand returns remit init.
func InitCommand(a *cli.App) *cobra.Command {
	p := state.Workspace{Sandbox: "strict"}
	write, asJSON := false, false
	var keep []string
	cmd := &cobra.Command{
		Use: "init --config FILE", Short: "Draft entries for the tools of MCP servers",
		Long: "Reads the tools of the servers of a configuration, and drafts an entry for each tool without one. A tool that says\n" +
			"that it only reads can run; calls of all other tools need approval. A draft repeats what the server says of itself:\n" +
			"review it, then remove \"draft\". --write writes the entries into the file and keeps its comments. The old file stays as\n" +
			"FILE.backup.\n\n" +
			"A local server can act anywhere. Its entries save the roots before each call, also before calls that say that they\n" +
			"only read, so a revert restores the files. Effects elsewhere are unknown. --snapshot names some roots; --snapshot none\n" +
			"saves none.\n\n" +
			"--sandbox starts each local server in the sandbox, where it sees its roots and its own code, and has no network. It\n" +
			"drafts the sandbox for each server that starts: remit then knows all changes of its calls. The command reports why\n" +
			"other servers do not start.",
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
	cmd.Flags().StringArrayVar(&p.Moved, "root", nil, "another root for servers, as `NAME=DIR`")
	cmd.Flags().StringArrayVar(&keep, "snapshot", nil, "draft a snapshot of the root `NAME` before each call of a local server; none drafts no snapshot (default: every root, on Linux)")
	cmd.Flags().BoolVar(&p.Upstreams.Confined, "sandbox", false, "draft a sandbox for each local server that starts in one")
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
func writeDrafts(a *cli.App, drafts []config.EntryDraft, file string, write, asJSON bool) error {
	backup := ""
	if write {
		var err error
		if backup, err = connect.RewriteFile(file, func(text []byte) ([]byte, error) { return config.AddEntries(text, drafts) }); err != nil {
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
		_, err := fmt.Fprintf(a.Out, "drafted %s in %s\n", draftedWords(drafts), cli.Quote(file))
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

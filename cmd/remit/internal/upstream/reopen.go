package upstream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/ctxperm/process"
)

// NoteFile returns the file that names the last configuration of a state
// folder, so that later commands can revert its calls without the configuration
// flag.
func NoteFile(p *state.Workspace) string { return filepath.Join(p.StateDir, "mcp", "gateway") }

// Reopen returns the tools of the last gateway of a state folder, for a
// command that reverts calls.
func Reopen(ctx context.Context, a *cli.App, p *state.Workspace, programs *process.Driver) ([]agent.Option, error) {
	if p.Upstreams.Config == "" {
		noted, err := os.ReadFile(NoteFile(p))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		p.Upstreams.Config = string(noted)
	}
	p.Upstreams.Lazy = true
	roots := p.NamedRoots()
	if programs != nil && !state.NamesWorkspace(roots) {
		roots = append(slices.Clone(roots), state.WorkspaceRoot+"="+p.Folder())
	}
	g, err := Open(ctx, a, p, roots, programs)
	if err != nil {
		_, _ = fmt.Fprintf(a.Err, "remit: of what servers did, only changes of files can be reverted: %v\n", err)
		return nil, nil
	}
	return []agent.Option{agent.Tools(g.Tools()...)}, nil
}

//go:build !portable

package hook

import (
	"context"

	"github.com/remit-dev/remit/internal/sandbox"
)

// confines reports whether commands can run in the sandbox, at its highest
// level.
func (d *daemon) confines(ctx context.Context, dir string) bool {
	m, err := sandbox.Probe(ctx, "", dir, "")
	if err != nil || m.Level != sandbox.Strict {
		d.log.Info("commands of agents are observed: the sandbox is not available", "folder", dir, "level", m.Level.String(), "error", err)
		return false
	}
	return true
}

package agentguard

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/connect"
)

// ClientDrift compares the hooks of a client with what remit connect wrote.
// project is a folder with further files of the client, or "". The result is
// zero for a client without hooks, and without a home folder.
func ClientDrift(a *cli.App, client, project string) (d connect.Drift, err error) {
	c, err := connect.ClientByName(client)
	if err != nil {
		return d, err
	}
	p := connect.Environment{OS: runtime.GOOS, Home: a.Getenv("HOME"), Env: a.Getenv}
	if runtime.GOOS == "windows" {
		p.Home = a.Getenv("USERPROFILE")
	}
	base, err := state.Home(a.Getenv)
	if err != nil || !filepath.IsAbs(p.Home) {
		return d, nil //nolint:nilerr // nothing can be connected
	}
	p.State = filepath.Join(base, "remit", "connect")
	if p.Command, err = os.Executable(); err != nil {
		return d, err
	}
	if project != "" {
		if p.Project, err = state.RealFolder(project); err != nil {
			return d, err
		}
	}
	return c.Drift(p)
}

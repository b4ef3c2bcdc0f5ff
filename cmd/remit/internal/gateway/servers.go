package gateway

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/cmd/remit/internal/upstream"
	"github.com/remit-dev/remit/mcp/gateway"
)

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

// writeServers reports the servers that are not available, and those that run
// outside the sandbox although it was requested.
func writeServers(a *cli.App, p *state.Workspace, g *upstream.Gateway) {
	for _, s := range g.ServerStatuses() {
		why, outside := p.Upstreams.Outside[s.Server]
		switch {
		case !s.Connected:
			a.ErrStyle().Problem(a.Err, "remit: ", unavailableProblem(p, s))
			a.ExitWith(cli.ExitInternal)
		case outside:
			a.ErrStyle().Problem(a.Err, "remit: ", &cli.Problem{
				What: "server " + s.Server + " gets no sandbox", Why: why,
				Fix: `write its "sandbox" by hand, as docs/reference/gateway-config.md says; until then its calls can change anything on this machine`,
			})
		}
	}
}

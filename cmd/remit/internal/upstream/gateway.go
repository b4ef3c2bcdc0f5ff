package upstream

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/version"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/mcp/gateway"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
)

// Gateway is an open gateway and the runtime of its tools.
type Gateway struct {
	*gateway.Gateway

	rt  *agent.Runtime             // set before the servers start
	srv atomic.Pointer[mcp.Server] // nil: no server yet
}

// SetRuntime sets the runtime of the tools. Call it before the servers start.
func (m *Gateway) SetRuntime(rt *agent.Runtime) { m.rt = rt }

// SetServer sets the server whose clients the gateway notifies.
func (m *Gateway) SetServer(srv *mcp.Server) { m.srv.Store(srv) }

// changed gives the runtime the current tools.
func (m *Gateway) changed([]tool.Tool) {
	if m.rt == nil {
		return
	}
	others := slices.DeleteFunc(m.rt.Tools().All(), func(t tool.Tool) bool { return t.Spec().Provenance.Kind == provenance.MCP })
	if err := m.rt.SetTools(append(others, m.Tools()...)...); err == nil && m.srv.Load() != nil {
		m.srv.Load().ToolsChanged()
	}
}

// offered notifies clients that the catalog changed.
func (m *Gateway) offered() {
	if srv := m.srv.Load(); srv != nil {
		srv.CatalogChanged()
	}
}

// updated notifies the subscribers of a resource.
func (m *Gateway) updated(uri string) {
	if srv := m.srv.Load(); srv != nil {
		_ = srv.ResourceChanged(context.Background(), uri) // an error means that the client has left
	}
}

// The server type-asserts its Mirror to Catalog. This line makes the compiler
// check that.
var _ mcp.Catalog = (*gateway.Gateway)(nil)

// Open opens the gateway that a command line names. Roots has the form
// NAME=DIR. The command closes the gateway at its end.
func Open(ctx context.Context, a *cli.App, p *state.Workspace, roots []string, programs *process.Driver) (*Gateway, error) {
	c, config, err := ReadServers(a, &p.Upstreams)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	for _, w := range c.Warnings {
		log.Warn("the configuration of the gateway", "note", w)
	}
	m := &Gateway{}
	o := gateway.Options{
		Version: version.Read().Version, State: filepath.Join(p.StateDir, "mcp"), QuarantineNew: p.Upstreams.Strict, Lazy: p.Upstreams.Lazy, SkipInputValidation: true, Log: log,
		Roots: map[string]string{}, Sandbox: programs, OtherTools: state.ServedTools(a), OnToolsChanged: m.changed, OnCatalogChanged: m.offered, OnResourceUpdated: m.updated,
		Authorize: Logins(p, config).Handler,
	}
	for _, r := range roots {
		name, dir, err := state.ParseRoot(r)
		if err != nil {
			return nil, err
		}
		o.Roots[name] = dir
	}
	if m.Gateway, err = gateway.Open(ctx, c, o); err != nil {
		return nil, &cli.Problem{Code: cli.ExitUsage, What: "the gateway cannot be opened", Why: strings.TrimPrefix(err.Error(), "gateway: ")}
	}
	a.OnClose(m.Close)
	if p.Upstreams.Lazy {
		return m, nil
	}
	return m, os.WriteFile(NoteFile(p), []byte(config), 0o600)
}

package gateway

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/remit-dev/remit/mcp/gateway/internal/naming"
	"github.com/remit-dev/remit/mcp/gateway/internal/upstream"
)

// Start starts all servers, and returns at once. Each server has its own
// Options.StartTimeout, so one that hangs delays no other. Until a server
// responds, the gateway serves its pins. Options.OnToolsChanged and
// Options.OnCatalogChanged report later changes. The gateway retries servers
// that did not start. Start must be called at most once.
func (g *Gateway) Start() {
	g.met.Store(g.shared.Now().Add(g.opts.Meet).UnixNano())
	for _, u := range g.servers {
		u.Fresh.Store(u.Unknown())
		g.done.Go(func() {
			if _, err := u.Session(g.shared.Life); err != nil && g.shared.Closed() == nil {
				g.shared.Log.Warn("a server cannot be had", "server", u.Server.Name, "error", err)
			}
		})
	}
	g.done.Go(func() { g.watch(g.shared.Life) })
}

// Await waits until each server has responded, or could not start. The context
// ends the wait.
func (g *Gateway) Await(ctx context.Context) {
	g.await(func(u *upstream.Upstream) { _, _ = u.Session(ctx) }) // ServerStatuses has the reason
}

// AwaitNew waits for the servers that have no pins when they start, at most
// Options.Meet. So a client that lists tools once finds those of a fast server
// at the first start too.
func (g *Gateway) AwaitNew(ctx context.Context) {
	ctx, cancel := context.WithDeadline(ctx, time.Unix(0, g.met.Load()))
	defer cancel()
	g.await(func(u *upstream.Upstream) {
		if u.Fresh.Load() {
			_ = u.AwaitDefinitions(ctx)
		}
	})
}

// AwaitTool waits for the server of a tool, by the name that clients know, if
// the server is starting or unknown. The error names the server and says why it
// is not available.
func (g *Gateway) AwaitTool(ctx context.Context, name string) error {
	server, _, _ := strings.Cut(name, naming.Separator)
	for _, u := range g.servers {
		if u.Server.Name == server {
			return u.AwaitDefinitions(ctx)
		}
	}
	return nil
}

func (g *Gateway) await(each func(*upstream.Upstream)) {
	var all sync.WaitGroup
	for _, u := range g.servers {
		all.Go(func() { each(u) })
	}
	all.Wait()
}

// watched is the interval at which the gateway checks for accepted pins and for
// missing servers.
const watched = time.Second

func (g *Gateway) watch(ctx context.Context) {
	for upstream.Sleep(ctx, watched) == nil {
		if changed, err := g.shared.Pins.Reread(); err != nil {
			g.shared.Log.Warn("what was accepted cannot be read", "error", err)
		} else if changed {
			if err := g.mirror.Rebuild(); err != nil {
				g.shared.Log.Warn("what was accepted is of no effect", "error", err)
			}
		}
		for _, u := range g.servers {
			u.Retry()
		}
	}
}

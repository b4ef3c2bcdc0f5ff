package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/mirror"
	"github.com/remit-dev/remit/mcp/gateway/internal/pin"
	"github.com/remit-dev/remit/mcp/gateway/internal/program"
	"github.com/remit-dev/remit/mcp/gateway/internal/undo"
	"github.com/remit-dev/remit/mcp/gateway/internal/upstream"
	"github.com/remit-dev/remit/tool"
)

// Options configure a Gateway beside its Config. A zero field has its default.
type Options struct {
	Name, Version string // of the client, for servers; default name "remit"

	// State is a folder outside every root that holds the pins and the started
	// compensations. If empty, they are in memory, and each start accepts the
	// current definitions.
	State string
	// QuarantineNew also quarantines the definitions at the first start.
	QuarantineNew bool
	// SkipInputValidation leaves the validation of inputs to each server.
	// Otherwise the runtime rejects an input that does not fit the declared
	// schema, before the policy decides.
	SkipInputValidation bool

	Env func(string) (string, bool) // variables of servers; default: those of this process
	Log *slog.Logger                // default: no log

	// Lazy is for a program that only reverts calls and never calls Start:
	// missing roots do not keep it from opening.
	Lazy bool

	StartTimeout time.Duration // time for a server to respond; default 1 minute
	Meet         time.Duration // time after Gateway.Start in which AwaitNew waits for servers; default 300 ms
	MaxBackoff   time.Duration // of a server that does not start; default 1 minute

	// Roots are the folders of the runtime's roots, by name. Absolute paths in
	// arguments are matched with them, and servers in the sandbox work in them.
	Roots map[string]string
	// Sandbox runs servers in the sandbox. It is the driver that the runtime
	// has as agent.Driver.
	Sandbox *process.Driver

	// Authorize returns the handler that gets an OAuth token for a server by
	// URL, such as by auth.NewAuthorizationCodeHandler, or nil. The gateway calls it
	// once for each server whose configured headers
	// prove nothing. The handler can have a method Renewed() bool, which
	// reports that a token may exist since the last login error, and a method
	// Close() error, which the gateway calls when it closes. If Authorize is
	// nil, servers get only the configured headers.
	Authorize func(server, url string) auth.OAuthHandler

	// OtherTools are the other tools of the runtime. The gateway quarantines
	// tools that a reader could confuse with them.
	OtherTools []tool.Tool
	// OnToolsChanged receives the new tools when they changed, on any
	// goroutine. It must call agent.Runtime.SetTools.
	OnToolsChanged func([]tool.Tool)
	// OnCatalogChanged runs when resources or prompts changed, on any
	// goroutine. It must call mcp.Server.CatalogChanged.
	OnCatalogChanged func()
	// OnResourceUpdated runs when a subscribed resource changed. It must call
	// mcp.Server.ResourceChanged.
	OnResourceUpdated func(uri string)
}

// Gateway mirrors the tools of servers. It is safe for concurrent use.
type Gateway struct {
	opts    Options
	shared  *upstream.Shared
	mirror  *mirror.Mirror
	servers []*upstream.Upstream
	updates updateQueue

	stop context.CancelCauseFunc // ends shared.life
	done sync.WaitGroup
	shut atomic.Bool
	met  atomic.Int64 // deadline of AwaitNew, in nanoseconds
}

// Open makes a gateway from a configuration. It starts no server: the gateway
// has the pinned tools, and a call starts the server that it needs. Start
// starts all servers. Close ends them.
func Open(ctx context.Context, c config.Config, o Options) (*Gateway, error) {
	g := &Gateway{opts: o.withDefaults()}
	h, err := g.share(ctx)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	attempts, err := undo.OpenAttempts(o.State)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	for _, s := range c.Servers {
		box, err := o.check(s)
		if err != nil && !o.Lazy {
			return nil, fmt.Errorf("gateway: server %s: %w", s.Name, err)
		}
		g.servers = append(g.servers, upstream.New(h, s, box))
	}
	g.shared, g.mirror = h, mirror.New(mirror.Options{
		QuarantineNew: o.QuarantineNew, SkipInputValidation: o.SkipInputValidation, OtherTools: o.OtherTools,
		Log: h.Log, OnToolsChanged: o.OnToolsChanged, OnCatalogChanged: o.OnCatalogChanged,
	}, g.servers, h.Pins, attempts)
	if err := g.mirror.Rebuild(); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return g, nil
}

// share returns what the servers share.
func (g *Gateway) share(ctx context.Context) (*upstream.Shared, error) {
	o := g.opts
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the default transport of net/http was replaced")
	}
	own := base.Clone()
	own.Proxy = nil // server headers must not go to a proxy
	pins, err := pin.Open(o.State)
	if err != nil {
		return nil, err
	}
	h := &upstream.Shared{
		Log: o.Log, Pins: pins, Env: o.Env, Guard: program.NewGuard(), Base: own, Authorize: o.Authorize,
		Roots: o.Roots, StartTimeout: o.StartTimeout, MaxBackoff: o.MaxBackoff, Identity: &sdk.Implementation{Name: o.Name, Version: o.Version},
		Changed:           func() error { return g.mirror.Rebuild() },
		OnResourceUpdated: func(uri string) { g.updates.send(uri, o.OnResourceUpdated) },
	}
	h.Life, g.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	return h, nil
}

// check returns the sandbox of a server, or nil. It returns an error if a root
// that the server needs is missing, or holds the state folder. With an error
// about the sandbox, it returns one in which nothing starts.
func (o Options) check(s config.Server) (box *program.Sandbox, err error) {
	if s.Sandbox != nil {
		box, err = program.NewSandbox(s, o.Sandbox, o.Roots)
	}
	for _, root := range s.Roots {
		if o.Roots[root] == "" {
			return box, fmt.Errorf("it is to be told of root %q, and there is none", root)
		}
	}
	if err := o.outside(s); err != nil {
		return box, err
	}
	return box, err
}

// outside rejects roots that a snapshot cannot save: an unknown root, or one
// that contains the state folder.
func (o Options) outside(s config.Server) error {
	for _, root := range undo.SnapshotRoots(s) {
		dir := o.Roots[root]
		if dir == "" {
			return fmt.Errorf("what root %q holds is to be kept, and there is none", root)
		}
		if o.State == "" {
			continue
		}
		k, err := process.NewSnapshotter(process.SnapshotConfig{Dir: o.State})
		if err == nil {
			err = k.CheckRoot(dir)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "remit"
	}
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.StartTimeout <= 0 {
		o.StartTimeout = time.Minute
	}
	if o.Meet <= 0 {
		o.Meet = 300 * time.Millisecond
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = time.Minute
	}
	return o
}

var errClosed = errors.New("the gateway is closed")

// Close ends the servers. In-flight calls end as if their servers had exited.
func (g *Gateway) Close() error {
	if g.shut.Swap(true) {
		return nil
	}
	g.stop(errClosed)
	g.done.Wait()
	var all sync.WaitGroup
	for _, u := range g.servers {
		all.Go(u.Close)
	}
	all.Wait()
	g.shared.Guard.Close()
	return nil
}

// Tools returns the current tools, also those in quarantine, which are hidden
// and whose calls are denied.
func (g *Gateway) Tools() []tool.Tool { return slices.Clone(g.mirror.Current().Tools) }

// UpstreamDefinition returns the listing of a tool as its server declares it,
// under the name that clients know. It is nil for a catalog tool. It returns
// false for a tool that is not the gateway's.
func (g *Gateway) UpstreamDefinition(t tool.Tool) (json.RawMessage, bool) {
	object, ok := g.mirror.Current().Listings[t.Name()]
	return slices.Clone(object), ok // nil for catalog tools
}

// UpstreamTool returns the name of the tool that clients know by a name.
func (g *Gateway) UpstreamTool(name string) (string, bool) {
	t, ok := g.mirror.Current().Names[name]
	return t, ok
}

// Quarantined lists the definitions that are in quarantine.
func (g *Gateway) Quarantined() []QuarantinedItem { return quarantined(g.mirror.Current().Quarantined) }

func quarantined(all []pin.Item) (out []QuarantinedItem) {
	for _, i := range all {
		out = append(out, QuarantinedItem(i))
	}
	return out
}

// QuarantinedItem is a tool, a prompt, a template or a whole server whose
// current definition is not accepted.
type QuarantinedItem struct {
	Server, Tool  string // Tool is empty for the server itself, prompt:NAME for a prompt and template:URI for a template
	Why           string
	Before, After json.RawMessage // the definitions; nil if there is none
}

// ServerStatus is the status of one server.
type ServerStatus struct {
	Server    string
	Connected bool
	Why       string // why the server is down; empty before the first attempt
	Login     bool   // the server is down because it needs a login
	Tools     int
}

// ServerStatuses lists the statuses of the servers.
func (g *Gateway) ServerStatuses() []ServerStatus {
	out := make([]ServerStatus, 0, len(g.servers))
	for _, u := range g.servers {
		now := u.Status()
		s := ServerStatus{Server: u.Server.Name, Connected: now.Connected, Tools: now.Tools}
		if now.Why != nil {
			s.Why, s.Login = now.Why.Error(), upstream.LoginOf(now.Why) != nil
		}
		out = append(out, s)
	}
	return out
}

// Accept pins what a server declares now: one tool, one prompt ("prompt:NAME")
// or one template ("template:URI"), or, if tool is empty, all of them and the
// server's identity. It returns the items that it accepted.
func (g *Gateway) Accept(ctx context.Context, server, tool string) ([]QuarantinedItem, error) {
	at := slices.IndexFunc(g.servers, func(u *upstream.Upstream) bool { return u.Server.Name == server })
	if at < 0 {
		return nil, fmt.Errorf("there is no server %q", server)
	}
	u := g.servers[at]
	if _, err := u.Session(ctx); err != nil {
		return nil, err
	}
	now := u.Declared() // newer than the mirror can be: the caller learns what it accepts
	waiting, err := g.shared.Pins.Judge(server, now, true)
	if err != nil {
		return nil, err
	}
	if err := g.shared.Pins.Accept(server, now, tool); err != nil {
		return nil, err
	}
	return quarantined(slices.DeleteFunc(waiting, func(q pin.Item) bool { return tool != "" && q.Tool != tool })), g.mirror.Rebuild()
}

// MayRequestClient reports whether the server of a tool can send the client a
// request that the client supports. It is true for a tool of no server.
func (g *Gateway) MayRequestClient(t tool.Tool, can *sdk.ClientCapabilities) bool {
	u, ok := g.mirror.Current().Upstreams[t.Name()]
	return !ok || u.Requests.MayAsk(can)
}

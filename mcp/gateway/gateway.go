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

	"golang.org/x/sync/semaphore"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/tool"
)

// Options are what a Gateway is opened with, beside its configuration. A zero field takes its default.
type Options struct {
	Name, Version string // what servers are told of their client; default "remit"

	// State is a folder outside every root, which keeps what was accepted and which undo was begun. Empty: nothing
	// is kept, and each start accepts what is there.
	State string
	// QuarantineNew quarantines what is there at the first start too.
	QuarantineNew bool
	// SkipInputValidation leaves it to each server to judge its input, and to say in its own words what is wrong with it. Else what does
	// not fit the schema that a tool declares is refused before anybody is asked.
	SkipInputValidation bool

	Env func(string) (string, bool) // variables that servers get; default those of this process
	Log *slog.Logger                // default: nothing is logged

	// Lazy is for a program that only takes calls back, and never calls Start: roots that are missing do not keep it from opening.
	Lazy bool

	StartTimeout time.Duration // in which a server has to be there; default one minute
	Meet         time.Duration // from Gateway.Start on, in which AwaitNew waits for servers; default 300 ms
	MaxBackoff   time.Duration // that a server is given which does not start; default one minute

	// Roots are the folders of the runtime's roots, by name: absolute paths in arguments are told by them, and servers in
	// the sandbox work in them.
	Roots map[string]string
	// Sandbox runs servers in the sandbox. It is the one that the runtime is given as agent.Driver.
	Sandbox *process.Driver

	// Authorize returns who gets the gateway a token of OAuth at a server by URL that wants one, such as by
	// auth.NewAuthorizationCodeHandler or package login, or nil; it is asked once for each server whose headers prove nothing. What it
	// returns may have a method Renewed() bool, which says that after an error of a login there may be a token by now, and one Close()
	// error, which is called before the gateway is closed. nil: headers of the configuration are all that servers get.
	Authorize func(server, url string) auth.OAuthHandler

	// OtherTools are the other tools of the runtime: what could be taken for one of them is quarantined.
	OtherTools []tool.Tool
	// OnToolsChanged is told, on any goroutine, when the tools are others than before; it calls agent.Runtime.SetTools.
	OnToolsChanged func([]tool.Tool)
	// OnCatalogChanged is told, on any goroutine, when resources or prompts are others than before; it calls mcp.Server.CatalogChanged.
	OnCatalogChanged func()
	// OnResourceUpdated is told when a resource that was subscribed to is another by now; it calls mcp.Server.ResourceChanged.
	OnResourceUpdated func(uri string)
}

// Gateway mirrors the tools of servers. It is safe for concurrent use.
type Gateway struct {
	opts    Options
	log     *slog.Logger
	base    *http.Transport // of which each connection has its own
	pins    *pins
	undone  *revertAttempts
	servers []*upstream
	guard   *guard

	introduced sync.Once
	intro      json.RawMessage

	turn chan struct{} // one at a time makes the mirror
	seen atomic.Pointer[toolSnapshot]
	news updateQueue
	life context.Context //nolint:containedctx // ends when it is closed, and with it every try to reach a server
	stop context.CancelCauseFunc
	done sync.WaitGroup
	shut atomic.Bool
	met  atomic.Int64 // when AwaitNew waits no longer, in nanoseconds
}

// toolSnapshot is all tools as they are at one time.
type toolSnapshot struct {
	tools       []tool.Tool
	listed      map[string]json.RawMessage // by tool's name
	of          map[string]*upstream       // by tool's name; not of those that read resources and prompts
	called      map[string]string          // tool's name by the one that clients know
	quarantined []QuarantinedItem
	library     gatewayCatalog
}

// Open makes a gateway of a configuration. It starts no server: the gateway has the tools that are pinned, and a call starts the
// server that it needs. Start starts all servers. Close ends them all.
func Open(ctx context.Context, c Config, o Options) (*Gateway, error) {
	g := &Gateway{opts: o.withDefaults(), turn: make(chan struct{}, 1), guard: newGuard()}
	g.log = g.opts.Log
	g.life, g.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("gateway: the default transport of net/http was replaced")
	}
	own := base.Clone()
	own.Proxy = nil // what a server is told by its headers is for nobody else
	g.base = own
	var err error
	if g.pins, err = openPins(o.State); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	if g.undone, err = openAttempts(o.State); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	for _, s := range c.Servers {
		u := &upstream{g: g, cfg: s, gate: make(chan struct{}, 1), room: semaphore.NewWeighted(most), alone: map[string]bool{}, told: map[string]bool{}, watches: subscriptions{turn: make(chan struct{}, 1)}}
		for _, root := range s.Roots {
			if o.Roots[root] == "" && !o.Lazy {
				return nil, fmt.Errorf("gateway: server %s: it is to be told of root %q, and there is none", s.Name, root)
			}
		}
		if err := o.outside(s); err != nil && !o.Lazy {
			return nil, fmt.Errorf("gateway: server %s: %w", s.Name, err)
		}
		if s.Sandbox != nil {
			if u.box, err = newServerSandbox(s, &g.opts); err != nil && !o.Lazy {
				return nil, fmt.Errorf("gateway: server %s: %w", s.Name, err)
			}
		}
		g.servers = append(g.servers, u)
	}
	if err := g.rebuild(); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return g, nil
}

// outside refuses folders that cannot be kept: of no root, or of one that what is kept would lie in.
func (o Options) outside(s Server) error {
	for _, root := range s.keepsFolders() {
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

func (*Gateway) now() time.Time { return time.Now() }

var errClosed = errors.New("the gateway is closed")

func (g *Gateway) closed() error {
	if g.shut.Load() {
		return errClosed
	}
	return nil
}

// Close ends the servers. Calls in flight end as if their servers had gone.
func (g *Gateway) Close() error {
	if g.shut.Swap(true) {
		return nil
	}
	g.stop(errClosed)
	g.done.Wait()
	var all sync.WaitGroup
	for _, u := range g.servers {
		all.Go(func() {
			u.gate <- struct{}{} // nobody connects any more
			defer func() { <-u.gate }()
			u.finish()
			if s := u.current(); s != nil {
				s.close()
			}
			u.there.Wait() // one that was left before would stay behind, where it does not go by itself
		})
	}
	all.Wait()
	g.guard.close()
	return nil
}

// Tools returns the tools as they are now, also those in quarantine, which nobody sees and every call of which is denied.
func (g *Gateway) Tools() []tool.Tool { return slices.Clone(g.seen.Load().tools) }

// UpstreamDefinition returns how a tool is listed: as its server declares it, under the name that clients know, or, of one that reads resources or
// prompts, not at all, which is nil. It is false for a tool of nobody here.
func (g *Gateway) UpstreamDefinition(t tool.Tool) (json.RawMessage, bool) {
	object, ok := g.seen.Load().listed[t.Name()]
	return slices.Clone(object), ok // of what reads resources and prompts, it is nil
}

// UpstreamTool returns the name of the tool that clients know by a name.
func (g *Gateway) UpstreamTool(name string) (string, bool) {
	t, ok := g.seen.Load().called[name]
	return t, ok
}

// Quarantined lists what nobody has accepted as it is now.
func (g *Gateway) Quarantined() []QuarantinedItem { return slices.Clone(g.seen.Load().quarantined) }

// ServerStatus is how one server is.
type ServerStatus struct {
	Server    string
	Connected bool
	Why       string // it is not up; empty where nobody has tried
	Login     bool   // it is not up because somebody has to log in
	Tools     int
}

// ServerStatuses lists the servers.
func (g *Gateway) ServerStatuses() []ServerStatus {
	out := make([]ServerStatus, 0, len(g.servers))
	for _, u := range g.servers {
		s := ServerStatus{Server: u.cfg.Name, Connected: u.current() != nil}
		u.mu.Lock()
		s.Tools = len(u.has.of(tools))
		if !s.Connected && u.why != nil {
			s.Why, s.Login = u.why.Error(), loginOf(u.why) != nil
		}
		u.mu.Unlock()
		out = append(out, s)
	}
	return out
}

// Accept accepts what a server declares now: one tool of it, one prompt ("prompt:NAME") or template of resources ("template:URI"), or,
// where tool is empty, all of them and who it says that it is. It returns what was accepted thereby.
func (g *Gateway) Accept(ctx context.Context, server, tool string) ([]QuarantinedItem, error) {
	at := slices.IndexFunc(g.servers, func(u *upstream) bool { return u.cfg.Name == server })
	if at < 0 {
		return nil, fmt.Errorf("there is no server %q", server)
	}
	u := g.servers[at]
	if _, err := u.session(ctx); err != nil {
		return nil, err
	}
	now := u.declared() // of which the mirror may not know yet: who accepts is told of what is accepted
	waiting, err := g.pins.judge(server, now, true)
	if err != nil {
		return nil, err
	}
	if err := g.pins.accept(server, now, tool); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(waiting, func(q QuarantinedItem) bool { return tool != "" && q.Tool != tool }), g.rebuild()
}

func (u *upstream) declared() declared {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.has
}

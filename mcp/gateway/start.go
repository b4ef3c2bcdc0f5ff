package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/remit-dev/remit/mcp/gateway/internal/naming"
)

// Start starts all servers, and returns at once. Each server has its own
// Options.StartTimeout, so one that hangs delays no other. Until a server
// responds, the gateway serves its pins. Options.OnToolsChanged and
// Options.OnCatalogChanged report later changes. The gateway retries servers
// that did not start. Start must be called at most once.
func (g *Gateway) Start() {
	g.met.Store(g.now().Add(g.opts.Meet).UnixNano())
	for _, u := range g.servers {
		u.fresh.Store(u.stranger())
		g.done.Go(func() {
			if _, err := u.session(g.life); err != nil && g.closed() == nil {
				g.log.Warn("a server cannot be had", "server", u.cfg.Name, "error", err)
			}
		})
	}
	g.done.Go(func() { g.watch(g.life) })
}

// Await waits until each server has responded, or could not start. The context
// ends the wait.
func (g *Gateway) Await(ctx context.Context) {
	g.await(func(u *upstream) { _, _ = u.session(ctx) }) // ServerStatuses has the reason
}

// AwaitNew waits for the servers that have no pins when they start, at most
// Options.Meet. So a client that lists tools once finds those of a fast server
// at the first start too.
func (g *Gateway) AwaitNew(ctx context.Context) {
	ctx, cancel := context.WithDeadline(ctx, time.Unix(0, g.met.Load()))
	defer cancel()
	g.await(func(u *upstream) {
		if u.fresh.Load() {
			_ = u.meet(ctx)
		}
	})
}

// AwaitTool waits for the server of a tool, by the name that clients know, if
// the server is starting or unknown. The error names the server and says why it
// is not available.
func (g *Gateway) AwaitTool(ctx context.Context, name string) error {
	server, _, _ := strings.Cut(name, naming.Separator)
	for _, u := range g.servers {
		if u.cfg.Name == server {
			return u.meet(ctx)
		}
	}
	return nil
}

func (g *Gateway) await(each func(*upstream)) {
	var all sync.WaitGroup
	for _, u := range g.servers {
		all.Go(func() { each(u) })
	}
	all.Wait()
}

// meet waits until the definitions of a server are in the mirror. The error
// says why the server is unknown.
func (u *upstream) meet(ctx context.Context) error {
	u.mu.Lock()
	t := u.trying
	u.mu.Unlock()
	if t != nil {
		t.wait(ctx, u.g.life)
	}
	if !u.stranger() {
		return nil
	}
	_, err := u.session(ctx)
	return err
}

// stranger reports whether a server has no pins and has not responded.
func (u *upstream) stranger() bool {
	_, pinned := u.g.pins.Server(u.cfg.Name)
	return !pinned && !u.declared().Known
}

// watched is the interval at which the gateway checks for accepted pins and for
// missing servers.
const watched = time.Second

func (g *Gateway) watch(ctx context.Context) {
	for sleep(ctx, watched) == nil {
		if changed, err := g.pins.Reread(); err != nil {
			g.log.Warn("what was accepted cannot be read", "error", err)
		} else if changed {
			if err := g.rebuild(); err != nil {
				g.log.Warn("what was accepted is of no effect", "error", err)
			}
		}
		for _, u := range g.servers {
			if u.missing() {
				_, _ = u.begins() // calls report the error
			}
		}
	}
}

// missing reports whether a retry is due for a server that never responded, or
// that has gone while its resources are subscribed to.
func (u *upstream) missing() bool {
	wanted := u.current() == nil && len(u.watches.uris()) > 0
	u.mu.Lock()
	missing, rests, why := !u.has.Known || wanted, u.rest.After(u.g.now()), u.why
	u.mu.Unlock()
	return missing && (!rests || u.renewed(why))
}

// attempt is one attempt to connect to a server. Several calls can wait for it,
// and none of them ends it, so later calls profit from it.
type attempt struct {
	begun time.Time
	over  chan struct{} // closed at the end of the attempt
	s     *upstreamConn // written before over is closed
	err   error
}

// session returns the connection. It connects if there is none.
func (u *upstream) session(ctx context.Context) (*upstreamConn, error) {
	if s := u.current(); s != nil {
		return s, nil
	}
	t, err := u.begins()
	if err != nil {
		return nil, err
	}
	if t.wait(ctx, u.g.life) {
		return t.s, t.err
	}
	if cause := context.Cause(u.g.life); cause != nil { // Close waits for this call
		return nil, &unavailableError{server: u.cfg.Name, err: cause}
	}
	waited := u.g.now().Sub(t.begun).Round(100 * time.Millisecond)
	return nil, &unavailableError{server: u.cfg.Name, err: fmt.Errorf("it was started %s ago and has not answered: %w", waited, context.Cause(ctx))}
}

// mostSooner bounds how long before its deadline a call stops waiting for a
// server.
const mostSooner = time.Second

var errNoTime = errors.New("the call has no more time")

// sooner returns a context that ends a while before the timeout of a call. A
// call that still waits for its server has no effect; one that times out may
// have any. Zero means the default of the runtime, which is longer than a
// start.
func sooner(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit-min(limit/4, mostSooner), errNoTime)
}

// wait waits for the end of an attempt, and reports whether it has ended.
func (t *attempt) wait(ctx, life context.Context) bool {
	select {
	case <-t.over:
	case <-ctx.Done():
	case <-life.Done():
	}
	select {
	case <-t.over:
		return true
	default:
		return false
	}
}

// begins returns the running attempt, or begins one. It returns an error during
// the backoff.
func (u *upstream) begins() (*attempt, error) {
	if err := u.g.closed(); err != nil {
		return nil, &unavailableError{server: u.cfg.Name, err: err}
	}
	u.mu.Lock()
	t, rest, why := u.trying, u.rest.Sub(u.g.now()), u.why
	u.mu.Unlock()
	if t != nil {
		return t, nil
	}
	if rest > 0 && !u.renewed(why) {
		return nil, &unavailableError{server: u.cfg.Name, err: why, rest: rest}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.trying == nil {
		u.trying = &attempt{begun: u.g.now(), over: make(chan struct{})}
		go u.try(u.trying)
	}
	return u.trying, nil
}

// try connects, unless there is a connection.
func (u *upstream) try(t *attempt) {
	u.gate <- struct{}{} // Close holds the gate while it ends the connection
	defer func() { <-u.gate }()
	if t.s = u.current(); t.s == nil {
		if t.s, t.err = u.connect(u.g.life); t.err != nil {
			u.startBackoff(t.err)
			t.err = &unavailableError{server: u.cfg.Name, err: t.err}
		}
	}
	u.mu.Lock()
	u.trying = nil
	u.mu.Unlock()
	close(t.over)
}

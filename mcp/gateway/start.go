package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Start starts all servers, and returns at once. Each server has Options.StartTimeout of its own: one that hangs delays no other.
// Until a server has answered, the gateway has what is pinned of it. Options.OnToolsChanged and Options.OnCatalogChanged tell what is known
// later. The gateway starts a server again that could not be started. Start may be called once.
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

// Await waits until each server has answered, or could not be started. The context ends the wait.
func (g *Gateway) Await(ctx context.Context) {
	g.await(func(u *upstream) { _, _ = u.session(ctx) }) // States says why not
}

// AwaitNew waits for the servers that the gateway knew nothing of when they were started, for no longer than Options.Meet: a client that
// asks once for the tools of a server that answers quickly finds them at the first start too.
func (g *Gateway) AwaitNew(ctx context.Context) {
	ctx, cancel := context.WithDeadline(ctx, time.Unix(0, g.met.Load()))
	defer cancel()
	g.await(func(u *upstream) {
		if u.fresh.Load() {
			_ = u.meet(ctx)
		}
	})
}

// AwaitTool waits for the server of a tool, by the name that clients know, if the server is being started, or nothing is known of it. The
// error names the server and says why it is not there.
func (g *Gateway) AwaitTool(ctx context.Context, name string) error {
	server, _, _ := strings.Cut(name, part)
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

// meet waits until what a server declares is in the mirror. An error says why nothing is known of the server.
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

// stranger reports whether nothing is known of a server: nothing is pinned, and it has not answered.
func (u *upstream) stranger() bool {
	_, pinned := u.g.pins.server(u.cfg.Name)
	return !pinned && !u.declared().known
}

// watched is how often it is looked whether somebody accepted something, and whether a server that was never there is.
const watched = time.Second

func (g *Gateway) watch(ctx context.Context) {
	for sleep(ctx, watched) == nil {
		if changed, err := g.pins.reread(); err != nil {
			g.log.Warn("what was accepted cannot be read", "error", err)
		} else if changed {
			if err := g.rebuild(); err != nil {
				g.log.Warn("what was accepted is of no effect", "error", err)
			}
		}
		for _, u := range g.servers {
			if u.missing() {
				_, _ = u.begins() // why there is none is said to who asks for it
			}
		}
	}
}

// missing reports whether a server has never answered, or has gone while somebody is told of its resources, and it is time to try again.
func (u *upstream) missing() bool {
	wanted := u.current() == nil && len(u.watches.uris()) > 0
	u.mu.Lock()
	missing, rests, why := !u.has.known || wanted, u.rest.After(u.g.now()), u.why
	u.mu.Unlock()
	return missing && (!rests || u.renewed(why))
}

// attempt is one try to connect to a server. Any number of calls waits for it, and none of them ends it: the next call is as far.
type attempt struct {
	begun time.Time
	over  chan struct{} // closed when it has ended
	s     *upstreamConn // written before
	err   error
}

// session returns the connection, which it makes where there is none.
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

// mostSooner is how long before its end a call gives up to wait for a server, at most.
const mostSooner = time.Second

var errNoTime = errors.New("the call has no more time")

// sooner ends a while before the time of a call: one that is over before its code returns may have had any effect, and one that still waits
// for its server has had none. Zero is a call of the runtime's default, which is longer than a start.
func sooner(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit-min(limit/4, mostSooner), errNoTime)
}

// wait waits until an attempt has ended, and reports whether it has.
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

// begins returns the attempt that is under way, or begins one. Its error says that the server rests.
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

// try connects, unless there is a connection by now.
func (u *upstream) try(t *attempt) {
	u.gate <- struct{}{} // Close has it for as long as it ends what is there
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

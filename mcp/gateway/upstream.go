package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"golang.org/x/sync/semaphore"

	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/clientrequest"
	"github.com/remit-dev/remit/mcp/gateway/internal/definition"
	"github.com/remit-dev/remit/mcp/gateway/internal/program"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
	"github.com/remit-dev/remit/mcp/internal/panics"
)

// upstream is one server, whether it runs or not.
type upstream struct {
	g   *Gateway
	cfg config.Server

	gate chan struct{}       // serializes connecting
	box  *program.Sandbox    // the sandbox; nil: none
	room *semaphore.Weighted // weights of calls: small, or all of it for an exclusive call

	fresh   atomic.Bool // unknown at its first start
	watches subscriptions
	asks    *clientrequest.Forwarder
	there   sync.WaitGroup  // connections that have not ended, including abandoned ones
	told    map[string]bool // tools with warnings about missing entries; the rebuild of the mirror owns it

	mu       sync.Mutex // never held across a wait
	live     *upstreamConn
	trying   *attempt // nil: no attempt runs
	failures int
	rest     time.Time // no attempt before this time
	why      error     // the last failure
	has      definition.Declared
	fuss     changeBackoff
	again    bool // the list changed while it was read
	reading  bool
	alone    map[string]bool   // tools that run exclusively, because they send client requests
	auth     auth.OAuthHandler // of a server by URL that needs it; nil: not created
}

// upstreamConn is one connection to a server.
type upstreamConn struct {
	cs      *sdk.ClientSession
	program program.Process       // nil: a server by URL
	far     *wire.RemoteTransport // nil: not a server by URL
	said    *program.Stderr
	gone    chan struct{}
	ending  atomic.Bool // no call can begin on it
	close   func()
	whole   context.Context //nolint:containedctx // ends with the connection
	cut     context.CancelCauseFunc
	digest  map[string]string // of the definitions, by key

	tuning chan struct{}    // serializes changes of the log level
	level  sdk.LoggingLevel // that the server was told; empty: none

	exchange wire.Exchange

	mu sync.Mutex // never held across a wait
}

// requestsInBand reports whether the server sends client requests only in the
// responses to calls.
func (s *upstreamConn) requestsInBand() bool {
	r := s.cs.InitializeResult()
	return r != nil && r.ProtocolVersion >= "2026-07-28"
}

func (s *upstreamConn) dead() bool {
	select {
	case <-s.gone:
		return true
	default:
		return s.ending.Load()
	}
}

// unavailableError says that a server cannot be reached, and that nothing was
// sent to it.
type unavailableError struct {
	server string
	err    error
	rest   time.Duration
}

func (e *unavailableError) Error() string {
	if login := loginOf(e.err); login != nil {
		return login.Error()
	}
	if e.rest > 0 {
		return fmt.Sprintf("server %s is down, and is tried again in %s: %v", e.server, e.rest.Round(time.Second), e.err)
	}
	return fmt.Sprintf("server %s cannot be reached: %v", e.server, e.err)
}

func (e *unavailableError) Unwrap() error { return e.err }

func (u *upstream) current() *upstreamConn {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.live != nil && u.live.dead() {
		u.live = nil
	}
	return u.live
}

// startBackoff starts the backoff of a server. It grows with each failure, so
// that the gateway does not restart a crashing server in a loop.
func (u *upstream) startBackoff(why error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.why = why
	wait := min(time.Second<<min(u.failures, 10), u.g.opts.MaxBackoff)
	u.failures++
	u.rest = u.g.now().Add(wait)
}

// connect starts the server, or connects to it, and reads its definitions,
// within the start timeout.
func (u *upstream) connect(ctx context.Context) (*upstreamConn, error) {
	if err := u.g.closed(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, u.g.opts.StartTimeout, errors.New("it did not answer in time"))
	defer cancel()
	s := &upstreamConn{said: program.NewStderr(), gone: make(chan struct{}), tuning: make(chan struct{}, 1)}
	s.whole, s.cut = context.WithCancelCause(context.WithoutCancel(ctx))
	transport, prog, err := u.transport(ctx, s)
	if err != nil {
		s.cut(wire.ErrEnded)
		return nil, err
	}
	if s.program = prog; prog != nil {
		_, _, complaints := prog.Pipes()
		go s.said.Follow(complaints, u.g.log, u.cfg.Name)
	}
	u.there.Add(1)
	s.close = sync.OnceFunc(func() {
		defer u.there.Done()
		s.disconnect()
	})
	abort := context.AfterFunc(ctx, s.close) // ends an attempt that hangs
	err = u.handshake(s.whole, s, transport)
	if err == nil {
		err = u.list(ctx, s)
	}
	if !abort() || err != nil {
		s.close()
		return nil, u.withStderr(ctx, s, err)
	}
	go func() {
		_ = s.cs.Wait()
		close(s.gone)
		s.close()
		if u.g.closed() == nil {
			u.g.log.Warn("a server has gone", "server", u.cfg.Name, "said", s.said.Tail())
		}
	}()
	err = u.g.rebuild() // before the connection is published, so that its callers find its tools
	u.mu.Lock()
	u.live, u.failures, u.why = s, 0, nil
	late := u.again && !u.reading // it changed while it was read
	u.reading = u.reading || late
	u.mu.Unlock()
	if late {
		defer func() { go u.follow() }()
	}
	if len(u.watches.uris()) > 0 {
		go u.resubscribe(s)
	}
	return s, err
}

// disconnect ends a connection and the requests that wait on it.
func (s *upstreamConn) disconnect() {
	s.ending.Store(true)
	s.mu.Lock()
	cs := s.cs
	s.mu.Unlock()
	if cs != nil {
		go func() { _ = cs.Close() }() // it can wait for a server that does not respond
	}
	s.cut(wire.ErrEnded)
	switch {
	case s.program != nil:
		s.program.End()
		s.said.Await() // its last output says why it exited
		if _, _, complaints := s.program.Pipes(); complaints != nil {
			if c, ok := complaints.(io.Closer); ok {
				_ = c.Close()
			}
		}
	case s.far != nil:
		s.far.Leave()
	}
}

// withStderr returns why a server is not available, with the server's own last
// output.
func (u *upstream) withStderr(ctx context.Context, s *upstreamConn, err error) error {
	if login := loginOf(err); login != nil {
		return login
	}
	switch cause := context.Cause(ctx); {
	case cause != nil:
		err = cause
	case s.far.Refused() != nil:
		err = s.far.Refused()
	case s.program != nil && wire.PipeEnded(err):
		err = errors.New("it ended before it answered")
	}
	return fmt.Errorf("%w%s%s", err, s.lastWords(), u.box.Confines())
}

// implementation returns the name and version that servers get of the gateway.
func (g *Gateway) implementation() *sdk.Implementation {
	return &sdk.Implementation{Name: g.opts.Name, Version: g.opts.Version}
}

// introduction returns the same as JSON, for each request of the newest
// revision.
func (g *Gateway) introduction() json.RawMessage {
	g.introduced.Do(func() {
		raw, err := json.Marshal(g.implementation())
		if err != nil {
			raw = []byte("{}")
		}
		g.intro = raw
	})
	return g.intro
}

// handshake connects with the newest revision of the protocol that both sides
// support.
func (u *upstream) handshake(ctx context.Context, s *upstreamConn, t sdk.Transport) error {
	client := sdk.NewClient(u.g.implementation(), &sdk.ClientOptions{
		Capabilities:               u.asks.Capabilities(),
		MultiRoundTrip:             &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler:     func(context.Context, *sdk.ToolListChangedRequest) { u.changed() },
		PromptListChangedHandler:   func(context.Context, *sdk.PromptListChangedRequest) { u.changed() },
		ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { u.changed() },
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
			if r.Params != nil {
				u.updated(r.Params.URI)
			}
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			s.exchange.Report(r.Params)
		},
	})
	client.AddReceivingMiddleware(panics.Middleware(u.g.log), u.asks.Middleware(&s.exchange))
	client.AddSendingMiddleware(wire.WithoutCache)
	client.AddRoots(u.asks.Roots()...)
	type connected struct {
		cs  *sdk.ClientSession
		err error
	}
	done := make(chan connected, 1)
	go func() {
		cs, err := client.Connect(ctx, t, nil)
		done <- connected{cs, err}
	}()
	select {
	case c := <-done:
		s.mu.Lock()
		s.cs = c.cs
		s.mu.Unlock()
		if c.err == nil && s.ending.Load() { // the connection was closed before it existed
			_ = c.cs.Close()
		}
		return c.err
	case <-ctx.Done():
		go func() {
			if c := <-done; c.err == nil {
				_ = c.cs.Close()
			}
		}()
		return context.Cause(ctx)
	}
}

func (u *upstream) transport(ctx context.Context, s *upstreamConn) (sdk.Transport, program.Process, error) {
	switch {
	case u.cfg.URL != "":
		c := wire.RemoteConfig{URL: u.cfg.URL, Headers: u.cfg.Headers, SSE: u.cfg.SSE, Base: u.g.base.Clone(), Whole: s.whole, Flood: func(why error) {
			s.cut(why)
			s.drain()
		}}
		if !c.SSE {
			c.Auth = u.authorizer()
		}
		var t sdk.Transport
		s.far, t = wire.NewRemoteTransport(c, &s.exchange)
		return t, nil, nil
	case u.box != nil:
		p, err := u.box.Start(ctx)
		return u.pipe(s, p), p, err
	default:
		p, err := program.Start(u.cfg, u.g.opts.Env, u.g.guard, u.g.log)
		return u.pipe(s, p), p, err
	}
}

// pipe returns the transport of a server by command; nil if it did not start.
func (u *upstream) pipe(s *upstreamConn, p program.Process) sdk.Transport {
	if p == nil {
		return nil
	}
	in, out, _ := p.Pipes()
	return wire.NewPipeTransport(in, out, &s.exchange, u.noise(s))
}

// changed reads the definitions again, once for several notifications.
func (u *upstream) changed() {
	u.mu.Lock()
	u.again = true
	begin := !u.reading && u.live != nil
	u.reading = u.reading || begin
	u.mu.Unlock()
	if begin {
		go u.follow()
	}
}

func (u *upstream) follow() {
	for {
		u.mu.Lock()
		s := u.live
		if !u.again || s == nil {
			u.reading = false
			u.mu.Unlock()
			return
		}
		wait := u.fuss.wait(u.g.now(), u.g.opts.MaxBackoff)
		u.mu.Unlock()
		s.waitWhileOpen(wait)
		u.mu.Lock()
		u.again = false
		u.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), u.g.opts.StartTimeout)
		err := u.list(ctx, s)
		if err == nil {
			err = u.g.rebuild()
		}
		cancel()
		if err != nil { // its definitions are unknown
			u.g.log.Warn("what a server declares changed and cannot be read; it is let go", "server", u.cfg.Name, "error", err)
			s.close()
		}
	}
}

// changeBackoff limits how often the gateway reads the definitions of a server
// that keeps reporting changes. The delay grows until the server is quiet for a
// while. The gateway serves no change before an operator accepts it.
type changeBackoff struct {
	last time.Time
	rest time.Duration
}

const shortest = 100 * time.Millisecond

// wait returns the delay before the next read.
func (f *changeBackoff) wait(now time.Time, most time.Duration) time.Duration {
	if f.rest = min(max(2*f.rest, shortest), most); now.Sub(f.last) > most {
		f.rest = 0
	}
	f.last = now.Add(f.rest)
	return f.rest
}

// waitWhileOpen waits, at most while the connection is open.
func (s *upstreamConn) waitWhileOpen(wait time.Duration) {
	if wait <= 0 {
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.gone:
	}
}

// runExclusively makes tools run one at a time from now on.
func (u *upstream) runExclusively(tools []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, name := range tools {
		u.alone[name] = true
	}
}

package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/internal/program"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
	"github.com/remit-dev/remit/mcp/internal/panics"
)

// connect starts the server, or connects to it, and reads its definitions,
// within the start timeout.
func (u *Upstream) connect(ctx context.Context) (*Conn, error) {
	if err := u.Shared.Closed(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, u.Shared.StartTimeout, errors.New("it did not answer in time"))
	defer cancel()
	s := &Conn{stderr: program.NewStderr(), gone: make(chan struct{}), tuning: make(chan struct{}, 1)}
	s.whole, s.cut = context.WithCancelCause(context.WithoutCancel(ctx))
	transport, prog, err := u.transport(ctx, s)
	if err != nil {
		s.cut(wire.ErrEnded)
		return nil, err
	}
	if s.program = prog; prog != nil {
		_, _, complaints := prog.Pipes()
		go s.stderr.Follow(complaints, u.Shared.Log, u.Server.Name)
	}
	u.there.Add(1)
	s.close = sync.OnceFunc(func() {
		defer u.there.Done()
		s.disconnect()
	})
	abort := context.AfterFunc(ctx, s.close) // ends an attempt that hangs
	err = u.handshake(s.whole, s, transport)
	if err == nil {
		u.mu.Lock()
		u.again = false // the list includes the changes until now
		u.mu.Unlock()
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
		if u.Shared.Closed() == nil {
			u.Shared.Log.Warn("a server has gone", "server", u.Server.Name, "said", s.stderr.Tail())
		}
	}()
	err = u.Shared.Changed() // before the connection is published, so that its callers find its tools
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
func (s *Conn) disconnect() {
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
		s.stderr.Await() // its last output says why it exited
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
func (u *Upstream) withStderr(ctx context.Context, s *Conn, err error) error {
	if login := LoginOf(err); login != nil {
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
	return fmt.Errorf("%w%s%s", err, s.lastWords(), u.Sandbox.Confines())
}

// handshake connects with the newest revision of the protocol that both sides
// support.
func (u *Upstream) handshake(ctx context.Context, s *Conn, t sdk.Transport) error {
	client := sdk.NewClient(u.Shared.Identity, &sdk.ClientOptions{
		Capabilities:               u.Requests.Capabilities(),
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
			s.Exchange.Report(r.Params)
		},
	})
	client.AddReceivingMiddleware(panics.Middleware(u.Shared.Log), u.acknowledged, u.Requests.Middleware(&s.Exchange))
	client.AddSendingMiddleware(wire.WithoutCache)
	client.AddRoots(u.Requests.Roots()...)
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

func (u *Upstream) transport(ctx context.Context, s *Conn) (sdk.Transport, program.Process, error) {
	switch {
	case u.Server.URL != "":
		c := wire.RemoteConfig{URL: u.Server.URL, Headers: u.Server.Headers, SSE: u.Server.SSE, Base: u.Shared.Base.Clone(), Whole: s.whole, Flood: func(why error) {
			s.ending.Store(true) // before the requests end, so that no call begins on a connection without any
			s.cut(why)
			s.Drain()
		}}
		if !c.SSE {
			c.Auth = u.authorizer()
		}
		var t sdk.Transport
		s.far, t = wire.NewRemoteTransport(c, &s.Exchange)
		return t, nil, nil
	case u.Sandbox != nil:
		p, err := u.Sandbox.Start(ctx)
		return u.pipe(s, p), p, err
	default:
		p, err := program.Start(u.Server, u.Shared.Env, u.Shared.Guard, u.Shared.Log)
		return u.pipe(s, p), p, err
	}
}

// pipe returns the transport of a server by command; nil if it did not start.
func (u *Upstream) pipe(s *Conn, p program.Process) sdk.Transport {
	if p == nil {
		return nil
	}
	in, out, _ := p.Pipes()
	return wire.NewPipeTransport(in, out, &s.Exchange, u.noise(s))
}

// Bounds on the logged lines of one run that are no messages.
const (
	maxNoise = 20
	maxShown = 200 // bytes of one line
)

// noise logs the lines on a server's standard output that are no messages, such
// as a banner: a bounded number of lines, each cut.
func (u *Upstream) noise(s *Conn) func(line []byte) {
	n := 0
	return func(line []byte) {
		s.stderr.Keep(line)
		s.stderr.Keep([]byte{'\n'})
		switch n++; {
		case n <= maxNoise:
			text := canon.Printable(strings.ToValidUTF8(string(line[:min(len(line), 2*maxShown)]), "\uFFFD"), maxShown)
			u.Shared.Log.Warn("a line of a server's standard output is no message, and is skipped", "server", u.Server.Name, "line", text)
		case n == maxNoise+1:
			u.Shared.Log.Warn("a server goes on to write lines that are no messages; they are skipped, and not logged", "server", u.Server.Name)
		}
	}
}

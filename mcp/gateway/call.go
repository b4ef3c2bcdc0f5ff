package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
	"github.com/remit-dev/remit/mcp/internal/clientctx"
	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/mcp/internal/trace"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// Bounds on the rounds of one call.
const (
	mostRounds = 10 // responses of a server that carry client requests
	mostBusy   = 3  // of them without any request, by which a server says that it is busy
)

// most is the weight of all calls of one server.
const most = 1 << 30

// share returns the weight of a call. It is all of it if the tool sends client
// requests that do not name their call.
func (u *upstream) share(s *upstreamConn, name string) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s.exchange.Apart && (u.alone[name] || u.cfg.Tools[name].Exclusive) {
		return most
	}
	return 1
}

// call calls a tool, and serves the client requests of its server meanwhile. If
// the call returns an error, its effects are unknown.
func (u *upstream) call(ctx context.Context, s *upstreamConn, name string, args json.RawMessage, about callFacts) (wire.Result, error) {
	return u.get(ctx, s, wire.CallTool(name, args), about)
}

// get is like call for any upstream request.
func (u *upstream) get(ctx context.Context, s *upstreamConn, w wire.Request, about callFacts) (wire.Result, error) {
	n := u.share(s, w.Name)
	if err := u.room.Acquire(ctx, n); err != nil {
		return wire.Result{}, context.Cause(ctx)
	}
	defer u.room.Release(n)
	asking, cancel := context.WithCancelCause(ctx)
	s.setLogLevel(ctx, about.log.Level)
	f := &wire.InFlightCall{Tool: w.Name, Client: about.client, Note: about.note, Permit: about.permit, Context: asking}
	end := s.exchange.Begin(f, about.log, about.id, about.report)
	defer end(ctx)
	defer cancel(errEnded)
	var r wire.Round
	busy := 0
	for range mostRounds {
		a, err := u.send(ctx, s, f, w, r, about)
		switch {
		case err != nil && ctx.Err() != nil && !errors.Is(err, wire.ErrUnsent):
			s.exchange.Flights.Abandon(f)
			return a, err
		case err != nil || a.Requests == nil:
			s.exchange.Flights.Remove(f)
			return a, err
		}
		if r, err = u.more(ctx, f, a, &busy); err != nil {
			s.exchange.Flights.Remove(f)
			return wire.Result{}, err
		}
		s.exchange.Flights.Again(f)
	}
	s.exchange.Flights.Remove(f)
	return wire.Result{}, fmt.Errorf("server %s wants something of its client (input_required) again and again", u.cfg.Name)
}

var errEnded = errors.New("the call has ended")

// more returns the next request of a call whose server first has requests to
// the client.
func (u *upstream) more(ctx context.Context, f *wire.InFlightCall, a wire.Result, busy *int) (wire.Round, error) {
	next := wire.Round{Repeated: true, State: a.State}
	if len(a.Requests) > 0 {
		said, err := u.asks.Ask(ctx, f, a.Requests)
		if err != nil {
			return next, fmt.Errorf("server %s wants something of its client (input_required) that it does not get: %w", u.cfg.Name, err)
		}
		next.Responses = said
		return next, nil
	}
	if *busy++; *busy > mostBusy {
		return next, fmt.Errorf("server %s is busy (input_required without any)", u.cfg.Name)
	}
	return next, sleep(ctx, time.Duration(*busy)*100*time.Millisecond)
}

// send sends one request of a call.
func (u *upstream) send(ctx context.Context, s *upstreamConn, f *wire.InFlightCall, w wire.Request, r wire.Round, about callFacts) (wire.Result, error) {
	ctx, c := wire.WithResponseSlot(ctx, f)
	r.Meta = sdk.Meta{}
	for key, value := range about.meta {
		r.Meta[key] = value
	}
	if about.report != nil {
		r.Meta[wire.KeyProgressToken] = about.id
	}
	trace.Into(ctx, r.Meta)
	if s.requestsInBand() {
		r.Meta[sdk.MetaKeyProtocolVersion] = s.cs.InitializeResult().ProtocolVersion
		r.Meta[sdk.MetaKeyClientInfo] = u.g.introduction()
		r.Meta[sdk.MetaKeyClientCapabilities] = u.asks.CapabilitiesOf(f)
		if about.log.Level != "" {
			r.Meta[sdk.MetaKeyLogLevel] = about.log.Level
		}
	}
	if len(r.Meta) == 0 {
		r.Meta = nil
	}
	err := s.exchange.Client(s.cs, w).Send(ctx, c, w, r)
	object, refusal := c.Caught()
	switch { // a response counts even if the SDK cannot parse it
	case refusal != nil:
		return wire.Result{}, u.asks.PageRequired(ctx, f, refusal)
	case object != nil:
		return wire.ParseResult(object)
	case err == nil:
		return wire.Result{}, errors.New("the answer is lost")
	case errors.Is(err, wire.ErrUnsent):
		return wire.Result{}, err
	case ctx.Err() != nil:
		return wire.Result{}, context.Cause(ctx)
	}
	if missed := missed(err); missed != nil && !r.Repeated {
		return wire.Result{}, tool.NoEffect(missed) // the server checked only the authorization
	} else if missed != nil {
		return wire.Result{}, missed
	}
	if s.program != nil { // so that the next call does not have to detect the end
		s.drain()
	} else if over := context.Cause(s.whole); over != nil {
		err = over
	}
	return wire.Result{}, fmt.Errorf("server %s has gone while the call was under way: %w%s", u.cfg.Name, err, s.lastWords())
}

// refuse leaves the protocol error of a call for its client. It skips errors
// about revision and headers: they concern the gateway's own connection.
func refuse(ctx context.Context, err error) {
	var refused *wire.ProtocolError
	if errors.As(err, &refused) && refused.Cause.Code != sdk.CodeHeaderMismatch && refused.Cause.Code != sdk.CodeUnsupportedProtocolVersion {
		rawresult.Refuse(ctx, refused.Cause)
	}
}

func (s *upstreamConn) lastWords() string {
	if s.program != nil {
		s.said.Await()
	}
	if words := s.said.Tail(); words != "" {
		return "; it wrote: " + words
	}
	return ""
}

// callFacts holds what the gateway knows about a call.
type callFacts struct {
	id     string
	meta   map[string]any
	report func(done, total float64, message string)
	client clientctx.Client                                       // nil: no client can be asked
	log    clientctx.Log                                          // log of that client
	note   func(ctx context.Context, what any) error              // records a note of the call
	permit func(ctx context.Context, a perm.ResourceAccess) error // evaluates the policy; nil: permits nothing
}

// setLogLevel sets the log level at an older server, for this call and all
// later ones. It does nothing if the server has no logging.
func (s *upstreamConn) setLogLevel(ctx context.Context, level sdk.LoggingLevel) {
	r := s.cs.InitializeResult()
	if level == "" || s.requestsInBand() || r == nil || r.Capabilities == nil || r.Capabilities.Logging == nil {
		return
	}
	select {
	case s.tuning <- struct{}{}:
		defer func() { <-s.tuning }()
	case <-ctx.Done():
		return
	}
	if s.level != "" && !wire.Below(level, s.level) {
		return
	}
	s.level = level
	ctx, cancel := context.WithTimeout(ctx, wire.Patience)
	defer cancel()
	_ = s.cs.SetLoggingLevel(ctx, &sdk.SetLoggingLevelParams{Level: level}) // without it, the server logs at its own level
}

// Bounds on the logged lines of one run that are no messages.
const (
	maxNoise = 20
	maxShown = 200 // bytes of one line
)

// noise logs the lines on a server's standard output that are no messages, such
// as a banner: a bounded number of lines, each cut.
func (u *upstream) noise(s *upstreamConn) func(line []byte) {
	n := 0
	return func(line []byte) {
		s.said.Keep(line)
		s.said.Keep([]byte{'\n'})
		switch n++; {
		case n <= maxNoise:
			text := canon.Printable(strings.ToValidUTF8(string(line[:min(len(line), 2*maxShown)]), "\uFFFD"), maxShown)
			u.g.log.Warn("a line of a server's standard output is no message, and is skipped", "server", u.cfg.Name, "line", text)
		case n == maxNoise+1:
			u.g.log.Warn("a server goes on to write lines that are no messages; they are skipped, and not logged", "server", u.cfg.Name)
		}
	}
}

// sleep waits, unless the context ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

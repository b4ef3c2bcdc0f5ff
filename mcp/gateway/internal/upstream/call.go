package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/internal/definition"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/mcp/internal/trace"
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
func (u *Upstream) share(s *Conn, name string) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s.Exchange.Apart && (u.alone[name] || u.Server.Tools[name].Exclusive) {
		return most
	}
	return 1
}

// Call calls a tool, and serves the client requests of its server meanwhile. If
// the call returns an error, its effects are unknown.
func (u *Upstream) Call(ctx context.Context, s *Conn, name string, args json.RawMessage, about Facts) (wire.Result, error) {
	return u.Do(ctx, s, wire.CallTool(name, args), about)
}

// Do is like call for any upstream request.
func (u *Upstream) Do(ctx context.Context, s *Conn, w wire.Request, about Facts) (wire.Result, error) {
	n := u.share(s, w.Name)
	if err := u.room.Acquire(ctx, n); err != nil {
		return wire.Result{}, context.Cause(ctx)
	}
	defer u.room.Release(n)
	asking, cancel := context.WithCancelCause(ctx)
	s.setLogLevel(ctx, about.log.Level)
	f := &wire.InFlightCall{Tool: w.Name, Client: about.client, Note: about.note, Permit: about.permit, Context: asking}
	end := s.Exchange.Begin(f, about.log, about.id, about.report)
	defer end(ctx)
	defer cancel(errEnded)
	var r wire.Round
	busy := 0
	for range mostRounds {
		a, err := u.send(ctx, s, f, w, r, about)
		switch {
		case err != nil && ctx.Err() != nil && !errors.Is(err, wire.ErrNotSent):
			s.Exchange.Flights.Abandon(f)
			return a, err
		case err != nil || a.Requests == nil:
			s.Exchange.Flights.Remove(f)
			return a, err
		}
		if r, err = u.more(ctx, f, a, &busy); err != nil {
			s.Exchange.Flights.Remove(f)
			return wire.Result{}, err
		}
		s.Exchange.Flights.Again(f)
	}
	s.Exchange.Flights.Remove(f)
	return wire.Result{}, fmt.Errorf("server %s wants something of its client (input_required) again and again", u.Server.Name)
}

var errEnded = errors.New("the call has ended")

// more returns the next request of a call whose server first has requests to
// the client.
func (u *Upstream) more(ctx context.Context, f *wire.InFlightCall, a wire.Result, busy *int) (wire.Round, error) {
	next := wire.Round{Repeated: true, State: a.State}
	if len(a.Requests) > 0 {
		said, err := u.Requests.Ask(ctx, f, a.Requests)
		if err != nil {
			return next, fmt.Errorf("server %s wants something of its client (input_required) that it does not get: %w", u.Server.Name, err)
		}
		next.Responses = said
		return next, nil
	}
	if *busy++; *busy > mostBusy {
		return next, fmt.Errorf("server %s is busy (input_required without any)", u.Server.Name)
	}
	return next, Sleep(ctx, time.Duration(*busy)*100*time.Millisecond)
}

// send sends one request of a call.
func (u *Upstream) send(ctx context.Context, s *Conn, f *wire.InFlightCall, w wire.Request, r wire.Round, about Facts) (wire.Result, error) {
	ctx, c := wire.WithResponseSlot(ctx, f)
	r.Meta = sdk.Meta{}
	for key, value := range about.Meta {
		r.Meta[key] = value
	}
	if about.report != nil {
		r.Meta[wire.KeyProgressToken] = about.id
	}
	trace.Into(ctx, r.Meta)
	if s.requestsInBand() {
		r.Meta[sdk.MetaKeyProtocolVersion] = s.cs.InitializeResult().ProtocolVersion
		r.Meta[sdk.MetaKeyClientInfo] = u.Shared.introduction()
		r.Meta[sdk.MetaKeyClientCapabilities] = u.Requests.CapabilitiesOf(f)
		if about.log.Level != "" {
			r.Meta[sdk.MetaKeyLogLevel] = about.log.Level
		}
	}
	if len(r.Meta) == 0 {
		r.Meta = nil
	}
	err := s.Exchange.Client(s.cs, w).Send(ctx, c, w, r)
	object, refusal := c.Received()
	switch { // a response counts even if the SDK cannot parse it
	case refusal != nil:
		return wire.Result{}, u.Requests.PageRequired(ctx, f, refusal)
	case object != nil:
		return wire.ParseResult(object)
	case err == nil:
		return wire.Result{}, errors.New("the answer is lost")
	case errors.Is(err, wire.ErrNotSent):
		return wire.Result{}, err
	case ctx.Err() != nil:
		return wire.Result{}, context.Cause(ctx)
	}
	if missed := UnreadError(err); missed != nil && !r.Repeated {
		return wire.Result{}, tool.NoEffect(missed) // the server checked only the authorization
	} else if missed != nil {
		return wire.Result{}, missed
	}
	if s.program != nil { // so that the next call does not have to detect the end
		s.Drain()
	} else if over := context.Cause(s.whole); over != nil {
		err = over
	}
	return wire.Result{}, fmt.Errorf("server %s has gone while the call was under way: %w%s", u.Server.Name, err, s.lastWords())
}

// CallReadOnly calls another tool of the server, which the entry declares
// read-only.
func (u *Upstream) CallReadOnly(ctx context.Context, name string, args json.RawMessage) (wire.Result, error) {
	s, err := u.Session(ctx)
	if err != nil {
		return wire.Result{}, err
	}
	if err := u.CheckAccepted(s, name); err != nil {
		return wire.Result{}, err
	}
	a, err := u.Call(ctx, s, name, args, Facts{})
	if err == nil && a.Failed {
		err = fmt.Errorf("server %s says that %s failed: %s", u.Server.Name, name, canon.Printable(a.Text, 1<<10))
	}
	return a, err
}

// CheckAccepted returns an error if a server's definition of a key differs from
// the accepted one.
func (u *Upstream) CheckAccepted(s *Conn, key string) error {
	have, _ := u.Shared.Pins.Server(u.Server.Name)
	pin, ok := have.Tools[key]
	if !ok || have.Identity != u.Declared().Identity || !s.Declares(key, pin.Digest) {
		return fmt.Errorf("%s of server %s is not there as it was accepted", definition.Describe(key), u.Server.Name)
	}
	return nil
}

// LeaveProtocolError leaves the protocol error of a call for its client. It
// skips errors about revision and headers: they concern the gateway's own
// connection.
func LeaveProtocolError(ctx context.Context, err error) {
	var refused *wire.ProtocolError
	if errors.As(err, &refused) && refused.Cause.Code != sdk.CodeHeaderMismatch && refused.Cause.Code != sdk.CodeUnsupportedProtocolVersion {
		rawresult.Refuse(ctx, refused.Cause)
	}
}

// Sleep waits, unless the context ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

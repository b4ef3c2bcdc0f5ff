package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	wire "github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/internal/clientctx"
	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/mcp/internal/trace"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// upstreamResult is the response of an upstream to a call.
type upstreamResult struct {
	object json.RawMessage
	text   string
	failed bool // the response has isError

	wants sdk.InputRequestMap // requests to the client, before the call continues; nil: the call has ended
	state string              // to send back with the responses of the client
}

// most is the weight of all calls of one server.
const most = 1 << 30

// share returns the weight of a call. It is all of it if the tool sends client
// requests that do not name their call.
func (u *upstream) share(s *upstreamConn, name string) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s.apart && (u.alone[name] || u.cfg.Tools[name].Exclusive) {
		return most
	}
	return 1
}

// call calls a tool, and serves the client requests of its server meanwhile. If
// the call returns an error, its effects are unknown.
func (u *upstream) call(ctx context.Context, s *upstreamConn, name string, args json.RawMessage, about callFacts) (upstreamResult, error) {
	return u.get(ctx, s, callRequest(name, args), about)
}

// get is like call for any upstream request.
func (u *upstream) get(ctx context.Context, s *upstreamConn, w upstreamRequest, about callFacts) (upstreamResult, error) {
	n := u.share(s, w.name)
	if err := u.room.Acquire(ctx, n); err != nil {
		return upstreamResult{}, context.Cause(ctx)
	}
	defer u.room.Release(n)
	reported, end := s.reporting(about)
	defer end()
	asking, cancel := context.WithCancelCause(ctx)
	s.setLogLevel(ctx, about.log.Level)
	f := &inFlightCall{tool: w.name, client: about.client, note: about.note, permit: about.permit, ctx: asking, reports: reported, turn: make(chan struct{}, 1), heard: newLogRelay(about.log)}
	s.flights.begin(f)
	defer f.heard.end(ctx)
	defer f.asking.Wait()
	defer cancel(errEnded)
	var r requestRound
	busy := 0
	for range mostRounds {
		a, err := u.send(ctx, s, f, w, r, about)
		switch {
		case err != nil && ctx.Err() != nil && !errors.Is(err, errUnsent):
			s.flights.abandon(f)
			return a, err
		case err != nil || a.wants == nil:
			s.flights.remove(f)
			return a, err
		}
		if r, err = u.more(ctx, f, a, &busy); err != nil {
			s.flights.remove(f)
			return upstreamResult{}, err
		}
		s.flights.again(f)
	}
	s.flights.remove(f)
	return upstreamResult{}, fmt.Errorf("server %s wants something of its client (input_required) again and again", u.cfg.Name)
}

var errEnded = errors.New("the call has ended")

// more returns the next request of a call whose server first has requests to
// the client.
func (u *upstream) more(ctx context.Context, f *inFlightCall, a upstreamResult, busy *int) (requestRound, error) {
	next := requestRound{again: true, state: a.state}
	if len(a.wants) > 0 {
		said, err := u.ask(ctx, f, a.wants)
		if err != nil {
			return next, fmt.Errorf("server %s wants something of its client (input_required) that it does not get: %w", u.cfg.Name, err)
		}
		next.said = said
		return next, nil
	}
	if *busy++; *busy > mostBusy {
		return next, fmt.Errorf("server %s is busy (input_required without any)", u.cfg.Name)
	}
	return next, sleep(ctx, time.Duration(*busy)*100*time.Millisecond)
}

// send sends one request of a call.
func (u *upstream) send(ctx context.Context, s *upstreamConn, f *inFlightCall, w upstreamRequest, r requestRound, about callFacts) (upstreamResult, error) {
	ctx, c := withResponseSlot(ctx)
	c.of = f
	r.meta = sdk.Meta{}
	for key, value := range about.meta {
		r.meta[key] = value
	}
	if about.report != nil {
		r.meta[metaProgress] = about.id
	}
	trace.Into(ctx, r.meta)
	if s.requestsInBand() {
		r.meta[sdk.MetaKeyProtocolVersion] = s.cs.InitializeResult().ProtocolVersion
		r.meta[sdk.MetaKeyClientInfo] = u.g.introduction()
		r.meta[sdk.MetaKeyClientCapabilities] = u.of(f)
		if about.log.Level != "" {
			r.meta[sdk.MetaKeyLogLevel] = about.log.Level
		}
	}
	if len(r.meta) == 0 {
		r.meta = nil
	}
	err := w.ask(ctx, s, c, r)
	object, refusal := c.caught()
	switch { // a response counts even if the SDK cannot parse it
	case refusal != nil:
		return upstreamResult{}, u.required(ctx, f, refusal)
	case object != nil:
		return read(object)
	case err == nil:
		return upstreamResult{}, errors.New("the answer is lost")
	case errors.Is(err, errUnsent):
		return upstreamResult{}, err
	case ctx.Err() != nil:
		return upstreamResult{}, context.Cause(ctx)
	}
	if missed := missed(err); missed != nil && !r.again {
		return upstreamResult{}, tool.NoEffect(missed) // the server checked only the authorization
	} else if missed != nil {
		return upstreamResult{}, missed
	}
	if s.program != nil { // so that the next call does not have to detect the end
		s.drain()
	} else if over := context.Cause(s.whole); over != nil {
		err = over
	}
	return upstreamResult{}, fmt.Errorf("server %s has gone while the call was under way: %w%s", u.cfg.Name, err, s.lastWords())
}

// upstreamError is a protocol error that an upstream responded with.
type upstreamError struct {
	server string
	said   *jsonrpc.Error
}

func (e *upstreamError) Error() string {
	return fmt.Sprintf("server %s answers with an error of the protocol: %s", e.server, canon.Printable(e.said.Message, 4<<10))
}

// refuse leaves the protocol error of a call for its client. It skips errors
// about revision and headers: they concern the gateway's own connection.
func refuse(ctx context.Context, err error) {
	var refused *upstreamError
	if errors.As(err, &refused) && refused.said.Code != sdk.CodeHeaderMismatch && refused.said.Code != sdk.CodeUnsupportedProtocolVersion {
		rawresult.Refuse(ctx, refused.said)
	}
}

func (s *upstreamConn) lastWords() string {
	if s.program != nil {
		s.said.await()
	}
	if words := s.said.tail(); words != "" {
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

// read parses a response.
func read(object json.RawMessage) (upstreamResult, error) {
	var r struct {
		Type    string `json:"resultType"`
		IsError bool   `json:"isError"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Structured json.RawMessage     `json:"structuredContent"`
		Wants      sdk.InputRequestMap `json:"inputRequests"`
		State      string              `json:"requestState"`
	}
	v, err := canon.Parse(object, canon.DefaultLimits())
	if err == nil && v.Kind() == canon.Object {
		err = wire.Unmarshal(v.Canonical(), &r)
	} else if err == nil {
		err = errors.New("it is no object")
	}
	if err != nil {
		return upstreamResult{}, fmt.Errorf("the answer of the server is not valid: %w", err)
	}
	switch r.Type {
	case "", "complete":
	case "input_required":
		if r.Wants == nil {
			r.Wants = sdk.InputRequestMap{}
		}
		return upstreamResult{object: object, wants: r.Wants, state: r.State}, nil
	default:
		return upstreamResult{}, fmt.Errorf("the server wants something of its client (%s) that the gateway cannot give", canon.Printable(r.Type, 64))
	}
	a := upstreamResult{object: object, text: textOf(v), failed: r.IsError}
	if a.text == "" && len(r.Content) == 0 {
		a.text = string(r.Structured)
	}
	return a, nil
}

// textOf returns the text of a response for the model: the texts of a tool
// result or a resource, or of the messages of a prompt. Other content has no
// text.
func textOf(object canon.Value) string {
	var texts []string
	read := func(block canon.Value) {
		if text, _ := block.Get("text"); text.Kind() == canon.String && text.Text() != "" {
			texts = append(texts, text.Text())
		}
	}
	for _, name := range []string{"content", "contents", "messages"} {
		list, _ := object.Get(name)
		for _, e := range list.Elements() {
			if name == "messages" {
				e, _ = e.Get("content")
			}
			read(e)
		}
	}
	return strings.Join(texts, "\n")
}

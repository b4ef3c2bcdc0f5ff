package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/internal/ask"
	"github.com/remit-dev/remit/mcp/internal/raw"
	"github.com/remit-dev/remit/mcp/internal/trace"
)

// answer is what a server said to a call.
type answer struct {
	object json.RawMessage
	text   string
	failed bool // it says isError

	wants sdk.InputRequestMap // of its client, before it goes on; nil: the call has ended
	state string              // that comes back with what it wants
}

// most is all of the room that there is for calls of one server.
const most = 1 << 30

// share is how much room a call takes: all of it, where it asks its client in a way that says not for which call.
func (u *upstream) share(s *session, name string) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s.apart && (u.alone[name] || u.cfg.Tools[name].Alone) {
		return most
	}
	return 1
}

// call calls a tool, and answers what its server wants of the client meanwhile. What a call did that ends with an error nobody
// can tell.
func (u *upstream) call(ctx context.Context, s *session, name string, args json.RawMessage, about callFacts) (answer, error) {
	n := u.share(s, name)
	if err := u.room.Acquire(ctx, n); err != nil {
		return answer{}, context.Cause(ctx)
	}
	defer u.room.Release(n)
	defer s.reporting(about)()
	asking, cancel := context.WithCancelCause(ctx)
	f := &flight{tool: name, client: about.client, note: about.note, ctx: asking, turn: make(chan struct{}, 1)}
	s.flights.begin(f)
	defer f.asking.Wait()
	defer cancel(errEnded)
	p := &sdk.CallToolParams{Name: name, Arguments: args}
	busy := 0
	for range mostRounds {
		a, err := u.send(ctx, s, f, p, about)
		switch {
		case err != nil && ctx.Err() != nil:
			s.flights.giveUp(f)
			return a, err
		case err != nil || a.wants == nil:
			s.flights.landed(f)
			return a, err
		}
		if p, err = u.more(ctx, f, p, a, &busy); err != nil {
			return answer{}, err
		}
	}
	return answer{}, fmt.Errorf("server %s wants something of its client (input_required) again and again", u.cfg.Name)
}

var errEnded = errors.New("the call has ended")

// more is the next request of a call whose server wants something first.
func (u *upstream) more(ctx context.Context, f *flight, p *sdk.CallToolParams, a answer, busy *int) (*sdk.CallToolParams, error) {
	next := &sdk.CallToolParams{Name: p.Name, Arguments: p.Arguments, RequestState: a.state}
	if len(a.wants) > 0 {
		said, err := u.ask(ctx, f, a.wants)
		if err != nil {
			return nil, fmt.Errorf("server %s wants something of its client (input_required) that it does not get: %w", u.cfg.Name, err)
		}
		next.InputResponses = said
		return next, nil
	}
	if *busy++; *busy > mostBusy {
		return nil, fmt.Errorf("server %s is busy (input_required without any)", u.cfg.Name)
	}
	return next, sleep(ctx, time.Duration(*busy)*100*time.Millisecond)
}

// reporting hands on what is reported of a call until it has ended.
func (s *session) reporting(about callFacts) (end func()) {
	if about.report == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress[about.id] = about.report
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.progress, about.id)
	}
}

// send sends one request of a call.
func (u *upstream) send(ctx context.Context, s *session, f *flight, p *sdk.CallToolParams, about callFacts) (answer, error) {
	ctx, c := catching(ctx)
	c.of = f
	p.Meta = sdk.Meta{}
	for key, value := range about.meta {
		p.Meta[key] = value
	}
	if about.report != nil {
		p.SetProgressToken(about.id)
	}
	trace.Into(ctx, p.Meta)
	if s.within() {
		p.Meta[sdk.MetaKeyClientCapabilities] = u.of(f)
	}
	if len(p.Meta) == 0 {
		p.Meta = nil
	}
	_, err := s.cs.CallTool(ctx, p)
	object, refusal := c.caught()
	switch { // if it answered, it did, though the SDK may not know all of the answer
	case refusal != nil:
		return answer{}, &refusedError{u.cfg.Name, refusal}
	case object != nil:
		return read(object)
	case err == nil:
		return answer{}, errors.New("the answer is lost")
	case ctx.Err() != nil:
		return answer{}, context.Cause(ctx)
	}
	if s.program != nil { // the next call does not wait for anybody to notice
		s.ending.Store(true)
		go s.close()
	}
	return answer{}, fmt.Errorf("server %s has gone while the call was under way: %w%s", u.cfg.Name, err, s.lastWords())
}

// refusedError is an error of the protocol that a server answered with.
type refusedError struct {
	server string
	said   *jsonrpc.Error
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("server %s answers with an error of the protocol: %s", e.server, canon.Printable(e.said.Message, 4<<10))
}

// refuse leaves the error of the protocol that a call ended with for its client. What it says of the revision or the headers
// is about the gateway's own connection, which is none of the client's.
func refuse(ctx context.Context, err error) {
	var refused *refusedError
	if errors.As(err, &refused) && refused.said.Code != sdk.CodeHeaderMismatch && refused.said.Code != sdk.CodeUnsupportedProtocolVersion {
		raw.Refuse(ctx, refused.said)
	}
}

func (s *session) lastWords() string {
	if s.program != nil {
		s.said.await()
	}
	if words := s.said.words(); words != "" {
		return "; it wrote: " + words
	}
	return ""
}

// callFacts are what goes along with a call.
type callFacts struct {
	id     string
	meta   map[string]any
	report func(done, total float64, message string)
	client ask.Client                                // nil: there is nobody to ask
	note   func(ctx context.Context, what any) error // of the call
}

// read takes an answer apart.
func read(object json.RawMessage) (answer, error) {
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
		err = json.Unmarshal(v.Canonical(), &r)
	} else if err == nil {
		err = errors.New("it is no object")
	}
	if err != nil {
		return answer{}, fmt.Errorf("the answer of the server is not valid: %w", err)
	}
	switch r.Type {
	case "", "complete":
	case "input_required":
		if r.Wants == nil {
			r.Wants = sdk.InputRequestMap{}
		}
		return answer{object: object, wants: r.Wants, state: r.State}, nil
	default:
		return answer{}, fmt.Errorf("the server wants something of its client (%s) that the gateway cannot give", canon.Printable(r.Type, 64))
	}
	var texts []string
	for _, c := range r.Content {
		if c.Text != "" {
			texts = append(texts, c.Text)
		}
	}
	a := answer{object: object, text: strings.Join(texts, "\n"), failed: r.IsError}
	if a.text == "" && len(r.Content) == 0 {
		a.text = string(r.Structured)
	}
	return a, nil
}

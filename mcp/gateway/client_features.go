package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
	"github.com/remit-dev/remit/tool"
)

// Bounds on the client requests of a server.
const (
	mostAsked  = 32 // client requests of one call
	mostRounds = 10 // responses of a server to one call that carry client requests
	mostBusy   = 3  // of them without any request, by which a server says that it is busy
)

// noteAsked is the key of the note in which the journal records the client
// requests of a call.
const noteAsked = "asked"

// can returns the client capabilities that a server gets. One session of an
// older server serves all clients, so it gets what some client can support. A
// server that asks within calls gets the capabilities of each call's client.
func (u *upstream) can() *sdk.ClientCapabilities {
	c := &sdk.ClientCapabilities{}
	if u.may(config.Elicitation) {
		c.Elicitation = &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}
	}
	if u.may(config.Sampling) {
		c.Sampling = &sdk.SamplingCapabilities{Tools: &sdk.SamplingToolsCapabilities{}}
	}
	if len(u.cfg.Roots) > 0 || u.may(config.Roots) {
		c.RootsV2 = &sdk.RootCapabilities{}
	}
	return c
}

// may reports whether the configuration lets a server use a client feature. By
// default it can ask the user, who sees the name of the server and can decline.
// By default it cannot ask the model, which others pay for and which does not
// see the name.
func (u *upstream) may(a config.ClientFeature) bool {
	if u.cfg.ClientFeatures == nil {
		return a == config.Elicitation
	}
	return slices.Contains(u.cfg.ClientFeatures, a)
}

// MayRequestClient reports whether the server of a tool can send the client a
// request that the client supports. It is true for a tool of no server.
func (g *Gateway) MayRequestClient(t tool.Tool, can *sdk.ClientCapabilities) bool {
	return g.mayAsk(t.Name(), can)
}

func (g *Gateway) mayAsk(name string, can *sdk.ClientCapabilities) bool {
	u, ok := g.seen.Load().of[name]
	return !ok || u.may(config.Elicitation) && can.Elicitation != nil || u.may(config.Sampling) && can.Sampling != nil || u.may(config.Roots) && can.RootsV2 != nil
}

// of returns the client capabilities for one call, as the gateway sends them.
func (u *upstream) of(f *wire.InFlightCall) map[string]any {
	c := map[string]any{}
	modes := map[string]any{}
	for _, mode := range []string{modeForm, modeURL} {
		if u.elicits(f, mode) {
			modes[mode] = map[string]any{}
		}
	}
	if len(modes) > 0 {
		c["elicitation"] = modes
	}
	if u.samples(f) {
		with := map[string]any{}
		if f.Client.Capabilities().Sampling.Tools != nil {
			with["tools"] = map[string]any{}
		}
		c["sampling"] = with
	}
	if len(u.cfg.Roots) > 0 || u.hasRoots(f) {
		c["roots"] = map[string]any{}
	}
	return c
}

// caps returns the capabilities of the client of a call.
func caps(f *wire.InFlightCall) *sdk.ClientCapabilities {
	if f.Client == nil || f.Client.Capabilities() == nil {
		return &sdk.ClientCapabilities{}
	}
	return f.Client.Capabilities()
}

func (u *upstream) samples(f *wire.InFlightCall) bool {
	return u.may(config.Sampling) && caps(f).Sampling != nil
}

func (u *upstream) hasRoots(f *wire.InFlightCall) bool {
	return u.may(config.Roots) && len(u.cfg.Roots) == 0 && caps(f).RootsV2 != nil
}

func (u *upstream) elicits(f *wire.InFlightCall, mode string) bool {
	c := caps(f).Elicitation
	if c == nil || !u.may(config.Elicitation) {
		return false
	}
	if mode == modeURL {
		return c.URL != nil
	}
	return c.Form != nil || c.URL == nil
}

// roots returns the folders that a server can list: those that its
// configuration grants, whatever the client has.
func (u *upstream) roots() (all []*sdk.Root) {
	for _, name := range u.cfg.Roots {
		link := url.URL{Scheme: "file", Path: filepath.ToSlash(u.g.opts.Roots[name])}
		all = append(all, &sdk.Root{Name: name, URI: link.String()})
	}
	return all
}

// receive serves the client requests of a server during a call.
func (u *upstream) receive(s *upstreamConn) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			switch r := r.(type) {
			case *sdk.ElicitRequest:
				if r.Params == nil {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "an elicitation says what it asks"}
				}
				return asked[*sdk.ElicitResult](ctx, u, s, r.Params)
			case *sdk.CreateMessageWithToolsRequest:
				return asked[*sdk.CreateMessageWithToolsResult](ctx, u, s, r.Params)
			case *sdk.ElicitationCompleteNotificationRequest:
				return nil, nil // no handler waits for it, and the SDK requires content
			case *sdk.ClientRequest[*sdk.CompleteParams]:
				return nil, cannot(method) // the SDK would ping the server in turn
			case *sdk.ListRootsRequest:
				switch {
				case u.may(config.Roots):
					return asked[*sdk.ListRootsResult](ctx, u, s, cmp.Or(r.Params, &sdk.ListRootsParams{}))
				case len(u.cfg.Roots) == 0:
					return nil, cannot("roots")
				}
			}
			return next(ctx, method, r)
		}
	}
}

type input interface {
	sdk.InputRequest
	sdk.Params
}

type output interface {
	comparable
	sdk.InputResponse
	sdk.Result
}

// onlyOne is the key of a single client request.
const onlyOne = "asked"

// asked asks the client of the one call that a server request can belong to.
func asked[R output](ctx context.Context, u *upstream, s *upstreamConn, p input) (sdk.Result, error) {
	meta := p.GetMeta()
	id, _ := meta[wire.KeyCall].(string)
	delete(meta, wire.KeyCall)
	f, leave, ok := s.exchange.Flights.Enter(id)
	if !ok {
		return nil, u.unattributedReason(s)
	}
	defer leave()
	asking, cancel := context.WithCancelCause(f.Context)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(errors.New("the server wants no answer any more")) })()
	all, err := u.ask(asking, f, sdk.InputRequestMap{onlyOne: p})
	var said *jsonrpc.Error
	var denied *deniedError
	switch {
	case errors.As(err, &denied): // the server does not learn why
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the client may not be asked for " + denied.what}
	case errors.As(err, &said):
		return nil, said
	case err != nil:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	var none R
	answer, ok := all[onlyOne].(R)
	if !ok || answer == none {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the client answered with something else"}
	}
	return answer, nil
}

var errMany = fmt.Errorf("the server asked more than %d times in one call", mostAsked)

// unattributedReason returns why the gateway cannot send a request to a client.
// From then on, the gateway calls the tools that may have asked one at a time.
func (u *upstream) unattributedReason(s *upstreamConn) error {
	tools, lost := s.exchange.Flights.Tools()
	why := "no call is under way that this is for"
	switch {
	case lost:
		why = "a call was given up before it was answered, and nobody can tell for which one this is; the server would have to be started again"
	case len(tools) > 1:
		u.mu.Lock()
		for _, name := range tools {
			u.alone[name] = true
		}
		u.mu.Unlock()
		why = fmt.Sprintf("several calls are under way (%s), and nobody can tell for which one this is; they are made one at a time from now on", printable(tools))
	}
	u.g.log.Warn("what a server asks its client is asked of nobody", "server", u.cfg.Name, "why", why)
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: why}
}

// ask asks the client of a call, and records that it did.
func (u *upstream) ask(ctx context.Context, f *wire.InFlightCall, what sdk.InputRequestMap) (sdk.InputResponseMap, error) {
	end, err := f.Serialize(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	forward, out := sdk.InputRequestMap{}, sdk.InputResponseMap{}
	first := len(f.Records)
	for _, key := range slices.Sorted(maps.Keys(what)) {
		switch p := what[key].(type) {
		case *sdk.ListRootsParams:
			switch {
			case len(u.cfg.Roots) > 0:
				out[key] = &sdk.ListRootsResult{Roots: u.roots()}
			case u.hasRoots(f):
				if err := u.decide(ctx, f, wire.MethodRoots, config.Roots, "list"); err != nil {
					return nil, err
				}
				forward[key] = p
				f.Records = append(f.Records, wire.ClientRequestRecord{Method: wire.MethodRoots})
			default:
				return nil, cannot("roots")
			}
		case *sdk.ElicitParams:
			q, err := u.elicitation(ctx, f, p)
			if err != nil {
				return nil, err
			}
			forward[key] = q
			f.Records = append(f.Records, wire.ClientRequestRecord{Method: wire.MethodElicit})
		case *sdk.CreateMessageWithToolsParams:
			q, err := u.sampling(ctx, f, p)
			if err != nil {
				return nil, err
			}
			forward[key] = q
			f.Records = append(f.Records, wire.ClientRequestRecord{Method: wire.MethodSample})
		default:
			return nil, cannot("that")
		}
	}
	switch {
	case len(forward) == 0:
		return out, nil
	case len(f.Records) > mostAsked:
		return nil, errMany
	}
	if err := f.Note(ctx, f.Records); err != nil {
		return nil, fmt.Errorf("what is asked cannot be recorded: %w", err)
	}
	said, err := f.Client.Request(ctx, forward)
	if err != nil {
		return nil, err
	}
	for i, key := range slices.Sorted(maps.Keys(forward)) {
		answer, words := answered(forward[key], said[key])
		if answer == nil {
			return nil, fmt.Errorf("the client did not answer what the server asked")
		}
		out[key], f.Records[first+i].Answer = answer, words
	}
	if err := f.Note(ctx, f.Records); err != nil {
		return nil, fmt.Errorf("what was answered cannot be recorded: %w", err)
	}
	return out, nil
}

func cannot(what string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the client does not support " + what}
}

// answered returns a response if it matches the request, and what the journal
// records of it.
func answered(q sdk.InputRequest, a sdk.InputResponse) (sdk.InputResponse, string) {
	switch q.(type) {
	case *sdk.ElicitParams:
		if a == nil {
			return &sdk.ElicitResult{Action: "cancel"}, "cancel"
		}
		if r, ok := a.(*sdk.ElicitResult); ok {
			return r, canon.Printable(r.Action, 16)
		}
	case *sdk.CreateMessageWithToolsParams:
		if r, ok := a.(*sdk.CreateMessageWithToolsResult); ok {
			return r, "given"
		}
	case *sdk.ListRootsParams:
		if r, ok := a.(*sdk.ListRootsResult); ok {
			return r, "given"
		}
	}
	return nil, ""
}

// signed returns an elicitation with the name of the server: the client sees
// one server, and the user must know which one asks.
func (u *upstream) signed(p *sdk.ElicitParams, mode string) *sdk.ElicitParams {
	signed := *p
	signed.Mode, signed.Message = mode, fmt.Sprintf("Server %s asks: %s", u.cfg.Name, p.Message)
	return &signed
}

// alone returns a sampling request without context of the client: for the
// client, all upstreams are one server.
func alone(p *sdk.CreateMessageWithToolsParams) *sdk.CreateMessageWithToolsParams {
	if p.IncludeContext == "" {
		return p
	}
	only := *p
	only.IncludeContext = "none"
	return &only
}

func printable(names []string) string { return canon.Printable(strings.Join(names, ", "), 256) }

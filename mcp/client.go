package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/mcp/internal/clientctx"
	"github.com/remit-dev/remit/mcp/internal/rawresult"
)

// Client is the MCP client that called a tool. The tool can send it requests
// during the call.
type Client struct{ c *call }

type clientKey struct{}

// ClientOf returns the client whose call a context belongs to: the context that
// a tool's code gets. It returns false for a call that no client of a Server
// made.
func ClientOf(ctx context.Context) (Client, bool) {
	c, ok := ctx.Value(clientKey{}).(*call)
	return Client{c}, ok
}

// Capabilities returns the capabilities that the client reports. The caller
// must not change them.
func (cl Client) Capabilities() *sdk.ClientCapabilities {
	if cl.c == nil || cl.c.caps == nil {
		return &sdk.ClientCapabilities{}
	}
	return cl.c.caps
}

// mostRepeated bounds how often the server repeats a request that the client
// did not respond to.
const mostRepeated = 8

// Request sends the client all requests of a map at once, and returns its
// responses under the same keys. The kinds are elicitation (*sdk.ElicitParams,
// response *sdk.ElicitResult), sampling (*sdk.CreateMessageWithToolsParams,
// response *sdk.CreateMessageWithToolsResult) and roots (*sdk.ListRootsParams,
// response *sdk.ListRootsResult). The timeout of the call continues meanwhile.
// The content of an elicitation response fits the requested schema; the server
// repeats the request if it does not. If the client lacks a capability, Request
// sends nothing and returns an error; a call that fails with this error gets
// the error response of the protocol. Ctx is the context that the tool got.
func (cl Client) Request(ctx context.Context, what sdk.InputRequestMap) (sdk.InputResponseMap, error) {
	if cl.c == nil {
		return nil, errors.New("mcp: there is no client to ask")
	}
	if err := cl.lacks(ctx, what); err != nil {
		return nil, err
	}
	forms, err := formsOf(what)
	if err != nil {
		return nil, err
	}
	left, answers := maps.Clone(what), sdk.InputResponseMap{}
	for range mostRepeated {
		said, err := clientctx.Of(ctx).Request(ctx, left)
		if err != nil {
			return nil, err
		}
		for key, q := range left {
			if fits(q, said[key], forms[key]) {
				answers[key] = said[key]
				delete(left, key)
			}
		}
		if len(left) == 0 {
			return answers, nil
		}
	}
	return nil, fmt.Errorf("mcp: the client did not answer %q", slices.Sorted(maps.Keys(left)))
}

// lacks returns an error if the client lacks a capability that a request needs.
func (cl Client) lacks(ctx context.Context, what sdk.InputRequestMap) error {
	can, needs := cl.Capabilities(), map[string]any{}
	for key, q := range what {
		switch q := q.(type) {
		case *sdk.ElicitParams:
			if !elicits(can.Elicitation, q.Mode == "url") {
				needs["elicitation"] = lacking(q.Mode == "url")
			}
		case *sdk.CreateMessageWithToolsParams:
			if can.Sampling == nil {
				needs["sampling"] = struct{}{}
			}
		case *sdk.ListRootsParams:
			if can.RootsV2 == nil {
				needs["roots"] = struct{}{}
			}
		default:
			return fmt.Errorf("mcp: %q: a client cannot be asked for %T", key, q)
		}
	}
	if len(needs) == 0 {
		return nil
	}
	data, err := json.Marshal(map[string]any{"requiredCapabilities": needs})
	if err != nil {
		return err
	}
	lacks := &jsonrpc.Error{
		Code: sdk.CodeMissingRequiredClientCapabilities, Data: data,
		Message: fmt.Sprintf("the client does not support %q, which this call needs", slices.Sorted(maps.Keys(needs))),
	}
	if cl.c.revision >= stateless {
		rawresult.Refuse(ctx, lacks)
	}
	return lacks
}

// elicits reports whether a client supports elicitation: by URL, or by form. A
// client that names neither supports forms.
func elicits(can *sdk.ElicitationCapabilities, page bool) bool {
	if can == nil || page {
		return can != nil && can.URL != nil
	}
	return can.Form != nil || can.URL == nil
}

func lacking(page bool) map[string]any {
	if page {
		return map[string]any{"url": struct{}{}}
	}
	return map[string]any{}
}

// formsOf compiles the schemas of the forms.
func formsOf(what sdk.InputRequestMap) (map[string]*schema.Schema, error) {
	forms := map[string]*schema.Schema{}
	for key, q := range what {
		p, ok := q.(*sdk.ElicitParams)
		if !ok || p.RequestedSchema == nil {
			continue
		}
		doc, err := json.Marshal(p.RequestedSchema)
		if err == nil {
			forms[key], err = schema.Compile(doc)
		}
		if err != nil {
			return nil, fmt.Errorf("mcp: the schema of %q: %w", key, err)
		}
	}
	return forms, nil
}

// fits reports whether a response matches its request.
func fits(q sdk.InputRequest, a sdk.InputResponse, form *schema.Schema) bool {
	switch q.(type) {
	case *sdk.ElicitParams:
		r, ok := a.(*sdk.ElicitResult)
		if !ok || r == nil || r.Action != "accept" || form == nil {
			return ok && r != nil
		}
		v, err := canon.From(r.Content)
		return err == nil && form.Validate(v) == nil
	case *sdk.CreateMessageWithToolsParams:
		r, ok := a.(*sdk.CreateMessageWithToolsResult)
		return ok && r != nil
	default:
		r, ok := a.(*sdk.ListRootsResult)
		return ok && r != nil
	}
}

// Log sends the client a log message, if the client wants messages of this
// level. Messages for the operator belong in a log of the server's own.
func (cl Client) Log(p *sdk.LoggingMessageParams) {
	if cl.c != nil && cl.c.logSender != nil {
		cl.c.logSender.say(p)
	}
}

// logSender sends log messages on the request that is served: after each client
// request, a call continues on another request.
type logSender struct {
	mu   sync.Mutex                      // never held across a wait
	send func(*sdk.LoggingMessageParams) // nil: no request is served
}

func (v *logSender) attach(ctx context.Context, req *sdk.CallToolRequest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.send = nil
	if req != nil && req.Session != nil {
		v.send = func(p *sdk.LoggingMessageParams) { _ = req.Session.Log(ctx, p) } // an error means that the client has left
	}
}

func (v *logSender) say(p *sdk.LoggingMessageParams) {
	v.mu.Lock()
	send := v.send
	v.mu.Unlock()
	if send != nil {
		send(p)
	}
}

package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Request is a request to an upstream: a tool call, a resource read, a
// prompt or a completion.
type Request struct {
	Name string                            // name of the tool, or a text that is no tool's name
	call func(r Round) *sdk.CallToolParams // of a tool call; else nil
	send func(ctx context.Context, cs *sdk.ClientSession, r Round) error
}

// Round is one request of an Request: a server can first send
// client requests, and then gets another round with the responses.
type Round struct {
	Meta      sdk.Meta
	Responses sdk.InputResponseMap
	State     string
	Repeated  bool // the server received an earlier round
}

// CallTool returns the request that calls a tool.
func CallTool(name string, args json.RawMessage) Request {
	params := func(r Round) *sdk.CallToolParams {
		return &sdk.CallToolParams{Meta: r.Meta, Name: name, Arguments: args, InputResponses: r.Responses, RequestState: r.State}
	}
	return Request{Name: name, call: params, send: func(ctx context.Context, cs *sdk.ClientSession, r Round) error {
		_, err := cs.CallTool(ctx, params(r))
		return err
	}}
}

// ReadResource returns the request that reads a resource.
func ReadResource(uri string) Request {
	return Request{Name: "resources/read", send: func(ctx context.Context, cs *sdk.ClientSession, r Round) error {
		_, err := cs.ReadResource(ctx, &sdk.ReadResourceParams{Meta: r.Meta, URI: uri, InputResponses: r.Responses, RequestState: r.State})
		return err
	}}
}

// GetPrompt returns the request that gets a prompt.
func GetPrompt(name string, args map[string]string) Request {
	return Request{Name: "prompt:" + name, send: func(ctx context.Context, cs *sdk.ClientSession, r Round) error {
		_, err := cs.GetPrompt(ctx, &sdk.GetPromptParams{Meta: r.Meta, Name: name, Arguments: args, InputResponses: r.Responses, RequestState: r.State})
		return err
	}}
}

// Complete returns the request that completes an argument.
func Complete(p sdk.CompleteParams) Request {
	return Request{Name: "completion/complete", send: func(ctx context.Context, cs *sdk.ClientSession, r Round) error {
		p := p
		p.Meta = r.Meta
		_, err := cs.Complete(ctx, &p)
		return err
	}}
}

const methodCall = "tools/call"

// paramsOf encodes the parameters of a call as the SDK does. It encodes those
// of a first round itself, as encoding/json takes longer and more stack than
// the call has.
func paramsOf(p *sdk.CallToolParams) ([]byte, error) {
	args, ok := p.Arguments.(json.RawMessage)
	if !ok || len(args) == 0 || bytes.ContainsAny(args, "\r\n") || p.InputResponses != nil || p.RequestState != "" {
		return plainJSON(p)
	}
	b := append(make([]byte, 0, len(args)+512), '{')
	if len(p.Meta) > 0 {
		b = append(b, `"_meta":`...)
		for i, key := range slices.Sorted(maps.Keys(p.Meta)) {
			b = append(b, "{,"[min(i, 1)])
			b = appendText(b, key)
			b = append(b, ':')
			switch v := p.Meta[key].(type) {
			case string:
				b = appendText(b, v)
			case json.RawMessage:
				b = append(b, v...)
			default:
				raw, err := plainJSON(v)
				if err != nil {
					return nil, err
				}
				b = append(b, raw...)
			}
		}
		b = append(b, "},"...)
	}
	b = append(b, `"name":`...)
	b = appendText(b, p.Name)
	b = append(b, `,"arguments":`...)
	b = append(b, args...)
	return append(b, '}'), nil
}

// appendText quotes a text, whether or not it is valid UTF-8.
func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // its only error is invalid UTF-8, which it replaces by U+FFFD
	return b
}

// plainJSON encodes JSON as the SDK does, without escapes of <, > and &.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// WithoutCache keeps the SDK from caching responses: the next caller can get
// another one.
func WithoutCache(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		said, err := next(ctx, method, r)
		switch said := said.(type) {
		case *sdk.ListToolsResult:
			said.TTLMs = 0
		case *sdk.ListPromptsResult:
			said.TTLMs = 0
		case *sdk.ListResourcesResult:
			said.TTLMs = 0
		case *sdk.ListResourceTemplatesResult:
			said.TTLMs = 0
		case *sdk.ReadResourceResult:
			said.TTLMs = 0
		}
		return said, err
	}
}

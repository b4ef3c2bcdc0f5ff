package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// upstreamRequest is what is wanted of a server: a call of a tool, what a resource holds, a prompt, or what completes an argument.
type upstreamRequest struct {
	name string                                   // which one it is; a tool's name, or what no tool is named
	call func(r requestRound) *sdk.CallToolParams // of a tool; nil: it is something else
	send func(ctx context.Context, cs *sdk.ClientSession, r requestRound) error
}

// requestRound is one request of a wish: a server may want something of its client first, and is asked again with that.
type requestRound struct {
	meta  sdk.Meta
	said  sdk.InputResponseMap
	state string
	again bool // the server has had a request of this call before
}

func callRequest(name string, args json.RawMessage) upstreamRequest {
	params := func(r requestRound) *sdk.CallToolParams {
		return &sdk.CallToolParams{Meta: r.meta, Name: name, Arguments: args, InputResponses: r.said, RequestState: r.state}
	}
	return upstreamRequest{name: name, call: params, send: func(ctx context.Context, cs *sdk.ClientSession, r requestRound) error {
		_, err := cs.CallTool(ctx, params(r))
		return err
	}}
}

func readRequest(uri string) upstreamRequest {
	return upstreamRequest{name: "resources/read", send: func(ctx context.Context, cs *sdk.ClientSession, r requestRound) error {
		_, err := cs.ReadResource(ctx, &sdk.ReadResourceParams{Meta: r.meta, URI: uri, InputResponses: r.said, RequestState: r.state})
		return err
	}}
}

func promptRequest(name string, args map[string]string) upstreamRequest {
	return upstreamRequest{name: keyPrompt + name, send: func(ctx context.Context, cs *sdk.ClientSession, r requestRound) error {
		_, err := cs.GetPrompt(ctx, &sdk.GetPromptParams{Meta: r.meta, Name: name, Arguments: args, InputResponses: r.said, RequestState: r.state})
		return err
	}}
}

func completionRequest(p sdk.CompleteParams) upstreamRequest {
	return upstreamRequest{name: "completion/complete", send: func(ctx context.Context, cs *sdk.ClientSession, r requestRound) error {
		p := p
		p.Meta = r.meta
		_, err := cs.Complete(ctx, &p)
		return err
	}}
}

// ask sends a request, and returns when the answer is caught. A call goes past the SDK where the connection has a way.
func (w upstreamRequest) ask(ctx context.Context, s *upstreamConn, c *responseSlot, r requestRound) error {
	if w.call == nil || s.tap == nil {
		defer c.of.reports.follow()()
		return w.send(ctx, s.cs, r)
	}
	params, err := paramsOf(w.call(r))
	if err != nil {
		return err
	}
	return s.tap.request(ctx, c, methodCall, params)
}

const methodCall = "tools/call"

// paramsOf writes the parameters of a call as the SDK does. Those of a first request it writes itself: encoding/json takes longer, and
// more stack than a call has by then.
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

// appendText quotes a text, whatever it holds.
func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // the one error is of what is no UTF-8, in whose place there is U+FFFD
	return b
}

// plainJSON writes JSON as the SDK does, which leaves <, > and & as they are.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// withoutCache keeps the SDK from keeping what a server said: the next one who asks may be told something else.
func withoutCache(next sdk.MethodHandler) sdk.MethodHandler {
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

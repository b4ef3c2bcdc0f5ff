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

// wish is what is wanted of a server: a call of a tool, what a resource holds, a prompt, or what completes an argument.
type wish struct {
	name string                            // which one it is; a tool's name, or what no tool is named
	call func(r round) *sdk.CallToolParams // of a tool; nil: it is something else
	send func(ctx context.Context, cs *sdk.ClientSession, r round) error
}

// round is one request of a wish: a server may want something of its client first, and is asked again with that.
type round struct {
	meta  sdk.Meta
	said  sdk.InputResponseMap
	state string
	again bool // the server has had a request of this call before
}

func callOf(name string, args json.RawMessage) wish {
	params := func(r round) *sdk.CallToolParams {
		return &sdk.CallToolParams{Meta: r.meta, Name: name, Arguments: args, InputResponses: r.said, RequestState: r.state}
	}
	return wish{name: name, call: params, send: func(ctx context.Context, cs *sdk.ClientSession, r round) error {
		_, err := cs.CallTool(ctx, params(r))
		return err
	}}
}

func readOf(uri string) wish {
	return wish{name: "resources/read", send: func(ctx context.Context, cs *sdk.ClientSession, r round) error {
		_, err := cs.ReadResource(ctx, &sdk.ReadResourceParams{Meta: r.meta, URI: uri, InputResponses: r.said, RequestState: r.state})
		return err
	}}
}

func promptOf(name string, args map[string]string) wish {
	return wish{name: keyPrompt + name, send: func(ctx context.Context, cs *sdk.ClientSession, r round) error {
		_, err := cs.GetPrompt(ctx, &sdk.GetPromptParams{Meta: r.meta, Name: name, Arguments: args, InputResponses: r.said, RequestState: r.state})
		return err
	}}
}

func completionOf(p sdk.CompleteParams) wish {
	return wish{name: "completion/complete", send: func(ctx context.Context, cs *sdk.ClientSession, r round) error {
		p := p
		p.Meta = r.meta
		_, err := cs.Complete(ctx, &p)
		return err
	}}
}

// ask sends a request, and returns when the answer is caught. A call goes past the SDK where the connection has a way.
func (w wish) ask(ctx context.Context, s *session, c *catch, r round) error {
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

// forgetful keeps the SDK from keeping what a server said: the next one who asks may be told something else.
func forgetful(next sdk.MethodHandler) sdk.MethodHandler {
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

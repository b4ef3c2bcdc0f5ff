// Package genkittools gives the tools of a remit session to Genkit. To use it,
// copy this file.
package genkittools

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core"
	"github.com/firebase/genkit/go/core/api"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/wire"
)

// Toolbox holds the tools of one session for one run of Generate, which gets
// its Options.
type Toolbox struct {
	calls wire.Adapter
	tx    *agent.Txn
	tools []ai.ToolRef

	mu   sync.Mutex                // never held across a wait
	refs map[string]*expectedCalls // of the current turn, by name and input
}

// expectedCalls are the IDs of equal calls.
type expectedCalls struct {
	ids  []string
	next int
}

// New returns a Toolbox with the session's tools. Their calls run in the
// transaction; those of one turn run concurrently, which a transaction
// supports.
func New(ctx context.Context, s *agent.Session, tx *agent.Txn) (*Toolbox, error) {
	shown, err := s.Tools(ctx)
	if err != nil {
		return nil, err
	}
	b := &Toolbox{tx: tx, refs: map[string]*expectedCalls{}}
	if b.calls, err = wire.New(wire.Anthropic, shown...); err != nil { // whose definitions are flat
		return nil, err
	}
	raw, err := b.calls.Definitions()
	if err != nil {
		return nil, err
	}
	var list []definition
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	for _, d := range list {
		b.tools = append(b.tools, newTool(b, d))
	}
	return b, nil
}

// Options returns the tools, and the middleware by which the toolbox learns the
// IDs of the calls.
func (b *Toolbox) Options() []ai.GenerateOption {
	return []ai.GenerateOption{ai.WithTools(b.tools...), ai.WithMiddleware(b.listen)}
}

// listen records the IDs of the calls that a model requests, because Genkit
// does not pass a tool the ID of its call.
func (b *Toolbox) listen(next ai.ModelFunc) ai.ModelFunc {
	return func(ctx context.Context, request *ai.ModelRequest, stream ai.ModelStreamCallback) (*ai.ModelResponse, error) {
		response, err := next(ctx, request, stream)
		if err != nil {
			return nil, err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.refs = map[string]*expectedCalls{}
		for _, asked := range response.ToolRequests() {
			if raw, err := json.Marshal(asked.Input); err == nil && asked.Ref != "" {
				key := asked.Name + " " + plain(raw)
				if b.refs[key] == nil {
					b.refs[key] = &expectedCalls{}
				}
				b.refs[key].ids = append(b.refs[key].ids, asked.Ref)
			}
		}
		return response, nil
	}
}

// id returns the ID of a call of the turn; equal calls take one each, in any
// order.
func (b *Toolbox) id(name string, input json.RawMessage) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := b.refs[name+" "+plain(input)]
	if u == nil {
		return ""
	}
	id := u.ids[u.next]
	u.next = min(u.next+1, len(u.ids)-1)
	return id
}

// plain returns a JSON text as Genkit passes it on.
func plain(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(out)
}

// run executes one call. An error would end the run of Generate, so every
// outcome that is not a success is an object with the one member "error". run
// passes on the model's ID of the call. So a call that is repeated, for example
// after a crash, returns its outcome and has no second effect.
func (b *Toolbox) run(ctx context.Context, name string, input json.RawMessage) any {
	call := b.calls.Call(b.id(name, input), name, input)
	var outcome tool.Outcome
	if call.Problem == nil {
		var opts []agent.CallOption
		if call.ID != "" {
			opts = append(opts, agent.WithCallID(call.ID))
		}
		outcome, _ = b.tx.Invoke(ctx, call.Name, call.Input, opts...) // the outcome contains the error
	}
	text, failed := call.Answer(outcome)
	if failed {
		return map[string]any{"error": text}
	}
	return text
}

type definition struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Schema      map[string]any `json:"input_schema"`
}

// genkitTool is a tool that Generate registers temporarily.
type genkitTool struct {
	ai.Tool
	action action
}

func newTool(b *Toolbox, d definition) genkitTool {
	info := map[string]any{
		"type": api.ActionTypeToolV2, "name": d.Name, "description": d.Description,
		"tool": map[string]any{"multipart": false}, "originalOutputSchema": map[string]any{},
	}
	run := func(ctx context.Context, input string) (*ai.MultipartToolResponse, error) {
		return &ai.MultipartToolResponse{Output: b.run(ctx, d.Name, json.RawMessage(input))}, nil
	}
	return genkitTool{
		Tool: ai.NewTool(d.Name, d.Description, func(tc *ai.ToolContext, in any) (any, error) {
			raw, err := json.Marshal(in)
			if err != nil {
				return nil, err
			}
			return b.run(tc, d.Name, raw), nil
		}, ai.WithInputSchema(d.Schema)),
		action: action{ActionDef: core.NewAction(d.Name, api.ActionTypeToolV2, info, nil, run), schema: d.Schema},
	}
}

// Register implements Genkit's interface.
func (t genkitTool) Register(r api.Registry) {
	r.RegisterAction(api.NewKey(api.ActionTypeToolV2, "", t.Name()), t.action)
}

// action is the tool without Genkit's own validation of its input. That would
// end the run although the model can correct the call, and remit validates each
// call.
type action struct {
	*core.ActionDef[string, *ai.MultipartToolResponse, struct{}]
	schema map[string]any
}

// Desc implements Genkit's interface.
func (a action) Desc() api.ActionDesc {
	d := a.ActionDef.Desc()
	d.InputSchema = a.schema
	return d
}

// RunJSON implements Genkit's interface.
func (a action) RunJSON(ctx context.Context, input json.RawMessage, cb func(context.Context, json.RawMessage) error) (json.RawMessage, error) {
	quoted, err := json.Marshal(string(input))
	if err != nil {
		return nil, err
	}
	return a.ActionDef.RunJSON(ctx, quoted, cb)
}

// Package langchaintools gives the tools of a remit session to an agent of
// langchaingo. To use it, copy this file.
package langchaintools

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/tmc/langchaingo/callbacks"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/tools"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/wire"
)

// Toolbox holds the tools of one session for one run of an agent: Tools are its
// tools, Model(llm) is its model, and the toolbox itself is its callbacks
// handler, by which it learns the IDs of the calls.
type Toolbox struct {
	callbacks.SimpleHandler
	Tools []tools.Tool

	calls    wire.Adapter
	tx       *agent.Txn
	schemas  []llms.Tool
	mu       sync.Mutex // never held across a wait
	expected schema.AgentAction
}

// New returns a Toolbox with the session's tools. Their calls run in the
// transaction.
func New(ctx context.Context, s *agent.Session, tx *agent.Txn) (*Toolbox, error) {
	shown, err := s.Tools(ctx)
	if err != nil {
		return nil, err
	}
	b := &Toolbox{tx: tx}
	if b.calls, err = wire.New(wire.OpenAIChat, shown...); err != nil {
		return nil, err
	}
	raw, err := b.calls.Definitions()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &b.schemas); err != nil {
		return nil, err
	}
	for _, d := range b.schemas {
		b.Tools = append(b.Tools, langchainTool{toolbox: b, function: d.Function})
	}
	return b, nil
}

// Model returns a model that gets the tools with their schemas. The agent for
// functions passes it tools that take one string.
func (b *Toolbox) Model(m llms.Model) llms.Model { return describedTool{Model: m, tools: b.schemas} }

type describedTool struct {
	llms.Model
	tools []llms.Tool
}

// GenerateContent implements langchaingo's interface.
func (m describedTool) GenerateContent(ctx context.Context, history []llms.MessageContent, opts ...llms.CallOption) (*llms.ContentResponse, error) {
	return m.Model.GenerateContent(ctx, history, append(opts, llms.WithFunctions(nil), llms.WithTools(m.tools))...)
}

// HandleAgentAction implements langchaingo's interface. An executor calls it
// right before each call.
func (b *Toolbox) HandleAgentAction(_ context.Context, next schema.AgentAction) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = next
}

// id returns the ID of a call that the executor has announced, once; otherwise
// "".
func (b *Toolbox) id(name, input string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	told := b.expected
	b.expected = schema.AgentAction{}
	if told.Tool != name || told.ToolInput != input {
		return ""
	}
	return told.ToolID
}

type langchainTool struct {
	toolbox  *Toolbox
	function *llms.FunctionDefinition
}

// Name implements langchaingo's interface.
func (t langchainTool) Name() string { return t.function.Name }

// Description implements langchaingo's interface. Agents that write their calls
// as text learn the schema here.
func (t langchainTool) Description() string {
	schema, err := json.Marshal(t.function.Parameters)
	if err != nil {
		return t.function.Description
	}
	return t.function.Description + " Its input is one JSON object of this schema: " + string(schema)
}

// Call implements langchaingo's interface. An error would end the run of the
// agent, so every outcome that is not a success is a text that begins with
// "Error: ". Call passes on the model's ID of the call. So a call that is
// repeated, for example after a crash, returns its outcome and has no second
// effect.
func (t langchainTool) Call(ctx context.Context, input string) (string, error) {
	call := t.toolbox.calls.Call(t.toolbox.id(t.function.Name, input), t.function.Name, json.RawMessage(input))
	var outcome tool.Outcome
	if call.Problem == nil {
		var opts []agent.CallOption
		if call.ID != "" {
			opts = append(opts, agent.WithCallID(call.ID))
		}
		outcome, _ = t.toolbox.tx.Invoke(ctx, call.Name, call.Input, opts...) // the outcome contains the error
	}
	text, failed := call.Answer(outcome)
	if failed {
		text = "Error: " + text
	}
	return text, nil
}

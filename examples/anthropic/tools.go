// Package anthropictools gives the tools of a remit session to the tool runner
// of Anthropic's SDK. To use it, copy this file.
package anthropictools

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/wire"
)

// NewRunner returns a tool runner with the session's tools, whose calls run in
// the transaction.
//
// Every outcome that is not a success is a tool error for the runner, which
// reports it to the model with is_error. Calls of one turn run concurrently,
// which a transaction supports.
func NewRunner(ctx context.Context, client anthropic.Client, s *agent.Session, tx *agent.Txn,
	params anthropic.BetaToolRunnerParams,
) (*anthropic.BetaToolRunner, error) {
	shown, err := s.Tools(ctx)
	if err != nil {
		return nil, err
	}
	box := &toolbox{tx: tx, used: map[string]bool{}}
	if box.calls, err = wire.New(wire.Anthropic, shown...); err != nil {
		return nil, err
	}
	raw, err := box.calls.Definitions()
	if err != nil {
		return nil, err
	}
	var list []definition
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	var tools []anthropic.BetaTool
	for _, d := range list {
		tools = append(tools, anthropicTool{toolbox: box, definition: d})
	}
	runner := client.Beta.Messages.NewToolRunner(tools, params)
	box.current = runner.LastMessage
	return runner, nil
}

// toolbox is shared by the tools of one runner.
type toolbox struct {
	calls   wire.Adapter
	tx      *agent.Txn
	current func() *anthropic.BetaMessage // the current turn

	mu   sync.Mutex // never held across a wait
	used map[string]bool
}

// id returns the ID of a call, which the runner does not pass on: the ID of the
// call in the turn with this name and input. Equal calls take one ID each, in
// any order. If a turn is repeated, equal calls get the outcome of the first.
func (b *toolbox) id(name string, input json.RawMessage) (id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	turn := b.current()
	if turn == nil {
		return ""
	}
	for _, block := range turn.Content {
		if block.Type != "tool_use" || block.Name != name {
			continue
		}
		use := block.AsToolUse()
		if written, err := json.Marshal(use.Input); err != nil || string(written) != string(input) { // as the runner writes it
			continue
		}
		if !b.used[use.ID] {
			b.used[use.ID] = true
			return use.ID
		}
		if id == "" {
			id = use.ID
		}
	}
	return id
}

type definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
}

type anthropicTool struct {
	toolbox *toolbox
	definition
}

// Name implements the runner's interface.
func (t anthropicTool) Name() string { return t.definition.Name }

// Description implements the runner's interface.
func (t anthropicTool) Description() string { return t.definition.Description }

// InputSchema implements the runner's interface.
func (t anthropicTool) InputSchema() anthropic.BetaToolInputSchemaParam {
	return param.Override[anthropic.BetaToolInputSchemaParam](t.Schema)
}

// Execute implements the runner's interface. It passes on the model's ID of the
// call. So a call that is repeated after a crash or a failed request returns
// its outcome and has no second effect.
func (t anthropicTool) Execute(ctx context.Context, input json.RawMessage) ([]anthropic.BetaToolResultBlockParamContentUnion, error) {
	call := t.toolbox.calls.Call(t.toolbox.id(t.definition.Name, input), t.definition.Name, input)
	var outcome tool.Outcome
	if call.Problem == nil {
		var opts []agent.CallOption
		if call.ID != "" {
			opts = append(opts, agent.WithCallID(call.ID))
		}
		outcome, _ = t.toolbox.tx.Invoke(ctx, call.Name, call.Input, opts...) // the outcome contains the error
	}
	if text, failed := call.Answer(outcome); failed {
		return nil, errors.New(text)
	}
	return t.toolbox.content(call, outcome)
}

// content returns the content of a successful result, with its images and
// documents.
func (b *toolbox) content(call wire.Call, outcome tool.Outcome) ([]anthropic.BetaToolResultBlockParamContentUnion, error) {
	messages, err := b.calls.Results([]wire.Call{call}, []tool.Outcome{outcome})
	if err != nil {
		return nil, err
	}
	var message struct {
		Content []struct {
			Content []anthropic.BetaToolResultBlockParamContentUnion `json:"content"`
		} `json:"content"`
	}
	if err := json.Unmarshal(messages[0], &message); err != nil {
		return nil, err
	}
	return message.Content[0].Content, nil
}

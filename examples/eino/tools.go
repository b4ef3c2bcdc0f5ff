// Package einotools gives the tools of a remit session to an agent of eino. To
// use it, copy this file.
package einotools

import (
	"context"
	"encoding/json"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"

	"github.com/remit-dev/remit/agent"
	remit "github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/wire"
)

// Config returns the ToolsConfig of an agent with the session's tools, whose
// calls run in the transaction.
//
// A tool of eino can fail only with an error, which ends the run of the agent.
// So every outcome that is not a success is a text that begins with "Error: ",
// and so is a call of an unknown tool.
//
// Calls of one turn run concurrently, which a transaction supports. Set
// ExecuteSequentially if their order matters.
func Config(ctx context.Context, s *agent.Session, tx *agent.Txn) (compose.ToolsNodeConfig, error) {
	var config compose.ToolsNodeConfig
	shown, err := s.Tools(ctx)
	if err != nil {
		return config, err
	}
	calls, err := wire.New(wire.Anthropic, shown...) // whose definitions are flat
	if err != nil {
		return config, err
	}
	raw, err := calls.Definitions()
	if err != nil {
		return config, err
	}
	var list []struct {
		Name        string            `json:"name"`
		Description string            `json:"description"`
		Schema      jsonschema.Schema `json:"input_schema"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return config, err
	}
	for _, d := range list {
		info := &schema.ToolInfo{Name: d.Name, Desc: d.Description, ParamsOneOf: schema.NewParamsOneOfByJSONSchema(&d.Schema)}
		config.Tools = append(config.Tools, einoTool{info: info, calls: calls, tx: tx})
	}
	config.UnknownToolsHandler = func(ctx context.Context, name, arguments string) (string, error) {
		return einoTool{info: &schema.ToolInfo{Name: name}, calls: calls, tx: tx}.InvokableRun(ctx, arguments)
	}
	return config, nil
}

type einoTool struct {
	info  *schema.ToolInfo
	calls wire.Adapter
	tx    *agent.Txn
}

// Info implements eino's interface.
func (t einoTool) Info(context.Context) (*schema.ToolInfo, error) { return t.info, nil }

// InvokableRun implements eino's interface. It passes on the model's ID of the
// call. So a call that is repeated, for example after a crash, returns its
// outcome and has no second effect.
func (t einoTool) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	call := t.calls.Call(compose.GetToolCallID(ctx), t.info.Name, json.RawMessage(arguments))
	var outcome remit.Outcome
	if call.Problem == nil {
		var opts []agent.CallOption
		if call.ID != "" {
			opts = append(opts, agent.WithCallID(call.ID))
		}
		outcome, _ = t.tx.Invoke(ctx, call.Name, call.Input, opts...) // the outcome contains the error
	}
	text, failed := call.Answer(outcome)
	if failed {
		text = "Error: " + text
	}
	return text, nil
}

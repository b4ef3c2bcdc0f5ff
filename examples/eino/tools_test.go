package einotools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/frameworktest"
)

func TestTheAgentOfEino(t *testing.T) {
	frameworktest.Try(t, frameworktest.Framework{Agent: run, Text: true, Unknown: `there is no tool "file_wrote"`})
}

// run does the same as a program, with a scripted model.
func run(t *testing.T, s *agent.Session, tx *agent.Txn, turns [][]frameworktest.Ask) (frameworktest.Run, error) {
	ctx := t.Context()
	config, err := Config(ctx, s, tx)
	if err != nil {
		return frameworktest.Run{}, err
	}
	m := &script{turns: turns}
	a, err := react.NewAgent(ctx, &react.AgentConfig{ToolCallingModel: m, ToolsConfig: config, MaxStep: 100})
	if err != nil {
		return frameworktest.Run{}, err
	}
	last, err := a.Generate(ctx, []*schema.Message{schema.UserMessage("Do it.")})
	if err == nil {
		require.Equal(t, "That is all.", last.Content)
	}
	return m.ran, err
}

// script is a model that requests the calls of one turn after the other.
type script struct {
	turns [][]frameworktest.Ask
	next  int
	ran   frameworktest.Run
}

// WithTools implements eino's interface; the model learns the tools here.
func (m *script) WithTools(tools []*schema.ToolInfo) (model.ToolCallingChatModel, error) {
	m.ran.Offered = map[string]json.RawMessage{}
	for _, info := range tools {
		told, err := info.ToJSONSchema()
		if err != nil {
			return nil, err
		}
		if m.ran.Offered[info.Name], err = json.Marshal(told); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Generate implements eino's interface.
func (m *script) Generate(_ context.Context, history []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	if m.next > 0 { // the results of the previous turn are at the end
		asked := m.turns[m.next-1]
		var told []frameworktest.ModelMessage
		for i, message := range history[len(history)-len(asked):] {
			if message.Role != schema.Tool || message.ToolCallID != asked[i].ID {
				return nil, fmt.Errorf("not the answer of %s: %v", asked[i].ID, message)
			}
			told = append(told, frameworktest.ModelMessage{ID: message.ToolCallID, Text: message.Content, Failed: strings.HasPrefix(message.Content, "Error: ")})
		}
		m.ran.Received = append(m.ran.Received, told)
	}
	if m.next == len(m.turns) {
		return schema.AssistantMessage("That is all.", nil), nil
	}
	var calls []schema.ToolCall
	for _, ask := range m.turns[m.next] {
		calls = append(calls, schema.ToolCall{ID: ask.ID, Type: "function", Function: schema.FunctionCall{Name: ask.Tool, Arguments: ask.Args}})
	}
	m.next++
	return schema.AssistantMessage("", calls), nil
}

// Stream implements eino's interface.
func (m *script) Stream(ctx context.Context, history []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	message, err := m.Generate(ctx, history, opts...)
	if err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray([]*schema.Message{message}), nil
}

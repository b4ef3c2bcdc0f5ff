package langchaintools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/frameworktest"
)

func TestTheExecutorOfLangchaingo(t *testing.T) {
	frameworktest.Try(t, frameworktest.Framework{Agent: run, Text: true, Unknown: "file_wrote is not a valid tool"})
}

// run does the same as a program, with a scripted model.
func run(t *testing.T, s *agent.Session, tx *agent.Txn, turns [][]frameworktest.Ask) (frameworktest.Run, error) {
	box, err := New(t.Context(), s, tx)
	if err != nil {
		return frameworktest.Run{}, err
	}
	m := &script{turns: turns}
	a := agents.NewOpenAIFunctionsAgent(box.Model(m), box.Tools)
	executor := agents.NewExecutor(a, agents.WithMaxIterations(100), agents.WithCallbacksHandler(box))
	last, err := chains.Run(t.Context(), executor, "Do it.")
	if err == nil {
		require.Equal(t, "That is all.", last)
	}
	return m.ran, err
}

// TestTheDescriptionHoldsTheSchema checks that an agent that writes its calls
// as text gets the schemas in the descriptions, and no IDs.
func TestTheDescriptionHoldsTheSchema(t *testing.T) {
	frameworktest.Session(t, func(s *agent.Session, tx *agent.Txn) {
		box, err := New(t.Context(), s, tx)
		require.NoError(t, err)
		for _, made := range box.Tools {
			if made.Name() == "say" {
				require.Equal(t, `For a test. Its input is one JSON object of this schema: `+
					`{"additionalProperties":false,"properties":{"input":{"type":"string"}},"required":["input"],"type":"object"}`, made.Description())
				text, err := made.Call(t.Context(), `{"input":"hi"}`)
				require.NoError(t, err)
				require.Equal(t, "HI", text)
			}
		}
	})
}

// script is a model that requests the calls of one turn after the other.
type script struct {
	turns [][]frameworktest.Ask
	next  int
	ran   frameworktest.Run
}

// GenerateContent implements langchaingo's interface.
func (m *script) GenerateContent(_ context.Context, history []llms.MessageContent, opts ...llms.CallOption) (*llms.ContentResponse, error) {
	var o llms.CallOptions
	for _, opt := range opts {
		opt(&o)
	}
	if len(o.Functions) != 0 {
		return nil, fmt.Errorf("the model is told of functions beside the tools")
	}
	m.ran.Offered = map[string]json.RawMessage{}
	for _, made := range o.Tools {
		raw, err := json.Marshal(made.Function.Parameters)
		if err != nil {
			return nil, err
		}
		m.ran.Offered[made.Function.Name] = raw
	}
	if m.next > 0 {
		if err := m.readResults(history); err != nil {
			return nil, err
		}
	}
	if m.next == len(m.turns) {
		return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "That is all."}}}, nil
	}
	choice := &llms.ContentChoice{}
	for _, ask := range m.turns[m.next] {
		choice.ToolCalls = append(choice.ToolCalls, llms.ToolCall{
			ID: ask.ID, Type: "function", FunctionCall: &llms.FunctionCall{Name: ask.Tool, Arguments: ask.Args},
		})
	}
	m.next++
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{choice}}, nil
}

// readResults reads the results of the previous turn, which are at the end.
func (m *script) readResults(history []llms.MessageContent) error {
	var told []frameworktest.ModelMessage
	for _, ask := range m.turns[m.next-1] {
		found := false
		for _, message := range history {
			for _, part := range message.Parts {
				if answer, ok := part.(llms.ToolCallResponse); ok && answer.ToolCallID == ask.ID {
					found = true
					told = append(told, frameworktest.ModelMessage{ID: ask.ID, Text: answer.Content, Failed: strings.HasPrefix(answer.Content, "Error: ")})
				}
			}
		}
		if !found {
			return fmt.Errorf("no answer of %s", ask.ID)
		}
	}
	m.ran.Received = append(m.ran.Received, told)
	return nil
}

// Call implements langchaingo's interface.
func (m *script) Call(ctx context.Context, prompt string, opts ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, opts...)
}

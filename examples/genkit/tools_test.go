package genkittools

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/frameworktest"
)

func TestGenerateOfGenkit(t *testing.T) {
	frameworktest.Try(t, frameworktest.Framework{Agent: run, Marks: true})
}

// run does the same as a program, with a scripted model.
func run(t *testing.T, s *agent.Session, tx *agent.Txn, turns [][]frameworktest.Ask) (frameworktest.Run, error) {
	box, err := New(t.Context(), s, tx)
	if err != nil {
		return frameworktest.Run{}, err
	}
	m := &script{turns: turns}
	g := genkit.Init(t.Context())
	model := genkit.DefineModel(g, "test/script", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true}}, m.generate)
	opts := append(box.Options(), ai.WithModel(model), ai.WithPrompt("Do it."), ai.WithMaxTurns(100))
	last, err := genkit.Generate(t.Context(), g, opts...)
	if err == nil {
		require.Equal(t, "That is all.", last.Text())
	}
	return m.ran, err
}

// script is a model that requests the calls of one turn after the other.
type script struct {
	turns [][]frameworktest.Ask
	next  int
	ran   frameworktest.Run
}

func (m *script) generate(_ context.Context, request *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
	m.ran.Offered = map[string]json.RawMessage{}
	for _, d := range request.Tools {
		raw, err := json.Marshal(d.InputSchema)
		if err != nil {
			return nil, err
		}
		m.ran.Offered[d.Name] = raw
	}
	if m.next > 0 {
		var told []frameworktest.ModelMessage
		for _, part := range request.Messages[len(request.Messages)-1].Content {
			told = append(told, modelMessage(part.ToolResponse))
		}
		m.ran.Received = append(m.ran.Received, told)
	}
	if m.next == len(m.turns) {
		return &ai.ModelResponse{Request: request, Message: ai.NewModelTextMessage("That is all.")}, nil
	}
	var parts []*ai.Part
	for _, ask := range m.turns[m.next] {
		var input any
		if err := json.Unmarshal([]byte(ask.Args), &input); err != nil {
			return nil, err
		}
		parts = append(parts, ai.NewToolRequestPart(&ai.ToolRequest{Ref: ask.ID, Name: ask.Tool, Input: input}))
	}
	m.next++
	return &ai.ModelResponse{Request: request, Message: ai.NewModelMessage(parts...)}, nil
}

func modelMessage(r *ai.ToolResponse) frameworktest.ModelMessage {
	if failure, is := r.Output.(map[string]any); is && failure["error"] != nil {
		return frameworktest.ModelMessage{ID: r.Ref, Text: fmt.Sprint(failure["error"]), Failed: true}
	}
	return frameworktest.ModelMessage{ID: r.Ref, Text: fmt.Sprint(r.Output)}
}

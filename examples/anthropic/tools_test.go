package anthropictools

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/frameworktest"
)

func TestTheToolRunnerOfAnthropic(t *testing.T) {
	frameworktest.Try(t, frameworktest.Framework{Agent: run, Marks: true, Unknown: "Tool 'file_wrote' not found"})
}

// TestRepeatedTurnRunsCallsOnce checks that a runner whose
// request failed repeats the calls of the turn, and that each call has one
// effect.
func TestRepeatedTurnRunsCallsOnce(t *testing.T) {
	frameworktest.Session(t, func(s *agent.Session, tx *agent.Txn) {
		m := &script{fail: 2, turns: [][]frameworktest.Ask{{{ID: "call_1", Tool: "count", Args: `{"input":"<x>"}`}}}}
		runner := newRunner(t, m, s, tx)
		_, err := runner.RunToCompletion(t.Context())
		require.ErrorContains(t, err, "overloaded")
		_, err = runner.RunToCompletion(t.Context())
		require.NoError(t, err)
		require.Equal(t, [][]frameworktest.ModelMessage{{{ID: "call_1", Text: "run 1"}}}, m.ran.Received)
	})
}

func run(t *testing.T, s *agent.Session, tx *agent.Txn, turns [][]frameworktest.Ask) (frameworktest.Run, error) {
	m := &script{turns: turns}
	last, err := newRunner(t, m, s, tx).RunToCompletion(t.Context())
	if err == nil {
		require.Equal(t, "That is all.", last.Content[0].Text)
	}
	return m.ran, err
}

// newRunner does the same as a program, with a scripted service.
func newRunner(t *testing.T, m *script, s *agent.Session, tx *agent.Txn) *anthropic.BetaToolRunner {
	t.Helper()
	service := httptest.NewServer(m)
	t.Cleanup(service.Close)
	client := anthropic.NewClient(option.WithBaseURL(service.URL), option.WithAPIKey("none"), option.WithMaxRetries(0))
	var params anthropic.BetaToolRunnerParams
	params.Model, params.MaxTokens = "a-model", 1000
	params.Messages = []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Do it."))}
	runner, err := NewRunner(t.Context(), client, s, tx, params)
	require.NoError(t, err)
	return runner
}

// script is a service whose model requests the calls of one turn after the
// other.
type script struct {
	turns    [][]frameworktest.Ask
	next     int
	requests int
	fail     int // the number of the failing request
	ran      frameworktest.Run
}

type block struct {
	Type    string          `json:"type"`
	ID      string          `json:"id,omitempty"`
	Name    string          `json:"name,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Text    string          `json:"text,omitempty"`
	Use     string          `json:"tool_use_id,omitempty"`
	Failed  bool            `json:"is_error,omitempty"`
	Content []block         `json:"content,omitempty"`
}

// ServeHTTP answers a request for the next turn.
func (m *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if m.requests++; m.requests == m.fail {
		w.WriteHeader(529)
		_, _ = fmt.Fprint(w, `{"type":"error","error":{"type":"overloaded_error","message":"overloaded"}}`)
		return
	}
	var request struct {
		Tools []struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
		Messages []struct {
			Content []block `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.ran.Offered = map[string]json.RawMessage{}
	for _, d := range request.Tools {
		m.ran.Offered[d.Name] = d.Schema
	}
	if m.next > 0 {
		var told []frameworktest.ModelMessage
		for _, b := range request.Messages[len(request.Messages)-1].Content {
			told = append(told, frameworktest.ModelMessage{ID: b.Use, Text: b.Content[0].Text, Failed: b.Failed})
		}
		m.ran.Received = append(m.ran.Received, told)
	}
	content, reason := []block{{Type: "text", Text: "That is all."}}, "end_turn"
	if m.next < len(m.turns) {
		content, reason = nil, "tool_use"
		for _, ask := range m.turns[m.next] {
			content = append(content, block{Type: "tool_use", ID: ask.ID, Name: ask.Tool, Input: json.RawMessage(ask.Args)})
		}
		m.next++
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "a-model", "content": content, "stop_reason": reason,
		"usage": map[string]int{"input_tokens": 1, "output_tokens": 1},
	})
}

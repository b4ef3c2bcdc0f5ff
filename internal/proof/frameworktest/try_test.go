package frameworktest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/wire"
)

// TestCustomLoop checks that a loop without a framework passes.
func TestCustomLoop(t *testing.T) {
	Try(t, Framework{Agent: plain, Text: true, Unknown: `there is no tool "file_wrote"`})
}

func plain(t *testing.T, s *agent.Session, tx *agent.Txn, turns [][]Ask) (r Run, err error) {
	shown, err := s.Tools(t.Context())
	if err != nil {
		return r, err
	}
	a, err := wire.New(wire.OpenAIChat, shown...)
	if err != nil {
		return r, err
	}
	definitions, err := a.Definitions()
	if err != nil {
		return r, err
	}
	var list []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	if err := json.Unmarshal(definitions, &list); err != nil {
		return r, err
	}
	r.Offered = map[string]json.RawMessage{}
	for _, d := range list {
		r.Offered[d.Function.Name] = d.Function.Parameters
	}
	for _, turn := range turns {
		var told []ModelMessage
		for _, ask := range turn {
			c := a.Call(ask.ID, ask.Tool, json.RawMessage(ask.Args))
			var o tool.Outcome
			if c.Problem == nil {
				o, _ = tx.Invoke(t.Context(), c.Name, c.Input, agent.WithCallID(c.ID))
			}
			text, failed := c.Answer(o)
			if failed {
				text = fmt.Sprintf("Error: %s", text)
			}
			told = append(told, ModelMessage{ID: ask.ID, Text: text, Failed: strings.HasPrefix(text, "Error: ")})
		}
		r.Received = append(r.Received, told)
	}
	return r, nil
}

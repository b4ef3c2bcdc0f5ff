package wiretest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/remit-dev/remit/tool/wire"
)

func gemini() sdk {
	return sdk{
		format: wire.Gemini, history: "contents", choices: choices(func(c wire.ToolChoice) bool { return !c.Single }),
		respond: func(calls []called) (json.RawMessage, []json.RawMessage) {
			parts := []any{object{"text": "I will.", "thought": true}}
			for i, c := range calls {
				part := object{"functionCall": object{"id": c.id, "name": c.name, "args": c.args}}
				if string(c.args) == `{}` {
					delete(part["functionCall"].(object), "args") //nolint:errcheck,forcetypeassert // made above
				}
				if i == 0 {
					part["thoughtSignature"] = "c2lnbmF0dXJl"
				}
				parts = append(parts, part)
			}
			content := marshal(object{"role": "model", "parts": parts})
			return marshal(object{
				"candidates":    []any{object{"content": content, "finishReason": "STOP", "index": 0}},
				"usageMetadata": object{"totalTokenCount": 9}, "modelVersion": "m", "responseId": "r",
			}), []json.RawMessage{content}
		},
		converse: func(t *testing.T, url string, fields map[string]json.RawMessage, answer answer) (seen []called) {
			client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
				APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url},
			})
			require.NoError(t, err)
			var config genai.GenerateContentConfig
			into(t, &config, fields)
			history := []*genai.Content{genai.NewContentFromText("Do it.", genai.RoleUser)}
			response, err := client.Models.GenerateContent(t.Context(), "m", history, &config)
			require.NoError(t, err)
			for _, c := range response.FunctionCalls() {
				args := marshal(c.Args)
				if c.Args == nil {
					args = json.RawMessage(`{}`)
				}
				seen = append(seen, called{c.ID, c.Name, args})
			}
			history = append(history, response.Candidates[0].Content)
			for _, result := range answer(marshal(response)) {
				var content genai.Content
				require.NoError(t, json.Unmarshal(result, &content))
				history = append(history, &content)
			}
			_, err = client.Models.GenerateContent(t.Context(), "m", history, &config)
			require.NoError(t, err)
			return seen
		},
	}
}

package wiretest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/ollama/ollama/api"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool/wire"
)

func ollama() sdk {
	return sdk{
		format: wire.Ollama, history: "messages",
		choices: choices(func(c wire.ToolChoice) bool { return !c.Single && (c.Mode == "" || c.Mode == wire.Auto) }),
		respond: func(calls []called) (json.RawMessage, []json.RawMessage) {
			var list []any
			for i, c := range calls {
				list = append(list, object{"id": c.id, "function": object{"index": i, "name": c.name, "arguments": c.args}})
			}
			message := marshal(object{"role": "assistant", "content": "", "thinking": "hm", "tool_calls": list})
			return append(marshal(object{"model": "m", "created_at": "2026-01-02T03:04:05Z", "message": message, "done": true, "done_reason": "stop"}), '\n'),
				[]json.RawMessage{message}
		},
		converse: func(t *testing.T, at string, fields map[string]json.RawMessage, answer answer) (seen []called) {
			base, err := url.Parse(at)
			require.NoError(t, err)
			client := api.NewClient(base, http.DefaultClient)
			var request api.ChatRequest
			into(t, &request, fields)
			request.Model = "m"
			request.Messages = []api.Message{{Role: "user", Content: "Do it."}}
			var response api.ChatResponse
			require.NoError(t, client.Chat(t.Context(), &request, func(r api.ChatResponse) error {
				response = r
				return nil
			}))
			for _, c := range response.Message.ToolCalls {
				seen = append(seen, called{c.ID, c.Function.Name, json.RawMessage(c.Function.Arguments.String())})
			}
			request.Messages = append(request.Messages, response.Message)
			for _, result := range answer(marshal(response)) {
				var message api.Message
				require.NoError(t, json.Unmarshal(result, &message))
				request.Messages = append(request.Messages, message)
			}
			require.NoError(t, client.Chat(t.Context(), &request, func(api.ChatResponse) error { return nil }))
			return seen
		},
	}
}

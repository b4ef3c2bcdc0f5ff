package wiretest

import (
	"encoding/json"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool/wire"
)

func anthropicMessages() sdk {
	return sdk{
		format: wire.Anthropic, history: "messages", choices: every,
		respond: func(calls []called) (json.RawMessage, []json.RawMessage) {
			content := []any{
				object{"type": "thinking", "thinking": "hm", "signature": "c2ln"},
				object{"type": "redacted_thinking", "data": "b3BhcXVl"},
				object{"type": "text", "text": "I will."},
			}
			for _, c := range calls {
				content = append(content, object{"type": "tool_use", "id": c.id, "name": c.name, "input": c.args})
			}
			return marshal(object{
				"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use", "stop_sequence": nil,
				"content": content, "usage": object{"input_tokens": 1, "output_tokens": 1},
			}), []json.RawMessage{marshal(object{"role": "assistant", "content": content})}
		},
		converse: func(t *testing.T, url string, fields map[string]json.RawMessage, answer answer) (seen []called) {
			client := anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey("none"), option.WithMaxRetries(0))
			var params anthropic.MessageNewParams
			into(t, &params, fields)
			params.Model, params.MaxTokens = "m", 1000
			params.Messages = []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Do it."))}
			response, err := client.Messages.New(t.Context(), params)
			require.NoError(t, err)
			for _, block := range response.Content {
				if use, is := block.AsAny().(anthropic.ToolUseBlock); is {
					seen = append(seen, called{use.ID, use.Name, use.Input})
				}
			}
			params.Messages = append(params.Messages, response.ToParam())
			for _, result := range answer(json.RawMessage(response.RawJSON())) {
				var message anthropic.MessageParam
				require.NoError(t, json.Unmarshal(result, &message))
				for _, block := range message.Content {
					require.NotNil(t, block.OfToolResult)
				}
				params.Messages = append(params.Messages, message)
			}
			_, err = client.Messages.New(t.Context(), params)
			require.NoError(t, err)
			return seen
		},
	}
}

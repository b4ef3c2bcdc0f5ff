package wiretest

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool/wire"
)

func openAIChat() sdk {
	return sdk{
		format: wire.OpenAIChat, history: "messages", choices: every,
		respond: func(calls []called) (json.RawMessage, []json.RawMessage) {
			var list []any
			for _, c := range calls {
				list = append(list, object{"id": c.id, "type": "function", "function": object{"name": c.name, "arguments": string(c.args)}})
			}
			// Some servers put their reasoning beside, which has to come back.
			message := marshal(object{"role": "assistant", "content": nil, "refusal": nil, "annotations": []any{}, "reasoning_content": "because", "tool_calls": list})
			return marshal(object{
				"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "service_tier": "default",
				"choices": []any{object{"index": 0, "finish_reason": "tool_calls", "logprobs": nil, "message": message}},
				"usage":   object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
			}), []json.RawMessage{message}
		},
		converse: func(t *testing.T, url string, fields map[string]json.RawMessage, answer answer) (seen []called) {
			client := openai.NewClient(option.WithBaseURL(url), option.WithAPIKey("none"), option.WithMaxRetries(0))
			var params openai.ChatCompletionNewParams
			into(t, &params, but(fields, "tool_choice"))
			params.ToolChoice = oneOf[openai.ChatCompletionToolChoiceOptionUnionParam](t, fields["tool_choice"],
				func(c openai.ChatCompletionNamedToolChoiceParam) openai.ChatCompletionToolChoiceOptionUnionParam {
					return openai.ChatCompletionToolChoiceOptionUnionParam{OfFunctionToolChoice: &c}
				})
			params.Model = "m"
			params.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Do it.")}
			response, err := client.Chat.Completions.New(t.Context(), params)
			require.NoError(t, err)
			message := response.Choices[0].Message
			for _, c := range message.ToolCalls {
				seen = append(seen, called{c.ID, c.Function.Name, json.RawMessage(c.Function.Arguments)})
			}
			params.Messages = append(params.Messages, param.Override[openai.ChatCompletionMessageParamUnion](json.RawMessage(message.RawJSON())))
			for _, result := range answer(json.RawMessage(response.RawJSON())) {
				var message openai.ChatCompletionMessageParamUnion
				require.NoError(t, json.Unmarshal(result, &message))
				require.NotNil(t, message.OfTool)
				params.Messages = append(params.Messages, message)
			}
			_, err = client.Chat.Completions.New(t.Context(), params)
			require.NoError(t, err)
			return seen
		},
	}
}

func openAIResponses() sdk {
	return sdk{
		format: wire.OpenAIResponses, history: "input", choices: every,
		respond: func(calls []called) (json.RawMessage, []json.RawMessage) {
			turn := []json.RawMessage{marshal(object{"type": "reasoning", "id": "rs_1", "summary": []any{}, "encrypted_content": "gAAAA", "status": "completed"})}
			for _, c := range calls {
				turn = append(turn, marshal(object{
					"type": "function_call", "id": "fc_" + c.id, "call_id": c.id, "name": c.name, "arguments": string(c.args), "status": "completed",
				}))
			}
			return marshal(object{
				"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "error": nil, "incomplete_details": nil,
				"model": "m", "output": turn, "parallel_tool_calls": true, "tool_choice": "auto", "tools": []any{},
			}), turn
		},
		converse: func(t *testing.T, url string, fields map[string]json.RawMessage, answer answer) (seen []called) {
			client := openai.NewClient(option.WithBaseURL(url), option.WithAPIKey("none"), option.WithMaxRetries(0))
			var params responses.ResponseNewParams
			into(t, &params, but(fields, "tool_choice"))
			params.ToolChoice = oneOf[responses.ResponseNewParamsToolChoiceUnion](t, fields["tool_choice"],
				func(c responses.ToolChoiceFunctionParam) responses.ResponseNewParamsToolChoiceUnion {
					return responses.ResponseNewParamsToolChoiceUnion{OfFunctionTool: &c}
				})
			params.Model = "m"
			params.Input.OfInputItemList = responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("Do it.", responses.EasyInputMessageRoleUser)}
			response, err := client.Responses.New(t.Context(), params)
			require.NoError(t, err)
			for _, item := range response.Output {
				if c, is := item.AsAny().(responses.ResponseFunctionToolCall); is {
					seen = append(seen, called{c.CallID, c.Name, json.RawMessage(c.Arguments)})
				}
				params.Input.OfInputItemList = append(params.Input.OfInputItemList,
					param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(item.RawJSON())))
			}
			for _, result := range answer(json.RawMessage(response.RawJSON())) {
				var item responses.ResponseInputItemUnionParam
				require.NoError(t, json.Unmarshal(result, &item))
				require.NotNil(t, item.OfFunctionCallOutput)
				params.Input.OfInputItemList = append(params.Input.OfInputItemList, item)
			}
			_, err = client.Responses.New(t.Context(), params)
			require.NoError(t, err)
			return seen
		},
	}
}

// oneOf reads a choice. Of the forms that are objects the SDK's union takes the wrong one when it is read from JSON, so the
// form of a named tool is read by itself.
func oneOf[Union, Named any](t *testing.T, raw json.RawMessage, wrap func(Named) Union) (u Union) {
	t.Helper()
	switch {
	case raw == nil:
	case raw[0] == '{':
		var named Named
		require.NoError(t, json.Unmarshal(raw, &named))
		return wrap(named)
	default:
		require.NoError(t, json.Unmarshal(raw, &u))
	}
	return u
}

func but(fields map[string]json.RawMessage, name string) map[string]json.RawMessage {
	out := maps.Clone(fields)
	delete(out, name)
	return out
}

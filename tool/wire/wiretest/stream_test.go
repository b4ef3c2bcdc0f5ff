package wiretest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/wire"
)

// events writes a stream, in which each event may have a name.
func events(list ...object) json.RawMessage {
	var text strings.Builder
	for _, e := range list {
		if name, is := e["type"].(string); is {
			fmt.Fprintf(&text, "event: %s\n", name)
		}
		fmt.Fprintf(&text, "data: %s\n\n", marshal(e))
	}
	return json.RawMessage(text.String())
}

// pieces cuts arguments as a stream does.
func pieces(args json.RawMessage) []string {
	return []string{"", string(args[:3]), string(args[3:])}
}

func TestStreamsThatTheSDKPutsTogether(t *testing.T) {
	calls := []called{{"call_1", "tool", json.RawMessage(`{"a":[1,{"b":"é"}]}`)}, {"call_2", "say", json.RawMessage(`{"input":"hi"}`)}}
	tools := []tool.Tool{made(t, "tool", "", json.RawMessage(`{"type":"object","properties":{"a":{"type":"array","items":true}}}`)), made(t, "say", "", nil)}
	for f, stream := range map[wire.Format]func(t *testing.T, calls []called) json.RawMessage{
		wire.OpenAIChat: chatStream, wire.OpenAIResponses: responsesStream, wire.Anthropic: anthropicStream,
	} {
		t.Run(string(f), func(t *testing.T) {
			a, err := wire.New(f, tools...)
			require.NoError(t, err)
			read, err := a.Calls(stream(t, calls))
			require.NoError(t, err)
			require.Len(t, read, 2)
			for i, want := range []string{string(calls[0].args), `"hi"`} {
				require.Nil(t, read[i].Problem)
				require.Equal(t, calls[i].id, read[i].ID)
				require.Equal(t, calls[i].name, read[i].Name)
				require.JSONEq(t, want, string(read[i].Input))
			}
		})
	}
}

func chatStream(t *testing.T, calls []called) json.RawMessage {
	chunk := func(delta object, reason any) object {
		return object{
			"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": reason}},
		}
	}
	list := []object{chunk(object{"role": "assistant", "content": nil}, nil)}
	for i, c := range calls {
		list = append(list, chunk(object{"tool_calls": []any{object{
			"index": i, "id": c.id, "type": "function", "function": object{"name": c.name, "arguments": ""},
		}}}, nil))
		for _, piece := range pieces(c.args) {
			list = append(list, chunk(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": piece}}}}, nil))
		}
	}
	body := append(events(append(list, chunk(object{}, "tool_calls"))...), []byte("data: [DONE]\n\n")...)
	client := openai.NewClient(option.WithBaseURL(serve(t, body).URL), option.WithAPIKey("none"))
	stream := client.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{
		Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Do it.")},
	})
	var whole openai.ChatCompletionAccumulator
	for stream.Next() {
		require.True(t, whole.AddChunk(stream.Current()))
	}
	require.NoError(t, stream.Err())
	require.Equal(t, "tool_calls", whole.Choices[0].FinishReason)
	return marshal(whole.Choices[0].Message.ToParam())
}

func responsesStream(t *testing.T, calls []called) json.RawMessage {
	whole, _ := openAIResponses().respond(calls)
	body := events(
		object{"type": "response.created", "sequence_number": 0, "response": object{"id": "resp_1", "object": "response", "status": "in_progress", "output": []any{}}},
		object{"type": "response.completed", "sequence_number": 1, "response": whole},
	)
	client := openai.NewClient(option.WithBaseURL(serve(t, body).URL), option.WithAPIKey("none"))
	stream := client.Responses.NewStreaming(t.Context(), responses.ResponseNewParams{Model: "m"})
	var last json.RawMessage
	for stream.Next() {
		if done, is := stream.Current().AsAny().(responses.ResponseCompletedEvent); is {
			last = json.RawMessage(done.Response.RawJSON())
		}
	}
	require.NoError(t, stream.Err())
	return last
}

func anthropicStream(t *testing.T, calls []called) json.RawMessage {
	list := []object{
		{"type": "message_start", "message": object{
			"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
			"usage": object{"input_tokens": 1, "output_tokens": 1},
		}},
		{"type": "content_block_start", "index": 0, "content_block": object{"type": "thinking", "thinking": "", "signature": ""}},
		{"type": "content_block_delta", "index": 0, "delta": object{"type": "thinking_delta", "thinking": "hm"}},
		{"type": "content_block_delta", "index": 0, "delta": object{"type": "signature_delta", "signature": "c2ln"}},
		{"type": "content_block_stop", "index": 0},
	}
	for i, c := range calls {
		list = append(list, object{
			"type": "content_block_start", "index": i + 1, "content_block": object{"type": "tool_use", "id": c.id, "name": c.name, "input": object{}},
		})
		for _, piece := range pieces(c.args) {
			list = append(list, object{"type": "content_block_delta", "index": i + 1, "delta": object{"type": "input_json_delta", "partial_json": piece}})
		}
		list = append(list, object{"type": "content_block_stop", "index": i + 1})
	}
	body := events(append(list,
		object{"type": "message_delta", "delta": object{"stop_reason": "tool_use", "stop_sequence": nil}, "usage": object{"output_tokens": 9}},
		object{"type": "message_stop"})...)
	client := anthropic.NewClient(anthropicoption.WithBaseURL(serve(t, body).URL), anthropicoption.WithAPIKey("none"))
	stream := client.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{
		Model: "m", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Do it."))},
	})
	var whole anthropic.Message
	for stream.Next() {
		require.NoError(t, whole.Accumulate(stream.Current()))
	}
	require.NoError(t, stream.Err())
	require.Equal(t, anthropic.StopReasonToolUse, whole.StopReason)
	turn := marshal(whole.ToParam())
	require.Contains(t, string(turn), `"signature":"c2ln"`)
	return turn
}

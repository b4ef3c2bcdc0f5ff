package wire

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
)

// What goes into the history is the provider's own bytes, out of a response as well as of a turn alone.
func TestTurnKeepsTheProvidersBytes(t *testing.T) {
	for f, g := range goldens {
		t.Run(string(f), func(t *testing.T) {
			a := adapter(t, f)
			want := []json.RawMessage{json.RawMessage(g.alone)}
			if f == OpenAIResponses {
				require.NoError(t, json.Unmarshal([]byte(g.alone), &want))
			}
			for _, raw := range []string{g.body, g.alone} {
				turn, err := a.Turn(json.RawMessage(raw))
				require.NoError(t, err)
				require.Equal(t, texts(want), texts(turn.Messages))
				require.Equal(t, read(t, a, raw), turn.Calls)
				require.True(t, turn.Complete)
				require.False(t, turn.Paused || turn.Malformed)
				_, err = a.Turn(turn.Messages[0])
				if f != OpenAIResponses {
					require.NoError(t, err, "the message is a turn")
				}
			}
			_, err := a.Turn(json.RawMessage(`{"error":{}}`))
			require.Error(t, err)
		})
	}
	_, err := Adapter{}.Turn(json.RawMessage(`{}`))
	require.ErrorIs(t, err, errZero)
}

func texts(messages []json.RawMessage) (out []string) {
	for _, m := range messages {
		out = append(out, string(m))
	}
	return out
}

func TestTurnTellsHowItEnded(t *testing.T) {
	for _, tt := range []struct {
		f                           Format
		body                        string
		complete, paused, malformed bool
		messages                    int
	}{
		{Anthropic, `{"role":"assistant","content":[],"stop_reason":"end_turn"}`, true, false, false, 1},
		{Anthropic, `{"role":"assistant","content":"x","stop_reason":"max_tokens"}`, false, false, false, 1},
		{Anthropic, `{"role":"assistant","content":"x","stop_reason":"pause_turn"}`, false, true, false, 1},
		{Anthropic, `{"role":"assistant","content":"x","stop_reason":"refusal"}`, false, false, false, 1},
		{Gemini, `{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}`, false, false, true, 0},
		{Gemini, `{"candidates":[{"finishReason":"SAFETY"}]}`, false, false, false, 0},
		{OpenAIChat, `{"choices":[{"message":{"role":"assistant","content":"x"},"finish_reason":"content_filter"}]}`, false, false, false, 1},
		{OpenAIResponses, `{"output":[],"status":"incomplete"}`, false, false, false, 0},
		{Ollama, `{"message":{"role":"assistant","content":"x"},"done_reason":"length"}`, false, false, false, 1},
		{Bedrock, `{"output":{"message":{"role":"assistant","content":[]}},"stopReason":"guardrail_intervened"}`, false, false, false, 1},
	} {
		turn, err := adapter(t, tt.f).Turn(json.RawMessage(tt.body))
		require.NoError(t, err, tt.body)
		require.Equal(t, []any{tt.complete, tt.paused, tt.malformed, tt.messages},
			[]any{turn.Complete, turn.Paused, turn.Malformed, len(turn.Messages)}, tt.body)
	}
}

// TestTextOfATurn checks that the text of a turn has all parts of the answer, and
// no reasoning.
func TestTextOfATurn(t *testing.T) {
	for f, bodies := range map[Format][]string{
		OpenAIChat: {`{"choices":[{"message":{"role":"assistant","content":"Tea is 4.","reasoning_content":"hm"},"finish_reason":"stop"}]}`},
		OpenAIResponses: {`{"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"type":"message","content":[
			{"type":"output_text","text":"Tea is "},{"type":"refusal","refusal":"hm"},{"type":"output_text","text":"4."}]}],"status":"completed"}`},
		Anthropic: {
			`{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Tea is "},{"type":"text","text":"4."}],"stop_reason":"end_turn"}`,
			`{"role":"assistant","content":"Tea is 4.","stop_reason":"end_turn"}`,
		},
		Gemini:  {`{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true},{"text":"Tea is "},{"text":"4."}]},"finishReason":"STOP"}]}`},
		Bedrock: {`{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm"}}},{"text":"Tea is 4."}]}},"stopReason":"end_turn"}`},
		Ollama:  {`{"message":{"role":"assistant","content":"Tea is 4.","thinking":"hm"},"done_reason":"stop"}`},
	} {
		for _, body := range bodies {
			turn, err := adapter(t, f).Turn(json.RawMessage(body))
			require.NoError(t, err, body)
			require.Equal(t, "Tea is 4.", turn.Text, body)
		}
	}
}

// A text of the user stands after the results, in their message where roles take turns.
func TestSay(t *testing.T) {
	want := map[Format][]string{
		OpenAIChat:      {`{"content":"Go on.","role":"user"}`, `{"content":"Go on.","role":"user"}`},
		OpenAIResponses: {`{"content":"Go on.","role":"user"}`, `{"content":"Go on.","role":"user"}`},
		Ollama:          {`{"content":"Go on.","role":"user"}`, `{"content":"Go on.","role":"user"}`},
		Gemini:          {`{"parts":[{"text":"Go on."}],"role":"user"}`, `{"parts":[{"text":"Go on."}],"role":"user"}`},
		Anthropic:       {`{"content":[{"text":"Go on.","type":"text"}],"role":"user"}`},
		Bedrock:         {`{"content":[{"text":"Go on."}],"role":"user"}`},
	}
	for f, g := range goldens {
		a := adapter(t, f)
		fresh, err := a.UserMessage(nil, "Go on.")
		require.NoError(t, err)
		require.Equal(t, want[f][:1], texts(fresh), f)
		calls := read(t, a, g.body)
		answers, err := a.Results(calls, []tool.Outcome{denied(), denied()})
		require.NoError(t, err)
		before := texts(answers)
		both, err := a.UserMessage(answers, "Go on.")
		require.NoError(t, err)
		require.Equal(t, before, texts(answers), "nothing that was given is changed")
		if len(want[f]) == 2 {
			require.Equal(t, append(before, want[f][1]), texts(both), f)
			continue
		}
		require.Len(t, both, 1, f)
		var one, joined struct{ Content []json.RawMessage }
		require.NoError(t, json.Unmarshal(answers[0], &one))
		require.NoError(t, json.Unmarshal(both[0], &joined))
		require.Equal(t, texts(one.Content), texts(joined.Content[:2]), f)
		require.Len(t, joined.Content, 3)
	}
	_, err := Adapter{}.UserMessage(nil, "x")
	require.ErrorIs(t, err, errZero)
}

func TestWithheldIsNoSuccess(t *testing.T) {
	o := Call{Name: "say"}.NotRun("it is late", "Not run: it is late.")
	require.False(t, o.Status.OK())
	require.Error(t, o.Err())
	require.Equal(t, "Not run: it is late.", o.Text)
}

func TestChoiceThatAFormatCannotExpress(t *testing.T) {
	_, err := adapter(t, Ollama).Request(ToolChoice{Mode: Required})
	require.ErrorIs(t, err, ErrToolChoice)
	_, err = adapter(t, Ollama).Request(ToolChoice{Mode: Required, Tool: "rm"})
	require.NotErrorIs(t, err, ErrToolChoice, "that is another mistake")
}

package wire

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/tool"
)

func FuzzOpenAIChatCalls(f *testing.F)      { fuzzCalls(f, OpenAIChat) }
func FuzzOpenAIResponsesCalls(f *testing.F) { fuzzCalls(f, OpenAIResponses) }
func FuzzAnthropicCalls(f *testing.F)       { fuzzCalls(f, Anthropic) }
func FuzzGeminiCalls(f *testing.F)          { fuzzCalls(f, Gemini) }
func FuzzBedrockCalls(f *testing.F)         { fuzzCalls(f, Bedrock) }
func FuzzOllamaCalls(f *testing.F)          { fuzzCalls(f, Ollama) }

// fuzzCalls checks the calls of arbitrary turns. A call without a problem names
// an offered tool, and its arguments have one reading. It has its own ID if the
// format requires one. The adapter does not change the turn, and can answer
// each turn.
func fuzzCalls(f *testing.F, format Format) {
	f.Add([]byte(goldens[format].body))
	f.Add([]byte(goldens[format].alone))
	f.Add([]byte(ended(format, goldens[format].alone, "length")))
	f.Add([]byte(turnOf(format, [3]string{"-", "-", ""}, [3]string{"1", "weather", carriedArgs(format, `{"city":null,"days":null}`)})))
	f.Add([]byte(`{"role":"assistant","content":[{}],"parts":[{}],"tool_calls":[{}],"output":[{}]}`))
	plain, err := New(format, two(f)...)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		for _, a := range []Adapter{plain, plain.Strict()} {
			calls, err := a.Calls(raw)
			require.Equal(t, before, raw)
			if err != nil {
				require.Nil(t, calls)
				continue
			}
			require.True(t, json.Valid(raw))
			held(t, a, calls)
			outcomes := make([]tool.Outcome, len(calls))
			messages, err := a.Results(calls, outcomes)
			require.NoError(t, err)
			for _, m := range messages {
				require.True(t, json.Valid(m))
			}
		}
	})
}

func held(t *testing.T, a Adapter, calls []Call) {
	ids := map[string]bool{}
	for _, c := range calls {
		if c.Problem != nil {
			require.NotEmpty(t, c.Problem.Why)
			require.False(t, c.Refused().Status.OK())
			continue
		}
		require.Contains(t, []string{"weather", "say"}, c.Name)
		v, err := canon.Parse(c.Input, canon.DefaultLimits())
		require.NoError(t, err)
		require.True(t, c.Name == "say" || v.Kind() == canon.Object)
		require.False(t, a.shape.ids && c.ID == "")
		require.False(t, c.ID != "" && ids[c.ID])
		ids[c.ID] = true
	}
}

package wire

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
)

// A framework that has taken a call out of its turn gets what the turn would have given.
func TestOneCallIsReadAsInItsTurn(t *testing.T) {
	for _, f := range Formats() {
		a := adapter(t, f)
		for _, args := range []string{
			`{"city":"x"}`, `{"city":"x","city":"y"}`, `{"city":"\ud800"}`, `[1]`, `{"input":"x"}`, `{"input":"x","more":1}`, `{"city":1.10}`,
		} {
			for _, name := range []string{"weather", "say", "wether", ""} {
				turn := turnOf(f, [3]string{"1", name, carriedArgs(f, args)})
				want, err := a.Calls(json.RawMessage(turn))
				require.NoError(t, err)
				got := a.Call("1", name, json.RawMessage(args))
				require.Equal(t, want[0].ID, got.ID)
				require.Equal(t, want[0].Name, got.Name)
				require.Equal(t, want[0].Problem == nil, got.Problem == nil, "%s %s %s", f, name, args)
				if got.Problem == nil {
					require.Equal(t, string(want[0].Input), string(got.Input))
				}
			}
		}
	}
	a := adapter(t, OpenAIChat)
	require.Nil(t, a.Call("", "weather", json.RawMessage(`{"city":"x"}`)).Problem, "a framework need not tell ids")
	for args, want := range map[string]string{"": "are empty", " ": "are empty", `{"city":`: "holds no JSON", `"x"`: "of type string, want object"} {
		require.Contains(t, a.Call("1", "weather", json.RawMessage(args)).Problem.Why, want)
	}
	require.NotNil(t, Adapter{}.Call("1", "weather", json.RawMessage(`{}`)).Problem)
}

func TestTheAnswerOfOneCallIsMarked(t *testing.T) {
	c := Call{Name: "weather"}
	text, failed := c.Answer(done(tool.Text("sunny")))
	require.Equal(t, "sunny", text)
	require.False(t, failed)
	for _, s := range append(tool.Statuses(), "", "new") {
		_, failed := c.Answer(tool.Outcome{Tool: "weather", Status: s, Text: "x"})
		require.Equal(t, !s.OK(), failed, s)
	}
	text, failed = c.Answer(tool.Outcome{Tool: "say", Status: tool.StatusDone, Text: "hi"})
	require.True(t, failed, "the outcome of another tool")
	require.Contains(t, text, "not known how this call ended")
	text, failed = c.Answer(done(tool.Result{Text: "map", Parts: []tool.Part{{MediaType: "image/png", Data: []byte("png")}}}))
	require.Equal(t, "map\n[image/png, 3 bytes, which cannot be shown here]", text)
	require.False(t, failed)
	text, failed = adapter(t, Ollama).Call("", "nobody", nil).Answer(done(tool.Text("sunny")))
	require.True(t, failed)
	require.Contains(t, text, `there is no tool "nobody"`)
}

package wire

import (
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestParams: the parameters of a call come to what the SDK would write, on one line.
func TestParams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &sdk.CallToolParams{Name: rapid.String().Draw(t, "name"), Meta: sdk.Meta{}, RequestState: rapid.SampledFrom([]string{"", "", "", "a \"state\""}).Draw(t, "state")}
		for range rapid.IntRange(0, 4).Draw(t, "metas") {
			p.Meta[rapid.String().Draw(t, "key")] = rapid.SampledFrom([]any{
				"a <b> & \x00 \u2028", "\xff", json.RawMessage(`{"a":[1]}`), map[string]any{"x": map[string]any{}}, &sdk.Implementation{Name: "n", Version: "1"}, 7, nil,
			}).Draw(t, "value")
		}
		p.Arguments = rapid.SampledFrom([]any{
			json.RawMessage(`{}`), json.RawMessage(`{"a":"<b>\u2028"}`), json.RawMessage("{\n\"a\": 1\r}"), map[string]any{"a": 1}, json.RawMessage(nil),
		}).Draw(t, "arguments")
		if rapid.Bool().Draw(t, "answered") {
			p.InputResponses = sdk.InputResponseMap{"k": &sdk.ElicitResult{Action: "accept"}}
		}
		want, err := plainJSON(p)
		require.NoError(t, err)
		have, err := paramsOf(p)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(have))
		require.NotContains(t, string(have), "\n")
		require.NotContains(t, string(have), "\r")
	})
}

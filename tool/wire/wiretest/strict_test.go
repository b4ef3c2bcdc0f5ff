package wiretest

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool/wire"
)

// strictSchemas are those of tools that an adapter offers in strict mode.
func strictSchemas(t *testing.T, f wire.Format, sets int) (list []json.RawMessage) {
	t.Helper()
	m := newMaker(7)
	for range sets {
		tools := m.tools(t)
		a, err := wire.New(f, tools...)
		require.NoError(t, err)
		raw, err := a.Strict().Definitions()
		require.NoError(t, err)
		var definitions []struct {
			Strict     bool
			Parameters json.RawMessage
			Schema     json.RawMessage `json:"input_schema"`
		}
		require.NoError(t, json.Unmarshal(raw, &definitions))
		for _, d := range definitions {
			if d.Strict {
				list = append(list, append(d.Parameters, d.Schema...)) // one of them is there
			}
		}
	}
	return list
}

// The SDK refuses a schema that the strict mode of its outputs does not take, which is the same for tools, and makes it what it
// has to be. What remit calls strict is that already.
func TestStrictModeFollowsTheRulesOfOpenAIsSDK(t *testing.T) {
	schemas := strictSchemas(t, wire.OpenAIResponses, 300)
	for _, schema := range schemas {
		checked, err := openai.NewBetaAgentOutput(schema, func([]byte) (any, error) { return nil, nil })
		require.NoError(t, err, "%s", schema)
		require.JSONEq(t, string(schema), string(member(t, marshal(checked.Format()), "schema")))
	}
	require.Greater(t, len(schemas), 300)
	t.Logf("%d strict schemas", len(schemas))
}

// lists are what the SDK's own schemas have no place for: a type that is a list, and a constant that is null.
var lists = regexp.MustCompile(`"type":\[|"const":null`)

// The SDK makes of a schema what strict mode takes. What remit calls strict is that already, so that nothing changes.
func TestStrictModeFollowsTheRulesOfAnthropicsSDK(t *testing.T) {
	tried := 0
	for _, schema := range strictSchemas(t, wire.Anthropic, 300) {
		if lists.Match(schema) {
			continue
		}
		tried++
		var plain map[string]any
		require.NoError(t, json.Unmarshal(schema, &plain))
		made := anthropic.BetaToolInputSchema(plain)
		require.NotNil(t, made.ExtraFields, "%s", schema)
		got, err := json.Marshal(made.ExtraFields)
		require.NoError(t, err)
		require.JSONEq(t, without(t, schema), without(t, got))
	}
	require.Greater(t, tried, 150)
	t.Logf("%d strict schemas", tried)
}

// without is a schema in which nothing says that nothing is required.
func without(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	return regexp.MustCompile(`,"required":\[\]|"required":\[\],`).ReplaceAllString(string(raw), "")
}

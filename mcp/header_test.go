package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// TestHTTPParamHeaders: a header that repeats an argument says what the argument does, or the request is refused before anybody
// acts on it.
func TestHTTPParamHeaders(t *testing.T) {
	routed, err := tool.FromSpec(tool.Spec{
		Name: "routed", EffectClass: effect.Pure,
		Input: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"at":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"},"on":{"type":"boolean","x-mcp-header":"On"}}}}}`),
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("ran"), nil
		},
	})
	require.NoError(t, err)
	h := newHouse(t, mcp.Options{}, agent.Tools(routed))
	url := h.serve(mcp.HTTPOptions{})
	token := h.session("coder").Token()
	in64 := func(text string) string { return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?=" }
	for _, tt := range []struct {
		name    string
		args    string
		headers []string
		good    bool
	}{
		{"none", `{}`, nil, true},
		{"the same", `{"region":"eu"}`, []string{"Mcp-Param-Region", "eu"}, true},
		{"in base64", `{"region":"eü"}`, []string{"Mcp-Param-Region", in64("eü")}, true},
		{"nested", `{"at":{"n":1,"on":true}}`, []string{"Mcp-Param-N", "1.0", "Mcp-Param-On", "true"}, true},
		{"null", `{"region":null,"at":{}}`, nil, true},
		{"another", `{"region":"eu"}`, []string{"Mcp-Param-Region", "us"}, false},
		{"missing", `{"region":"eu"}`, nil, false},
		{"of no argument", `{}`, []string{"Mcp-Param-Region", "eu"}, false},
		{"broken base64", `{"region":"eu"}`, []string{"Mcp-Param-Region", "=?base64?ZXU?="}, false},
		{"another number", `{"at":{"n":1}}`, []string{"Mcp-Param-N", "2"}, false},
		{"no number", `{"at":{"n":1}}`, []string{"Mcp-Param-N", "one"}, false},
		{"another truth", `{"at":{"on":true}}`, []string{"Mcp-Param-On", "false"}, false},
		{"an object", `{"region":{}}`, []string{"Mcp-Param-Region", "{}"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := modernCall(t, url, token, "routed", tt.args)
			for i := 0; i < len(tt.headers); i += 2 {
				req.Header.Set(tt.headers[i], tt.headers[i+1])
			}
			res, body := send(t, req)
			if tt.good {
				require.Equal(t, 200, res.StatusCode, body)
				return
			}
			require.Equal(t, 400, res.StatusCode, body)
			require.Contains(t, body, `-32020`)
			require.NotContains(t, body, "ran")
		})
	}
	res, body := send(t, modernCall(t, url, token, "upper", `{"input":"x"}`))
	require.Equal(t, 200, res.StatusCode, body)
}

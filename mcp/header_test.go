package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// TestHTTPParamHeaders checks that a header that repeats an argument agrees with
// it. If it does not, the server rejects the request before it runs the call.
func TestHTTPParamHeaders(t *testing.T) {
	routed, err := tool.FromSpec(tool.Spec{
		Name: "routed", EffectClass: effect.Pure,
		Input: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"at":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"},"on":{"type":"boolean","x-mcp-header":"On"}}}}}`),
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("ran"), nil
		},
	})
	require.NoError(t, err)
	h := newServerSetup(t, mcp.Options{}, agent.Tools(routed))
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

// TestHTTPParamHeadersAreOfWhatRuns: a request that two readers would read in two ways is not one whose headers fit.
func TestHTTPParamHeadersAreOfWhatRuns(t *testing.T) {
	var ran atomic.Int64
	routed, err := tool.FromSpec(tool.Spec{
		Name: "routed", EffectClass: effect.Pure, Input: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`),
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			ran.Add(1)
			return tool.Text("ran"), nil
		},
	})
	require.NoError(t, err)
	h := newServerSetup(t, mcp.Options{}, agent.Tools(routed))
	url := h.serve(mcp.HTTPOptions{})
	token := h.session("coder").Token()
	const meta = `"name":"routed","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call"`
	params := func(region string) string { return `{` + meta + `,"arguments":{"region":"` + region + `"}}` }
	for _, body := range []string{
		call + `,"params":` + params("eu") + `,"PARAMS":{"arguments":{"region":"us"}}}`,
		call + `,"params":` + params("us") + `,"params":` + params("eu") + `}`,
		call + `,"params":` + params("us") + `,"params":{` + meta + `}}`,
		call + `,"params":{` + meta + `,"arguments":{"region":"eu"},"Arguments":{"region":"us"}}}`,
		call + `,"params":` + params("eu") + `}` + call + `,"params":` + params("us") + `}`,
		call + `,"params":` + params("eu") + `} x`,
	} {
		req := modernCall(t, url, token, "routed", `{}`)
		req.Header.Set("Mcp-Param-Region", "us")
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		res, answer := send(t, req)
		require.Equal(t, 400, res.StatusCode, "%s %s", body, answer)
		require.Regexp(t, `-32020|-32600`, answer, body)
	}
	require.Zero(t, ran.Load())
}

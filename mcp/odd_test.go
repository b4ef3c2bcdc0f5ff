package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// oddParams are what a client should not send with any method.
var oddParams = []string{
	``, `,"params":null`, `,"params":{}`, `,"params":[]`, `,"params":7`, `,"params":{"_meta":null}`, `,"params":{"_meta":{}}`,
	`,"params":{"name":null,"uri":null,"level":null,"cursor":null}`, `,"params":{"taskId":null,"inputResponses":null}`,
	`,"params":{"taskId":"x","inputResponses":{"a":null}}`, `,"params":{"name":"poem","inputResponses":{"a":null},"requestState":"x"}`,
	`,"params":{"ref":null,"argument":null}`, `,"params":{"ref":{"type":"ref/prompt"},"argument":{"name":"a","value":""}}`,
	`,"params":{"ref":{"type":"ref/resource"},"argument":{"name":"a","value":""}}`, `,"params":{"notifications":null}`,
	`,"params":{"notifications":{"taskIds":[null],"resourceSubscriptions":[null]}}`, `,"params":{"requestId":null,"progressToken":null}`,
	`,"params":{"protocolVersion":null,"capabilities":null,"clientInfo":null}`, `,"params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":null}}`,
}

// TestOddParameters sends odd parameters with each method. Each request gets
// exactly one response, and does not end the connection.
func TestOddParameters(t *testing.T) {
	const begin = `{"jsonrpc":"2.0","id":"begin","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n"
	o := newCatalogOffice(t)
	for _, method := range []string{
		"initialize", "ping", "server/discover", "tools/list", "tools/call", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel",
		"resources/list", "resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen",
		"tasks/get", "tasks/update", "tasks/cancel", "notifications/initialized", "notifications/cancelled", "notifications/progress",
		"notifications/roots/list_changed", "notifications/nosuch", "roots/list", "elicitation/create", "nosuch",
	} {
		t.Run(method, func(t *testing.T) {
			var in strings.Builder
			in.WriteString(begin)
			for i, params := range oddParams {
				fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":%q%s}`+"\n", i, method, params)
				fmt.Fprintf(&in, `{"jsonrpc":"2.0","method":%q%s}`+"\n", method, params)
			}
			in.WriteString(`{"jsonrpc":"2.0","id":"end","method":"ping"}` + "\n")
			var out bytes.Buffer
			require.NoError(t, o.srv.RunIO(t.Context(), io.NopCloser(strings.NewReader(in.String())), unclosed{&out}, o.session("coder")))
			require.NotContains(t, out.String(), "internal error")
			answers := map[any]int{}
			for dec := json.NewDecoder(&out); dec.More(); {
				var m struct {
					ID            any
					Result, Error json.RawMessage
				}
				require.NoError(t, dec.Decode(&m))
				if m.Result != nil || m.Error != nil {
					answers[m.ID]++
				}
			}
			require.Contains(t, answers, "end")
			if method != "subscriptions/listen" { // which the end of the connection ends
				require.Len(t, answers, len(oddParams)+2)
			}
			for id, n := range answers {
				require.Equal(t, 1, n, "%v", id)
			}
		})
	}
}

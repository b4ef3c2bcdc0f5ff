package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// TestLogsOfALaterRound: what a server logs of a call that it answered with something it wants first is still of that call.
func TestLogsOfALaterRound(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.scripted(oneTool,
		`tools/call {"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","inputRequests":{}}}`,
		`tools/call {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"second"}} THEN {"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`,
	)}, `{"s": {"tools": {"x": {"effectClass": "pure"}}}}`)
	var d clientLog
	cs := h.connect(h.serve(), modern, d.options())
	r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Meta: sdk.Meta{sdk.MetaKeyLogLevel: "error"}, Name: "s__x", Arguments: map[string]any{}})
	require.NoError(t, err)
	require.False(t, r.IsError, "%v", r.Content)
	require.Eventually(t, func() bool { return len(d.lines()) > 0 }, time.Minute, time.Millisecond)
	require.Equal(t, "error  second", strings.Join(d.lines(), "\n"))
	require.Zero(t, h.gateway.Flying("s"))
}

// TestNothingFliesAfterwards: a call whose server wants something again and again is over when it ends, whichever way the server is reached.
func TestNothingFliesAfterwards(t *testing.T) {
	for place, entry := range map[string]func(*gatewaySetup, string) string{"near": (*gatewaySetup).near, "far": (*gatewaySetup).far} {
		for _, name := range []string{"again", "model"} {
			t.Run(place+"/"+name, func(t *testing.T) {
				h := newGatewaySetup(t)
				h.open(map[string]string{"s": entry(h, modern)}, strings.Replace(requestingTools, `"echo":`, `"again": {"effectClass": "pure"}, "echo":`, 1))
				o := &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, nil
				}, CreateMessageHandler: func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
					return nil, fmt.Errorf("it has no words")
				}}
				cs := h.connect(h.serve(), legacy, o)
				_, err := ask(t.Context(), cs, name, "w")
				require.Error(t, err)
				require.Zero(t, h.gateway.Flying("s"))
			})
		}
	}
}

// TestReportsOfReads: what a server reports while it is read is told, too, by whichever way.
func TestReportsOfReads(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.scripted(
		`initialize {"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"script","version":"1"}}}`,
		oneTool, `resources/list {"jsonrpc":"2.0","id":ID,"result":{"resources":[{"uri":"book://one","name":"one"}]}}`,
		`resources/templates/list {"jsonrpc":"2.0","id":ID,"result":{"resourceTemplates":[]}}`,
		`resources/read {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":TOKEN,"progress":1,"message":"half"}} THEN {"jsonrpc":"2.0","id":ID,"result":{"contents":[]}}`,
	)}, "")
	heard := make(chan string, 1)
	cs := h.connect(h.serve(), legacy, &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { heard <- r.Params.Message }})
	p := &sdk.ReadResourceParams{URI: "book://one"}
	p.SetProgressToken("mine")
	go func() {
		_, err := cs.ReadResource(t.Context(), p)
		if err != nil {
			heard <- err.Error()
		}
	}()
	require.Equal(t, "half", receive(t, heard))
}

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// inquirer is a house with a tool that asks its client as it is told.
func newRequestServer(t *testing.T, ask func(ctx context.Context, client mcp.Client) (string, error)) *serverSetup {
	inquire, err := tool.FromSpec(tool.Spec{
		Name: "inquire", EffectClass: effect.Pure, Input: json.RawMessage(`{"type":"object"}`),
		Execute: func(ctx context.Context, _ ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
			client, ok := mcp.ClientOf(ctx)
			if !ok {
				return tool.Result{}, errors.New("nobody is there")
			}
			text, err := ask(ctx, client)
			return tool.Text(text), err
		},
	})
	require.NoError(t, err)
	return newServerSetup(t, mcp.Options{}, agent.Tools(inquire))
}

// filledIn is what a person filled into the one field of a form.
func filledIn(r sdk.InputResponseMap, key string) string {
	text, _ := r[key].(*sdk.ElicitResult).Content["name"].(string)
	return text
}

func nameForm() *sdk.ElicitParams {
	return &sdk.ElicitParams{Mode: "form", Message: "Who?", RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string", "minLength": 2}}, "required": []string{"name"},
	}}
}

// TestClientAsk: a tool asks the person, the model and for the roots, more than once, and is answered by its own client.
func TestClientAsk(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		h := newRequestServer(t, func(ctx context.Context, client mcp.Client) (string, error) {
			first, err := client.Request(ctx, sdk.InputRequestMap{"who": nameForm(), "where": &sdk.ListRootsParams{}})
			if err != nil {
				return "", err
			}
			second, err := client.Request(ctx, sdk.InputRequestMap{"what": &sdk.CreateMessageWithToolsParams{MaxTokens: 1, Messages: []*sdk.SamplingMessageV2{{Role: "user", Content: []sdk.Content{&sdk.TextContent{Text: "?"}}}}}})
			if err != nil {
				return "", err
			}
			said, _ := second["what"].(*sdk.CreateMessageWithToolsResult)
			text, _ := said.Content[0].(*sdk.TextContent)
			roots, _ := first["where"].(*sdk.ListRootsResult)
			return filledIn(first, "who") + " at " + roots.Roots[0].URI + ": " + text.Text, nil
		})
		c := &sdk.ClientOptions{
			Capabilities: &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{}, Sampling: &sdk.SamplingCapabilities{}, Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}},
			ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, nil
			},
			CreateMessageHandler: func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
				return &sdk.CreateMessageResult{Role: "assistant", Model: "m", Content: &sdk.TextContent{Text: "hello"}}, nil
			},
		}
		here, there := sdk.NewInMemoryTransports()
		done := make(chan error, 1)
		go func() { done <- h.srv.Run(context.WithoutCancel(t.Context()), there, h.session("coder")) }()
		client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, c)
		client.AddRoots(&sdk.Root{URI: "file:///home"})
		cs, err := client.Connect(t.Context(), here, &sdk.ClientSessionOptions{ProtocolVersion: revision})
		require.NoError(t, err)
		r := h.call(cs, "inquire", nil)
		require.False(t, r.IsError, textOf(t, r))
		require.Equal(t, "Ann at file:///home: hello", textOf(t, r))
		require.NoError(t, cs.Close())
		<-done //nolint:errcheck // it says that the client left
	})
}

// TestClientAskAgain: a client that answers with something else is asked again, and not for ever; answers that come with the call
// count.
func TestClientAskAgain(t *testing.T) {
	h := newRequestServer(t, func(ctx context.Context, client mcp.Client) (string, error) {
		said, err := client.Request(ctx, sdk.InputRequestMap{"who": nameForm()})
		if err != nil {
			return "", err
		}
		return filledIn(said, "who"), nil
	})
	cs := h.client(modern, asks())
	good := &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}
	send := func(state string, said sdk.InputResponseMap) *sdk.CallToolResult {
		r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "inquire", Arguments: tool.Args{}, RequestState: state, InputResponses: said})
		require.NoError(t, err)
		return r
	}
	require.Equal(t, "Ann", textOf(t, send("", sdk.InputResponseMap{"who": good, "else": good})), "it was brought along")
	for _, bad := range []sdk.InputResponseMap{
		nil, {"whom": good}, {"who": &sdk.ListRootsResult{}}, {"who": &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "A"}}},
	} {
		first := send("", bad)
		require.True(t, first.NeedsInput())
		second := send(first.RequestState, bad)
		require.True(t, second.NeedsInput())
		require.NotEqual(t, first.RequestState, second.RequestState)
		require.True(t, send(first.RequestState, sdk.InputResponseMap{"who": good}).IsError, "that was answered before")
		require.Equal(t, "Ann", textOf(t, send(second.RequestState, sdk.InputResponseMap{"who": good})))
	}
	r := send("", nil)
	for range 16 {
		if !r.NeedsInput() {
			break
		}
		r = send(r.RequestState, nil)
	}
	require.True(t, r.IsError, "not for ever")
	require.Contains(t, textOf(t, r), "did not answer")
}

// TestClientLacks: a client is not asked for what it did not say that it can. A call that fails for this is answered with what it
// needs, in the revision that has words for it.
func TestClientLacks(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		h := newRequestServer(t, func(ctx context.Context, client mcp.Client) (string, error) {
			_, err := client.Request(ctx, sdk.InputRequestMap{"who": nameForm(), "what": &sdk.CreateMessageWithToolsParams{}})
			return "", err
		})
		cs := h.client(revision, nil)
		r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "inquire", Arguments: tool.Args{}})
		if revision == legacy {
			require.NoError(t, err)
			require.True(t, r.IsError)
			require.Contains(t, textOf(t, r), "elicitation")
			return
		}
		var fault *jsonrpc.Error
		require.ErrorAs(t, err, &fault)
		require.EqualValues(t, sdk.CodeMissingRequiredClientCapabilities, fault.Code)
		require.JSONEq(t, `{"requiredCapabilities":{"elicitation":{},"sampling":{}}}`, string(fault.Data))
	})
}

// TestClientLacksPages: a page is asked to be opened of a client that says it can, and a form of none that can only pages.
func TestClientLacksPages(t *testing.T) {
	page := &sdk.ElicitParams{Mode: "url", URL: "https://pages.example/", ElicitationID: "1", Message: "see"}
	for name, tt := range map[string]struct {
		can  *sdk.ElicitationCapabilities
		what *sdk.ElicitParams
		want string
	}{
		"a page of who can forms": {&sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}, page, `{"requiredCapabilities":{"elicitation":{"url":{}}}}`},
		"a page of who says less": {&sdk.ElicitationCapabilities{}, page, `{"requiredCapabilities":{"elicitation":{"url":{}}}}`},
		"a form of who can pages": {&sdk.ElicitationCapabilities{URL: &sdk.URLElicitationCapabilities{}}, nameForm(), `{"requiredCapabilities":{"elicitation":{}}}`},
		"a page":                  {&sdk.ElicitationCapabilities{URL: &sdk.URLElicitationCapabilities{}}, page, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newRequestServer(t, func(ctx context.Context, client mcp.Client) (string, error) {
				_, err := client.Request(ctx, sdk.InputRequestMap{"who": tt.what})
				return "done", err
			})
			cs := h.client(modern, &sdk.ClientOptions{
				Capabilities: &sdk.ClientCapabilities{Elicitation: tt.can},
				ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					if r.Params.URL != tt.what.URL {
						return nil, errors.New("another page")
					}
					return &sdk.ElicitResult{Action: "accept"}, nil
				},
			})
			r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "inquire", Arguments: tool.Args{}})
			if tt.want == "" {
				require.NoError(t, err)
				require.False(t, r.IsError)
				return
			}
			var fault *jsonrpc.Error
			require.ErrorAs(t, err, &fault)
			require.JSONEq(t, tt.want, string(fault.Data))
		})
	}
}

// TestClientLog: what a tool logs reaches a client that wants it.
func TestClientLog(t *testing.T) {
	h := newRequestServer(t, func(_ context.Context, client mcp.Client) (string, error) {
		client.Log(&sdk.LoggingMessageParams{Level: "debug", Data: "too low"})
		client.Log(&sdk.LoggingMessageParams{Level: "warning", Data: "mind this"})
		return "", nil
	})
	heard := make(chan any, 2)
	cs := h.client(legacy, &sdk.ClientOptions{
		Capabilities:          &sdk.ClientCapabilities{},
		LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) { heard <- r.Params.Data },
	})
	h.call(cs, "inquire", nil)
	require.NoError(t, cs.SetLoggingLevel(t.Context(), &sdk.SetLoggingLevelParams{Level: "warning"}))
	h.call(cs, "inquire", nil)
	require.Equal(t, "mind this", <-heard)
	require.Empty(t, heard)
}

// TestClientOfNobody: a call that no client made has none.
func TestClientOfNobody(t *testing.T) {
	client, ok := mcp.ClientOf(t.Context())
	require.False(t, ok)
	require.Nil(t, client.Capabilities().Elicitation)
	client.Log(&sdk.LoggingMessageParams{})
	_, err := client.Request(t.Context(), nil)
	require.ErrorContains(t, err, "no client")
}

// TestClientAskOfAnother: a call that asks goes on for its own session alone, also where another one names it in a state that the server seems to
// have given it.
func TestClientAskOfAnother(t *testing.T) {
	h := newRequestServer(t, func(ctx context.Context, client mcp.Client) (string, error) {
		said, err := client.Request(ctx, sdk.InputRequestMap{"who": nameForm()})
		if err != nil {
			return "", err
		}
		return filledIn(said, "who"), nil
	})
	ann, bob := h.session("Ann"), h.session("Bob")
	mine, others := h.clientOf(modern, asks(), ann), h.clientOf(modern, asks(), bob)
	say := func(cs *sdk.ClientSession, state, name string) *sdk.CallToolResult {
		said := sdk.InputResponseMap{}
		if state != "" {
			said["who"] = &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": name}}
		}
		r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "inquire", Arguments: tool.Args{}, RequestState: state, InputResponses: said})
		require.NoError(t, err)
		return r
	}
	state := say(mine, "", "").RequestState
	stolen, err := h.srv.HandOver(state, ann.ID(), bob.ID())
	require.NoError(t, err)
	r := say(others, stolen, "Bob")
	require.True(t, r.IsError)
	require.Contains(t, textOf(t, r), "does not wait any more", "as of one that never was")
	require.Equal(t, "Ann", textOf(t, say(mine, state, "Ann")))
}

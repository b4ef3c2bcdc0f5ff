package mcp_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// newCatalogOffice returns an office that offers resources and prompts. The session
// of the test cannot see some of them.
func newCatalogOffice(t *testing.T, more ...tool.Tool) *office {
	o := newOffice(t, mcp.Options{})
	poem, err := tool.FromSpec(tool.Spec{
		Name: "poem", EffectClass: effect.Pure,
		Input: json.RawMessage(`{"type":"object","properties":{"about":{"type":"string","description":"what of","enum":["sea","sky","sand"]},"lines":{"type":"integer"},"loud":{"type":"boolean"}},"required":["about"]}`),
		Execute: func(_ context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			return tool.Result{Text: string(in), Parts: []tool.Part{{MediaType: "image/png", Data: []byte{1, 2}}, {MediaType: "application/x", Data: []byte{3}}}}, nil
		},
	})
	require.NoError(t, err)
	require.NoError(t, o.rt.SetTools(append(append(o.rt.Tools().All(), poem), more...)...))
	require.NoError(t, o.srv.SetResources(
		mcp.Resource{URI: "poem://sea", Name: "sea", MediaType: "text/plain", Tool: "poem", Input: tool.Args{"about": "sea"}},
		mcp.Resource{URI: "poem://{about}/{lines}", Name: "some", Tool: "poem", Input: tool.Args{"loud": true}},
		mcp.Resource{URI: "hidden://it", Name: "hidden", Tool: "secret"},
		mcp.Resource{URI: "letter://sent", Name: "letter", Tool: "send", Input: letterInput},
		mcp.Resource{URI: "gone://it", Name: "gone", Tool: "nowhere"},
	))
	require.NoError(t, o.srv.SetPrompts(
		mcp.Prompt{Name: "write", Title: "Write", Description: "Writes", Tool: "poem", Input: tool.Args{"loud": true}},
		mcp.Prompt{Name: "hidden", Tool: "secret"},
	))
	return o
}

// TestResources: what a session may see is listed and read, and a read is a call like any.
func TestResources(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		o := newCatalogOffice(t)
		cs := o.client(revision, nil)
		list, err := cs.ListResources(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, list.Resources, 2)
		require.Equal(t, "poem://sea", list.Resources[0].URI)
		require.Equal(t, "letter://sent", list.Resources[1].URI)
		several, err := cs.ListResourceTemplates(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, several.ResourceTemplates, 1)
		require.Equal(t, "poem://{about}/{lines}", several.ResourceTemplates[0].URITemplate)

		r, err := cs.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "poem://sea"})
		require.NoError(t, err)
		require.Len(t, r.Contents, 3)
		require.Equal(t, &sdk.ResourceContents{URI: "poem://sea", MIMEType: "text/plain", Text: `{"about":"sea"}`}, r.Contents[0])
		require.Equal(t, &sdk.ResourceContents{URI: "poem://sea", MIMEType: "image/png", Blob: []byte{1, 2}}, r.Contents[1])
		require.Equal(t, &sdk.ResourceContents{URI: "poem://sea", MIMEType: "application/x", Blob: []byte{3}}, r.Contents[2])
		_, c, err := revert.LoadCall(t.Context(), o.rt.Journal(), remitMeta(r, "call"))
		require.NoError(t, err)
		require.Equal(t, "poem", c.Tool.Name)

		r, err = cs.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "poem://sky/3"})
		require.NoError(t, err)
		require.Equal(t, `{"about":"sky","lines":3,"loud":true}`, r.Contents[0].Text)
	})
}

// TestResourcesRefused: what a session does not see is not there for it, and what does not end well is an error that says why.
func TestResourcesRefused(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		o := newCatalogOffice(t)
		cs := o.client(revision, nil)
		for _, tt := range []struct {
			uri  string
			code int64
			says string
		}{
			{"hidden://it", resourceNotFound, "not found"},
			{"gone://it", resourceNotFound, "not found"},
			{"none://it", resourceNotFound, "not found"},
			{"poem://tea/3", -32000, "tea"},
			{"letter://sent", -32000, "approval"},
		} {
			_, err := cs.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: tt.uri})
			var said *jsonrpc.Error
			require.ErrorAs(t, err, &said, tt.uri)
			require.Equal(t, tt.code, said.Code, tt.uri)
			if tt.uri != "poem://tea/3" { // the message does not repeat the value of the client
				require.Contains(t, said.Message, tt.says)
			}
			if tt.code == -32000 {
				require.Contains(t, string(said.Data), "remit.dev/outcome")
			}
		}
		require.Zero(t, o.sent.Load())
	})
}

// TestResourcesAsk: a read that the policy asks about is asked about as a call is.
func TestResourcesAsk(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		o := newCatalogOffice(t)
		var asked []string
		cs := o.client(revision, answers(&asked, yes()))
		r, err := cs.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "letter://sent"})
		require.NoError(t, err)
		require.Equal(t, "sent", r.Contents[0].Text)
		require.Len(t, asked, 1)
		require.EqualValues(t, 1, o.sent.Load())
	})
}

// TestPrompts: arguments are those of the tool that are left open, and messages what it returns.
func TestPrompts(t *testing.T) {
	own, err := tool.FromSpec(tool.Spec{Name: "own", EffectClass: effect.Pure, Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
		return mcp.Result("hello", &sdk.GetPromptResult{Description: "own words", Messages: []*sdk.PromptMessage{{Role: "assistant", Content: &sdk.TextContent{Text: "hello"}}}})
	}})
	require.NoError(t, err)
	routeByRevision(t, func(t *testing.T, revision string) {
		o := newCatalogOffice(t, own)
		cs := o.client(revision, nil)
		list, err := cs.ListPrompts(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, list.Prompts, 1)
		require.Equal(t, &sdk.Prompt{Name: "write", Title: "Write", Description: "Writes", Arguments: []*sdk.PromptArgument{
			{Name: "about", Description: "what of", Required: true}, {Name: "lines"},
		}}, list.Prompts[0])

		r, err := cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "write", Arguments: map[string]string{"about": "sky", "lines": "2"}})
		require.NoError(t, err)
		require.Equal(t, "Writes", r.Description)
		require.Len(t, r.Messages, 3)
		require.Equal(t, &sdk.PromptMessage{Role: "user", Content: &sdk.TextContent{Text: `{"about":"sky","lines":2,"loud":true}`}}, r.Messages[0])
		require.IsType(t, &sdk.ImageContent{}, r.Messages[1].Content)

		for _, name := range []string{"hidden", "nowhere"} {
			_, err := cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: name})
			require.ErrorContains(t, err, "unknown prompt")
		}
		_, err = cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "write"})
		require.ErrorContains(t, err, "about", "an argument is missing")

		require.NoError(t, o.srv.SetPrompts(mcp.Prompt{Name: "own", Tool: "own"}))
		r, err = cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "own", Arguments: map[string]string{"input": "x"}})
		require.NoError(t, err)
		require.Equal(t, "own words", r.Description)
		require.EqualValues(t, "assistant", r.Messages[0].Role)
	})
}

// TestComplete: an argument is completed with what its tool takes, for those who see the tool.
func TestComplete(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		o := newCatalogOffice(t)
		cs := o.client(revision, nil)
		for _, ref := range []*sdk.CompleteReference{
			{Type: "ref/prompt", Name: "write"},
			{Type: "ref/resource", URI: "poem://{about}/{lines}"},
		} {
			for start, want := range map[string][]string{"s": {"sea", "sky", "sand"}, "sk": {"sky"}, "x": {}} {
				r, err := cs.Complete(t.Context(), &sdk.CompleteParams{Ref: ref, Argument: sdk.CompleteParamsArgument{Name: "about", Value: start}})
				require.NoError(t, err)
				require.Equal(t, want, r.Completion.Values)
			}
		}
		for _, ref := range []*sdk.CompleteReference{{Type: "ref/prompt", Name: "hidden"}, {Type: "ref/resource", URI: "hidden://it"}, {Type: "ref/prompt", Name: "none"}} {
			_, err := cs.Complete(t.Context(), &sdk.CompleteParams{Ref: ref, Argument: sdk.CompleteParamsArgument{Name: "about"}})
			require.ErrorContains(t, err, "names no prompt")
		}
	})
}

// TestOffersNone: a server that offers nothing says so.
func TestOffersNone(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		o := newCatalogOffice(t)
		caps := func() *sdk.ServerCapabilities { return o.client(revision, nil).InitializeResult().Capabilities }
		with := caps()
		require.NotNil(t, with.Prompts)
		require.NotNil(t, with.Completions)
		require.True(t, with.Resources.Subscribe)
		require.NoError(t, o.srv.SetResources())
		require.NoError(t, o.srv.SetPrompts())
		none := caps()
		require.Nil(t, none.Prompts)
		require.Nil(t, none.Resources)
		require.Nil(t, none.Completions)
		cs := o.client(revision, nil)
		_, err := cs.ListPrompts(t.Context(), nil)
		require.ErrorContains(t, err, "method not found")
		_, err = cs.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "poem://sea"})
		require.ErrorContains(t, err, "method not found")
	})
}

// TestSetOffers checks that the server rejects unusable resources and prompts,
// and keeps those that it had.
func TestSetOffers(t *testing.T) {
	o := newCatalogOffice(t)
	for _, bad := range []mcp.Resource{{}, {URI: "x://y"}, {URI: "x://y", Name: "y"}, {Name: "n", Tool: "poem"}, {URI: "x://{", Name: "y", Tool: "poem"}} {
		require.Error(t, o.srv.SetResources(bad))
	}
	twice := mcp.Resource{URI: "x://y", Name: "y", Tool: "poem"}
	require.ErrorContains(t, o.srv.SetResources(twice, twice), "two resources")
	require.Error(t, o.srv.SetPrompts(mcp.Prompt{Name: "p"}))
	require.Error(t, o.srv.SetPrompts(mcp.Prompt{Tool: "poem"}))
	require.ErrorContains(t, o.srv.SetPrompts(mcp.Prompt{Name: "p", Tool: "poem"}, mcp.Prompt{Name: "p", Tool: "send"}), "two prompts")
	list, err := o.client(modern, nil).ListResources(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, list.Resources, 2)
}

// TestResourceChanged checks that the server notifies subscribers. A client
// cannot subscribe to a resource that it cannot see.
func TestResourceChanged(t *testing.T) {
	o := newCatalogOffice(t)
	told := make(chan string, 1)
	cs := o.client(legacy, &sdk.ClientOptions{
		Capabilities:           &sdk.ClientCapabilities{},
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { told <- r.Params.URI },
	})
	require.NoError(t, cs.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "poem://sea"}))
	require.ErrorContains(t, cs.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "hidden://it"}), "not found")
	require.NoError(t, o.srv.ResourceChanged(t.Context(), "hidden://it"))
	require.NoError(t, o.srv.ResourceChanged(t.Context(), "poem://sea"))
	require.Equal(t, "poem://sea", <-told)
	require.NoError(t, cs.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: "poem://sea"}))
}

const resourceNotFound = jsonrpc.CodeInvalidParams // SEP-2164

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// newCatalogServer is a server with resources, prompts and what completes arguments.
func newCatalogServer(revision string) *sdk.Server {
	o := &sdk.ServerOptions{
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(_ context.Context, r *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
			value := r.Params.Ref.Name + r.Params.Ref.URI + " " + r.Params.Argument.Name + "=" + r.Params.Argument.Value
			if r.Params.Context != nil {
				value += " after " + r.Params.Context.Arguments["book"]
			}
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{value}, Total: 1}}, nil
		},
	}
	if revision != "" {
		o.SupportedProtocolVersions = []string{revision}
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "librarian", Version: "1"}, o)
	text := func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Meta: sdk.Meta{"shelf": "b"}, Cacheable: sdk.Cacheable{TTLMs: 60_000, CacheScope: "public"}, Contents: []*sdk.ResourceContents{
			{URI: r.Params.URI, MIMEType: "text/plain", Text: "<all> of " + r.Params.URI, Meta: sdk.Meta{"own": 1}},
		}}, nil
	}
	server.AddResource(&sdk.Resource{URI: "book://one", Name: "one", Title: "One", Description: "The first.", MIMEType: "text/plain", Size: 17}, text)
	server.AddResource(&sdk.Resource{URI: "book://two", Name: "two", MIMEType: "image/png"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "image/png", Blob: []byte{1, 2, 3}}}}, nil
	})
	server.AddResource(&sdk.Resource{URI: "book://end", Name: "end"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		if os.Getenv("SERVER") != "" {
			os.Exit(3)
		}
		return nil, fmt.Errorf("it is by URL")
	})
	server.AddResource(&sdk.Resource{URI: "book://written", Name: "written"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		if err := os.WriteFile(os.Getenv("WRITTEN"), []byte("x"), 0o600); err != nil {
			return nil, err
		}
		return text(context.Background(), r)
	})
	server.AddResource(&sdk.Resource{URI: "book://asked", Name: "asked"}, func(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		said, more, err := wanted(ctx, r.Session, r.Params.InputResponses)
		if err != nil || more != nil {
			return &sdk.ReadResourceResult{InputRequests: more}, err
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: said}}}, nil
	})
	server.AddResource(&sdk.Resource{URI: "file://note.txt", Name: "note"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		raw, err := os.ReadFile("note.txt")
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: string(raw)}}}, err
	})
	server.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "page://{book}/{n}", Name: "page", Description: "A page."}, text)
	server.AddPrompt(&sdk.Prompt{Name: "sum up", Title: "Sum up", Description: "Sums a book up." + os.Getenv("MORE"), Arguments: []*sdk.PromptArgument{
		{Name: "book", Description: "which", Required: true}, {Name: "lines"},
	}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Description: "for you", Messages: []*sdk.PromptMessage{
			{Role: "user", Content: &sdk.TextContent{Text: "Sum " + r.Params.Arguments["book"] + " up in " + r.Params.Arguments["lines"] + " lines."}},
			{Role: "assistant", Content: &sdk.ResourceLink{URI: "book://one", Name: "one"}},
		}}, nil
	})
	server.AddPrompt(&sdk.Prompt{Name: "asked"}, func(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		said, more, err := wanted(ctx, r.Session, r.Params.InputResponses)
		if err != nil || more != nil {
			return &sdk.GetPromptResult{InputRequests: more}, err
		}
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: said}}}}, nil
	})
	addCatalogTools(server, text)
	return server
}

// wanted is what the client of a read says, asked as its revision has it.
func wanted(ctx context.Context, ss *sdk.ServerSession, said sdk.InputResponseMap) (string, sdk.InputRequestMap, error) {
	p := &sdk.ElicitParams{Message: "which?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}}
	var r *sdk.ElicitResult
	if ss.InitializeParams().ProtocolVersion >= modern {
		if said == nil {
			return "", sdk.InputRequestMap{"which": p}, nil
		}
		r, _ = said["which"].(*sdk.ElicitResult)
	} else {
		var err error
		if r, err = ss.Elicit(ctx, p); err != nil {
			return "", nil, err
		}
	}
	return fmt.Sprint(r.Content["name"]), nil, nil
}

func addCatalogTools(server *sdk.Server, text sdk.ResourceHandler) {
	type word struct{ Word string }
	add := func(name string, f func(ctx context.Context, r *sdk.CallToolRequest, word string) error) {
		server.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var in word
			if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
				return nil, err
			}
			return says("done"), f(ctx, r, in.Word)
		})
	}
	add("more", func(_ context.Context, _ *sdk.CallToolRequest, word string) error {
		server.AddResource(&sdk.Resource{URI: "book://" + word, Name: word}, text)
		return nil
	})
	add("prompted", func(_ context.Context, _ *sdk.CallToolRequest, word string) error {
		server.AddPrompt(&sdk.Prompt{Name: word}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{}, nil
		})
		return nil
	})
	add("touch", func(ctx context.Context, _ *sdk.CallToolRequest, word string) error {
		return server.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: word})
	})
	add("chat", func(ctx context.Context, r *sdk.CallToolRequest, word string) error {
		for _, level := range []sdk.LoggingLevel{"debug", "info", "error"} {
			if err := r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: level, Logger: "l", Data: map[string]any{"said": word}}); err != nil {
				return err
			}
		}
		return nil
	})
	add("wait", func(_ context.Context, _ *sdk.CallToolRequest, word string) error {
		if err := os.WriteFile(word+".begun", []byte("x"), 0o600); err != nil {
			return err
		}
		return exists(word)
	})
}

// catalogEntry is an entry of a librarian that is a program; far shelf of one by URL.
func (h *gatewaySetup) catalogEntry(revision string) string {
	return h.server("librarian", map[string]string{"REVISION": revision, "MORE": ""})
}

func (h *gatewaySetup) remoteCatalogEntry(revision string) string {
	server := newCatalogServer(revision)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: revision == modern})
	listener := httptest.NewServer(handler)
	h.t.Cleanup(listener.Close)
	return fmt.Sprintf(`{"type": "http", "url": %q}`, listener.URL)
}

const catalogEntries = `{"s": {"tools": {"more": {"effectClass": "pure"}, "prompted": {"effectClass": "pure"}, "touch": {"effectClass": "pure"}, "chat": {"effectClass": "pure"}, "wait": {"effectClass": "pure"}}}}`

func joined(all []string) string { return strings.Join(all, " ") }

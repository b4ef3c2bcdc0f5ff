package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// newRequestingServer is a server that asks its client for things, in the way of the revision that the client speaks.
func newRequestingServer(revision string) *sdk.Server {
	o := &sdk.ServerOptions{}
	if revision != "" {
		o.SupportedProtocolVersions = []string{revision}
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "asker", Version: "1"}, o)
	add := func(name string, f func(ctx context.Context, r *sdk.CallToolRequest, word string) (*sdk.CallToolResult, error)) {
		server.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var in struct{ Word string }
			if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
				return nil, err
			}
			return f(ctx, r, in.Word)
		})
	}
	add("echo", func(_ context.Context, _ *sdk.CallToolRequest, word string) (*sdk.CallToolResult, error) {
		return says("%s", word), nil
	})
	add("person", func(ctx context.Context, r *sdk.CallToolRequest, word string) (*sdk.CallToolResult, error) {
		return want(ctx, r, word, &sdk.ElicitParams{Message: "who? " + word, RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}},
		}})
	})
	add("again", func(_ context.Context, _ *sdk.CallToolRequest, word string) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"k": &sdk.ElicitParams{Message: "who? " + word, RequestedSchema: map[string]any{"type": "object"}}}, RequestState: "s"}, nil
	})
	add("model", func(ctx context.Context, r *sdk.CallToolRequest, word string) (*sdk.CallToolResult, error) {
		return want(ctx, r, word, &sdk.CreateMessageWithToolsParams{MaxTokens: 7, IncludeContext: "allServers", Messages: []*sdk.SamplingMessageV2{
			{Role: "user", Content: []sdk.Content{&sdk.TextContent{Text: "who? " + word}}},
		}})
	})
	add("page", func(ctx context.Context, r *sdk.CallToolRequest, word string) (*sdk.CallToolResult, error) {
		return want(ctx, r, word, &sdk.ElicitParams{Mode: "url", URL: word, ElicitationID: "e1", Message: "see this"})
	})
	add("folders", func(ctx context.Context, r *sdk.CallToolRequest, word string) (*sdk.CallToolResult, error) {
		return want(ctx, r, word, &sdk.ListRootsParams{})
	})
	add("late", func(ctx context.Context, r *sdk.CallToolRequest, word string) (*sdk.CallToolResult, error) {
		if err := os.WriteFile(os.Getenv("TOLD")+".begun", []byte("x"), 0o600); err != nil {
			return nil, err
		}
		<-ctx.Done()
		if err := exists(os.Getenv("TOLD") + ".under"); err != nil { // and asks all the same
			return nil, err
		}
		_, err := r.Session.Elicit(context.WithoutCancel(ctx), &sdk.ElicitParams{Message: "who? late " + word, RequestedSchema: map[string]any{"type": "object"}})
		if err := os.WriteFile(os.Getenv("TOLD"), fmt.Append(nil, err), 0o600); err != nil {
			return nil, err
		}
		return says("late"), nil
	})
	add("begun", func(context.Context, *sdk.CallToolRequest, string) (*sdk.CallToolResult, error) {
		return says("yes"), exists(os.Getenv("TOLD") + ".begun")
	})
	add("told", func(context.Context, *sdk.CallToolRequest, string) (*sdk.CallToolResult, error) {
		if err := os.WriteFile(os.Getenv("TOLD")+".under", []byte("x"), 0o600); err != nil {
			return nil, err
		}
		return says("yes"), exists(os.Getenv("TOLD"))
	})
	add("held", func(ctx context.Context, r *sdk.CallToolRequest, word string) (*sdk.CallToolResult, error) {
		if _, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "go on?", RequestedSchema: map[string]any{"type": "object"}}); err != nil {
			return nil, err
		}
		return says("%s", word), exists(os.Getenv("TOLD"))
	})
	return server
}

// exists waits until there is a file with something in it.
func exists(path string) error {
	for {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			return nil
		}
		time.Sleep(time.Millisecond) // nobody can tell it
	}
}

func says(format string, args ...any) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

const secretState = "the server's own state of "

// want asks for one thing, and says what came.
func want(ctx context.Context, r *sdk.CallToolRequest, word string, p sdk.InputRequest) (*sdk.CallToolResult, error) {
	if r.ProtocolVersion() >= "2026-07-28" {
		if r.Params.RequestState == "" {
			caps := r.ClientCapabilities()
			_, person := p.(*sdk.ElicitParams)
			_, model := p.(*sdk.CreateMessageWithToolsParams)
			if person && (caps == nil || caps.Elicitation == nil) || model && (caps == nil || caps.Sampling == nil) {
				return says("%s: the client cannot", word), nil
			}
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"k " + word: p}, RequestState: secretState + word}, nil
		}
		if r.Params.RequestState != secretState+word {
			return nil, errors.New("another state came back: " + r.Params.RequestState)
		}
		return says("%s: %s", word, responseText(r.Params.InputResponses["k "+word])), nil
	}
	var a sdk.InputResponse
	var err error
	switch p := p.(type) {
	case *sdk.ElicitParams:
		a, err = r.Session.Elicit(ctx, p)
	case *sdk.CreateMessageWithToolsParams:
		a, err = r.Session.CreateMessageWithTools(ctx, p)
	case *sdk.ListRootsParams:
		a, err = r.Session.ListRoots(ctx, p)
	}
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		return says("%s: refused %d %s", word, refused.Code, refused.Message), nil
	}
	if err != nil {
		return nil, err
	}
	return says("%s: %s", word, responseText(a)), nil
}

func responseText(a sdk.InputResponse) string {
	switch a := a.(type) {
	case *sdk.ElicitResult:
		return fmt.Sprint(a.Action, " ", a.Content["name"])
	case *sdk.CreateMessageWithToolsResult:
		if text, ok := a.Content[0].(*sdk.TextContent); ok {
			return a.Model + " " + text.Text
		}
	case *sdk.ListRootsResult:
		var all []string
		for _, r := range a.Roots {
			all = append(all, r.Name+"="+r.URI)
		}
		return strings.Join(all, " ")
	}
	return fmt.Sprintf("%T", a)
}

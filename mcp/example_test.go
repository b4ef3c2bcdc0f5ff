package mcp_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// A client in the same process, connected in memory.
func Example() {
	ctx := context.Background()
	upper, err := tool.Create("upper", "Upper-case a text.", func(_ context.Context, in string) (string, error) {
		return strings.ToUpper(in), nil
	}, tool.Pure())
	if err != nil {
		panic(err)
	}
	rt, err := agent.New(agent.Tools(upper), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close() }()
	srv, err := mcp.New(rt, mcp.Options{})
	if err != nil {
		panic(err)
	}
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"}, agent.ClientProfile(perm.ClientFacts{Surface: mcp.Surface}))
	if err != nil {
		panic(err)
	}
	here, there := sdk.NewInMemoryTransports()
	go func() { _ = srv.Run(ctx, there, s) }()
	client, err := sdk.NewClient(&sdk.Implementation{Name: "example"}, nil).Connect(ctx, here, nil)
	if err != nil {
		panic(err)
	}
	defer func() { _ = client.Close() }()
	r, err := client.CallTool(ctx, &sdk.CallToolParams{Name: "upper", Arguments: map[string]any{"input": "hi"}})
	if err != nil {
		panic(err)
	}
	text, _ := r.Content[0].(*sdk.TextContent)
	fmt.Println(text.Text, r.Meta["remit.dev/status"])
	// Output: HI done
}

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/host"
)

// countedForTests is the command as it is, with one thing beside: whoever connects to the socket that COUNTED names is told how
// many goroutines there are, and their stacks.
func countedForTests() {
	l, err := net.Listen("unix", os.Getenv("COUNTED"))
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = fmt.Fprintln(c, runtime.NumGoroutine())
			_ = pprof.Lookup("goroutine").WriteTo(c, 1)
			_ = c.Close()
		}
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code := run(ctx, os.Args[1:], cli.Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Host: host.Real(), Username: userName, OpenTTY: cli.OpenTerminal, Caller: personHere})
	stop()
	os.Exit(code)
}

// peerForTests is an MCP server of somebody, which says what it hears.
func peerForTests() {
	server := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
	type said struct {
		Text string `json:"text"`
	}
	sdk.AddTool(server, &sdk.Tool{Name: "echo", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, in said) (*sdk.CallToolResult, said, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}}}, in, nil
		})
	sdk.AddTool(server, &sdk.Tool{Name: "wait", Description: "Wait until a file is there; one beside it says that it does."},
		func(ctx context.Context, _ *sdk.CallToolRequest, in said) (*sdk.CallToolResult, any, error) {
			if err := os.WriteFile(in.Text+".waits", nil, 0o600); err != nil {
				return nil, nil, err
			}
			for ctx.Err() == nil {
				if _, err := os.Stat(in.Text); err == nil {
					return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "it is there"}}}, nil, nil
				}
				time.Sleep(time.Millisecond) // nobody can tell it
			}
			return nil, nil, ctx.Err()
		})
	if err := server.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

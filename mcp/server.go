package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/tool"
)

// Surface is what sessions that clients of the protocol act in are shown to, in perm.ClientFacts.
const Surface = "mcp"

// Options configure a Server. The zero Options are the defaults.
type Options struct {
	Name         string // of the server, for people; default "remit"
	Version      string
	Instructions string // for the model, how to use the server; empty: none

	Mirror Mirror       // of tools that stand for those of other servers; nil: there are none
	Log    *slog.Logger // default: nothing is logged
}

// Mirror knows which tools of the runtime stand for tools of other servers, and how those look. It is safe for
// concurrent use. Package gateway has one.
type Mirror interface {
	// Listed returns how a tool is listed: a Tool object of the protocol, with the name that clients know it by. It is
	// false for a tool that stands for no other.
	Listed(t tool.Tool) (object json.RawMessage, ok bool)
	// Called returns the name of the runtime's tool that clients know by a name; false where it knows none.
	Called(name string) (tool string, ok bool)
}

// Server serves the tools of one runtime to any number of clients. It is safe for concurrent use.
type Server struct {
	rt   *agent.Runtime
	opts Options
	sdk  *sdk.Server
}

// New makes a server of a runtime's tools. It opens nothing and starts nothing.
func New(rt *agent.Runtime, opts Options) (*Server, error) {
	if rt == nil {
		return nil, errors.New("mcp: the runtime is nil")
	}
	if opts.Name == "" {
		opts.Name = "remit"
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{rt: rt, opts: opts}
	s.sdk = sdk.NewServer(&sdk.Implementation{Name: opts.Name, Version: opts.Version}, &sdk.ServerOptions{
		Instructions: opts.Instructions,
		Logger:       slog.New(slog.DiscardHandler), // it logs each connection, and some of what clients send
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
	})
	s.sdk.AddReceivingMiddleware(s.receive)
	return s, nil
}

// receive answers what is about tools, which depends on the session, and leaves the rest to the SDK.
func (s *Server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch req := req.(type) {
		case *sdk.ListToolsRequest:
			return s.listTools(ctx, req)
		case *sdk.CallToolRequest:
			return s.callTool(ctx, req)
		}
		return next(ctx, method, req)
	}
}

// Run serves one client, which acts in the session, until it goes away or the context ends.
func (s *Server) Run(ctx context.Context, t sdk.Transport, in *agent.Session) error {
	if in == nil {
		return errors.New("mcp: the session is nil")
	}
	return s.sdk.Run(within(ctx, in), t)
}

// ToolsChanged tells clients that the tools of the runtime are others by now; call it after agent.Runtime.SetTools.
func (s *Server) ToolsChanged() {
	// What the SDK holds is listed nowhere; that it was touched is what it tells its clients.
	s.sdk.AddTool(&sdk.Tool{Name: "changed", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("mcp: answered elsewhere")
	})
}

type sessionKey struct{}

func within(ctx context.Context, in *agent.Session) context.Context {
	return context.WithValue(ctx, sessionKey{}, in)
}

// session is who the client of a request acts as.
func (s *Server) session(ctx context.Context) (*agent.Session, error) {
	if in, ok := ctx.Value(sessionKey{}).(*agent.Session); ok && in != nil {
		return in, nil
	}
	return nil, errors.New("mcp: the request belongs to no session")
}

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp/internal/panics"
	"github.com/remit-dev/remit/tool"
)

// Surface is the perm.ClientFacts surface of sessions that MCP clients use.
const Surface = "mcp"

// Options configure a Server. The zero Options are the defaults.
type Options struct {
	Name         string // server name for people; default "remit"
	Version      string
	Instructions string // tell the model how to use the server; default none

	// NoTransactions omits the tools txn_begin, txn_commit, txn_preview,
	// txn_revert and txn_status. Otherwise these names are reserved, and the
	// server does not serve a tool of the runtime that has one.
	NoTransactions bool
	OnAsk          ApprovalMode
	// Key seals the request states that clients carry: at least 16 secret
	// random bytes, the same after a restart. If nil, the server uses a random
	// key, and asks again after a restart.
	Key []byte

	MaxSessions        int // client sessions in memory; those with nothing open are dropped, least recently used first; default 4,096
	MaxCallsPerSession int // running calls of one session, others wait; default 64
	MaxTxnsPerSession  int // open transactions of one session; default 64

	// Tasks names tools whose calls are always tasks of the Tasks extension.
	// Clients without the extension cannot call them. Calls of other tools
	// become tasks if they last and their client supports tasks.
	Tasks              []string
	TaskAfter          time.Duration // time until a call becomes a task; default 5 seconds
	TaskTimeout        time.Duration // time of a task, within the timeout of its tool; default 1 hour
	TaskPollInterval   time.Duration // poll interval for clients; default 2 seconds
	MaxTasksPerSession int           // running tasks of one session; requests of further calls wait; default 16

	Mirror Mirror       // of upstream tools, such as a gateway.Gateway; a Catalog if they have resources and prompts; default none
	Log    *slog.Logger // default: no log
}

func (o Options) withDefaults() (Options, error) {
	for _, n := range []struct {
		of       *int
		standard int
	}{{&o.MaxSessions, 4096}, {&o.MaxCallsPerSession, 64}, {&o.MaxTxnsPerSession, 64}, {&o.MaxTasksPerSession, 16}} {
		if *n.of < 0 {
			return o, errors.New("mcp: a limit is negative; 0 is the default")
		}
		if *n.of == 0 {
			*n.of = n.standard
		}
	}
	for _, d := range []struct {
		of       *time.Duration
		standard time.Duration
	}{{&o.TaskAfter, 5 * time.Second}, {&o.TaskTimeout, time.Hour}, {&o.TaskPollInterval, 2 * time.Second}} {
		if *d.of < 0 {
			return o, errors.New("mcp: a time is negative; 0 is the default")
		}
		if *d.of == 0 {
			*d.of = d.standard
		}
	}
	if o.Name == "" {
		o.Name = "remit"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// Mirror maps tools of the runtime to upstream tools. It is safe for concurrent
// use. Package gateway has one.
type Mirror interface {
	// UpstreamDefinition returns the listing of a tool: a Tool object of the
	// protocol, with the name that clients know. The object is nil if clients
	// read the tool's entry in other ways. It returns false for a tool that
	// mirrors no upstream tool.
	UpstreamDefinition(t tool.Tool) (object json.RawMessage, ok bool)
	// UpstreamTool returns the runtime's name of a tool that clients know by a
	// name. It returns false for an unknown name.
	UpstreamTool(name string) (tool string, ok bool)
}

// ClientRequester is a Mirror that knows which client features upstreams can
// use. A call that cannot ask its client takes less work.
type ClientRequester interface {
	Mirror

	// MayRequestClient reports whether a tool can send the client of a call a
	// request that such a client supports. It is true for a tool that mirrors
	// no upstream tool.
	MayRequestClient(t tool.Tool, can *sdk.ClientCapabilities) bool
}

// Awaiter is a Mirror whose upstreams can respond late.
type Awaiter interface {
	Mirror

	// AwaitNew waits a moment for upstreams that have not responded yet, before
	// the server lists tools.
	AwaitNew(ctx context.Context)
	// AwaitTool waits for the upstream of a tool, by the name that clients
	// know, if the upstream has not responded yet. The error names the upstream
	// and says why it is not available.
	AwaitTool(ctx context.Context, name string) error
}

// Server serves the tools of one runtime to any number of clients. It is safe for concurrent use.
type Server struct {
	rt        *agent.Runtime
	opts      Options
	sdk       *sdk.Server
	about     *sdk.Implementation // name and version of this server
	own       []transactionTool
	described *lru.Cache[tool.Tool, listItem]
	sealer    stateSealer
	sessions  *clientSessions

	catalog   Catalog         // nil: there is none
	requester ClientRequester // nil: any tool can ask
	offers    resourceSet
	traffic   requestCounter
	runs      backgroundCalls
	ties      legacyConnStates
}

// New makes a server of a runtime's tools. It opens and starts nothing.
func New(rt *agent.Runtime, opts Options) (*Server, error) {
	if rt == nil {
		return nil, errors.New("mcp: the runtime is nil")
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{rt: rt, opts: opts, about: &sdk.Implementation{Name: opts.Name, Version: opts.Version}}
	if s.sealer, err = newSealer(opts.Key); err != nil {
		return nil, err
	}
	if s.described, err = lru.New[tool.Tool, listItem](maxDescribed); err != nil {
		return nil, err
	}
	if s.sessions, err = newClientSessions(opts.MaxSessions); err != nil {
		return nil, err
	}
	if !opts.NoTransactions {
		s.own = transactionTools()
	}
	caps := &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}, Logging: &sdk.LoggingCapabilities{}}
	caps.AddExtension(tasksExtension, nil)
	s.sdk = sdk.NewServer(s.about, &sdk.ServerOptions{
		Instructions: opts.Instructions, Capabilities: caps,
		Logger: slog.New(slog.DiscardHandler), // the SDK logs each connection, and parts of what clients send
		// The method receive decides these requests, as it knows the client.
		// The SDK declares the capability if the handlers are set.
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
		CompletionHandler:  func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) { return nil, errElsewhere },
	})
	if err := s.addTasks(); err != nil {
		return nil, err
	}
	s.sdk.AddReceivingMiddleware(panics.Middleware(opts.Log), s.receive)
	s.sdk.AddSendingMiddleware(s.send)
	s.catalog, _ = opts.Mirror.(Catalog)
	s.requester, _ = opts.Mirror.(ClientRequester)
	s.CatalogChanged()
	return s, nil
}

// receive serves the requests that depend on the session, and leaves the others
// to the SDK.
func (s *Server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if ss, ok := req.GetSession().(*sdk.ServerSession); ok {
			defer s.uses(ctx, req.GetExtra(), ss)()
		}
		if listen, ok := req.(*sdk.SubscriptionsListenRequest); ok && s.serves(method) {
			end, err := s.watches(ctx, listen)
			if err != nil {
				return nil, err
			}
			defer end()
		}
		r, answered, err := s.answer(ctx, method, req)
		switch {
		case err != nil:
			return nil, err
		case answered:
			return r, nil
		}
		if listen, ok := req.(*sdk.SubscriptionsListenRequest); ok {
			if l, err := s.listens(ctx, listen); err != nil {
				return nil, err
			} else if l != nil {
				return l.serveRequest(ctx, req, next)
			}
		}
		said, err := next(ctx, method, req)
		if err != nil {
			return nil, err // the result can be a typed nil
		}
		switch said := said.(type) {
		case *sdk.InitializeResult:
			s.able(said.Capabilities)
		case *sdk.DiscoverResult:
			s.able(said.Capabilities)
		}
		return said, nil
	}
}

// answer serves a request, if it depends on the session.
func (s *Server) answer(ctx context.Context, method string, req sdk.Request) (r *wireResult, answered bool, err error) {
	if !s.serves(method) {
		return nil, false, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", method)}
	}
	switch req := req.(type) {
	case *sdk.ListToolsRequest:
		r, err = s.listTools(ctx, req)
	case *sdk.CallToolRequest:
		r, err = s.callTool(ctx, req)
	case *sdk.ListResourcesRequest:
		r, err = s.listResources(ctx, req.Extra, req.ProtocolVersion(), cursorOf(req.Params), false)
	case *sdk.ListResourceTemplatesRequest:
		r, err = s.listResources(ctx, req.Extra, req.ProtocolVersion(), cursorOf(req.Params), true)
	case *sdk.ReadResourceRequest:
		r, err = s.readResource(ctx, req)
	case *sdk.SubscribeRequest:
		return nil, false, s.subscribes(ctx, req)
	case *sdk.UnsubscribeRequest:
		s.unsubscribes(req)
		return nil, false, nil
	case *sdk.ServerRequest[*sdk.SetLoggingLevelParams]:
		s.ties.with(req.Session, func(t *legacyConnState) { t.level = req.Params.Level })
		return nil, false, nil
	case *sdk.ListPromptsRequest:
		r, err = s.listPrompts(ctx, req)
	case *sdk.GetPromptRequest:
		r, err = s.getPrompt(ctx, req)
	case *sdk.CompleteRequest:
		r, err = s.complete(ctx, req)
	case *taskRequest:
		r, err = s.tasks(ctx, method, req)
	case *sdk.ServerRequest[*sdk.InitializeParams]:
		return nil, false, s.connects(ctx, req)
	default:
		return nil, false, nil
	}
	return r, true, err
}

// connects counts a new legacy connection. That of Run is the only one of its
// session.
func (s *Server) connects(ctx context.Context, req *sdk.ServerRequest[*sdk.InitializeParams]) error {
	if req.Extra == nil || req.Extra.TokenInfo == nil {
		return nil
	}
	st, err := s.clientSessionOf(ctx, req.Extra)
	if err != nil {
		return err
	}
	return s.join(st, req.Session)
}

// Run serves one client, which acts in the session, until the client
// disconnects or the context ends.
func (s *Server) Run(ctx context.Context, t sdk.Transport, in *agent.Session) error {
	if in == nil {
		return errors.New("mcp: the session is nil")
	}
	st, err := s.newClientSession(ctx, in)
	if err != nil {
		return err
	}
	defer func() { // no request continues their calls
		over, cancel := context.WithTimeout(context.WithoutCancel(ctx), ending)
		defer cancel()
		s.runs.end(over, st)
	}()
	return s.sdk.Run(context.WithValue(ctx, clientSessionKey{}, st), t)
}

// RunIO is Run over a pair of streams with one message on each line, such as
// standard input and output.
func (s *Server) RunIO(ctx context.Context, in io.ReadCloser, out io.WriteCloser, who *agent.Session) error {
	l := &drainTransport{Transport: &sdk.IOTransport{Reader: in, Writer: out}}
	err := s.Run(context.WithValue(ctx, notifierKey{}, notifier(l)), l, who)
	if errors.Is(err, io.EOF) {
		return nil // the client disconnected
	}
	return err
}

// ToolsChanged notifies clients that the tools of the runtime changed. Call it
// after agent.Runtime.SetTools.
func (s *Server) ToolsChanged() {
	// Clients never see this tool of the SDK. Changing it makes the SDK notify
	// its clients.
	s.sdk.AddTool(&sdk.Tool{Name: "changed", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("mcp: answered elsewhere")
	})
}

type clientSessionKey struct{}

// clientSessionOf returns the client session of a request: by the proof in the
// request, or, for the one client of Run, by the connection.
func (s *Server) clientSessionOf(ctx context.Context, extra *sdk.RequestExtra) (*clientSession, error) {
	if extra != nil && extra.TokenInfo != nil {
		if st, ok := extra.TokenInfo.Extra[tokenSession].(*clientSession); ok && st != nil {
			return st, nil
		}
		return nil, errNoSession
	}
	if st, ok := ctx.Value(clientSessionKey{}).(*clientSession); ok && st != nil {
		return st, nil
	}
	return nil, errNoSession
}

const tokenSession = "session"

var errNoSession = errors.New("mcp: the request belongs to no session")

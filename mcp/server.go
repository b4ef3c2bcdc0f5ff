package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp/internal/panics"
	"github.com/remit-dev/remit/tool"
)

// Surface is what sessions that clients of the protocol act in are shown to, in perm.ClientFacts.
const Surface = "mcp"

// Options configure a Server. The zero Options are the defaults.
type Options struct {
	Name         string // of the server, for people; default "remit"
	Version      string
	Instructions string // for the model, how to use the server; empty: none

	// NoTransactions leaves the tools txn_begin, txn_commit, txn_preview, txn_revert and txn_status out. Else these
	// names are theirs, and a tool of the runtime that has one is not served.
	NoTransactions bool
	OnAsk          ApprovalMode
	// Key seals what a client carries from a question to its answer: at least 16 random bytes, secret and the same
	// after a restart; nil: random, so that questions from before a restart are asked again.
	Key []byte

	MaxSessions        int // that are kept in memory, the last used ones of those that have nothing open; default 4,096
	MaxCallsPerSession int // of one session at once, others wait; default 64
	MaxTxnsPerSession  int // that one session may have open; default 64

	// Tasks are tools whose calls are tasks of the Tasks extension from the start; a client that does not know tasks cannot call
	// them. Calls of other tools are, too, where they last and their client knows tasks.
	Tasks              []string
	TaskAfter          time.Duration // how long a call may last before it goes on as a task; default 5 seconds
	TaskTimeout        time.Duration // how long it may run as one, within the time that its tool has; default 1 hour
	TaskPollInterval   time.Duration // how often clients are told to ask how one stands; default 2 seconds
	MaxTasksPerSession int           // that one session may have running, others are waited for; default 16

	Mirror Mirror       // of tools that stand for those of other servers, such as a gateway.Gateway; a Library where they have more; nil: there are none
	Log    *slog.Logger // default: nothing is logged
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

// Mirror knows which tools of the runtime stand for tools of other servers, and how those look. It is safe for
// concurrent use. Package gateway has one.
type Mirror interface {
	// UpstreamDefinition returns how a tool is listed: a Tool object of the protocol, with the name that clients know it by, or nil where it is
	// none for clients, because it stands for what they read in other ways. It is false for a tool that stands for no other.
	UpstreamDefinition(t tool.Tool) (object json.RawMessage, ok bool)
	// UpstreamTool returns the name of the runtime's tool that clients know by a name; false where it knows none.
	UpstreamTool(name string) (tool string, ok bool)
}

// ClientRequester is a Mirror that knows what other servers may ask. A call in which nobody can be asked is answered with less work.
type ClientRequester interface {
	Mirror

	// MayRequestClient reports whether a tool may ask the client of a call for something that such a client can. It is true for a tool that stands
	// for no other.
	MayRequestClient(t tool.Tool, can *sdk.ClientCapabilities) bool
}

// Awaiter is a Mirror whose servers may not have answered yet.
type Awaiter interface {
	Mirror

	// AwaitNew waits a moment for servers that nothing is known of, before a list is answered.
	AwaitNew(ctx context.Context)
	// AwaitTool waits for the server of a tool, by the name that clients know, if nothing is known of it. The error says which server that
	// is, and why it is not there.
	AwaitTool(ctx context.Context, name string) error
}

// Server serves the tools of one runtime to any number of clients. It is safe for concurrent use.
type Server struct {
	rt     *agent.Runtime
	opts   Options
	sdk    *sdk.Server
	about  *sdk.Implementation // which server this is
	own    []transactionTool
	sealer stateSealer
	seats  *clientSessions

	library Catalog         // nil: there is none
	asker   ClientRequester // nil: any tool may ask
	offers  resourceSet
	traffic requestCounter
	runs    backgroundCalls
	ties    legacyConnStates
}

// New makes a server of a runtime's tools. It opens nothing and starts nothing.
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
	if s.seats, err = newSeats(opts.MaxSessions); err != nil {
		return nil, err
	}
	if !opts.NoTransactions {
		s.own = transactionTools()
	}
	caps := &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}, Logging: &sdk.LoggingCapabilities{}}
	caps.AddExtension(tasksExtension, nil)
	s.sdk = sdk.NewServer(s.about, &sdk.ServerOptions{
		Instructions: opts.Instructions, Capabilities: caps,
		Logger: slog.New(slog.DiscardHandler), // it logs each connection, and some of what clients send
		// What these decide is decided in receive, which knows who asks; that they are there is what the SDK goes by.
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
		CompletionHandler:  func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) { return nil, errElsewhere },
	})
	if err := s.addTasks(); err != nil {
		return nil, err
	}
	s.sdk.AddReceivingMiddleware(panics.Middleware(opts.Log), s.receive)
	s.sdk.AddSendingMiddleware(s.send)
	s.library, _ = opts.Mirror.(Catalog)
	s.asker, _ = opts.Mirror.(ClientRequester)
	s.CatalogChanged()
	return s, nil
}

// receive answers what depends on the session, and leaves the rest to the SDK.
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
				return l.attend(ctx, req, next)
			}
		}
		said, err := next(ctx, method, req)
		if err != nil {
			return nil, err // what comes with it may be a nil of its type
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

// answer answers a request, if it is one that depends on the session.
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

// connects is asked about a connection that is to stay. That of Run is the only one of its session.
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

// Run serves one client, which acts in the session, until it goes away or the context ends.
func (s *Server) Run(ctx context.Context, t sdk.Transport, in *agent.Session) error {
	if in == nil {
		return errors.New("mcp: the session is nil")
	}
	st, err := s.newClientSession(ctx, in)
	if err != nil {
		return err
	}
	defer func() { // nobody goes on with what they were asked
		over, cancel := context.WithTimeout(context.WithoutCancel(ctx), ending)
		defer cancel()
		s.runs.end(over, st)
	}()
	return s.sdk.Run(context.WithValue(ctx, clientSessionKey{}, st), t)
}

// RunIO is Run over a pair of streams, one message a line, such as the standard ones of a process.
func (s *Server) RunIO(ctx context.Context, in io.ReadCloser, out io.WriteCloser, who *agent.Session) error {
	l := &drainTransport{Transport: &sdk.IOTransport{Reader: in, Writer: out}}
	err := s.Run(context.WithValue(ctx, notifierKey{}, notifier(l)), l, who)
	if errors.Is(err, io.EOF) {
		return nil // it went away
	}
	return err
}

// ToolsChanged tells clients that the tools of the runtime are others by now; call it after agent.Runtime.SetTools.
func (s *Server) ToolsChanged() {
	// What the SDK holds is listed nowhere; that it was touched is what it tells its clients.
	s.sdk.AddTool(&sdk.Tool{Name: "changed", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("mcp: answered elsewhere")
	})
}

type clientSessionKey struct{}

// clientSessionOf is who the client of a request acts as: by what the request itself proves, or, for the one client of Run, by the
// connection.
func (s *Server) clientSessionOf(ctx context.Context, extra *sdk.RequestExtra) (*clientSession, error) {
	if extra != nil && extra.TokenInfo != nil {
		if st, ok := extra.TokenInfo.Extra[tokenSeat].(*clientSession); ok && st != nil {
			return st, nil
		}
		return nil, errNoSession
	}
	if st, ok := ctx.Value(clientSessionKey{}).(*clientSession); ok && st != nil {
		return st, nil
	}
	return nil, errNoSession
}

const tokenSeat = "seat"

var errNoSession = errors.New("mcp: the request belongs to no session")

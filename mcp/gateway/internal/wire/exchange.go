package wire

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/mcp/internal/clientctx"
)

// Client sends requests to one upstream. There are two: sdkClient sends any
// request by the session of the SDK, and interceptConn writes tool calls to the
// pipe of a server by command itself.
//
// The second client exists because of what the SDK does with a tool call. It
// decodes each result into its types, which the gateway does not read and which
// cost more than the rest of a call. It can deliver a progress report after the
// result. And it does not say whether the server got the call, so a call of
// which the server read nothing has no known outcome.
type Client interface {
	// Send sends one round of a request, and returns when the response slot has
	// the response. An error other than the context's means that the connection
	// has ended, or that the server rejected the request.
	Send(ctx context.Context, c *ResponseSlot, w Request, r Round) error
}

// sdkClient sends requests by the session of the SDK.
type sdkClient struct{ cs *sdk.ClientSession }

// Send sends one round of a request.
func (d sdkClient) Send(ctx context.Context, c *ResponseSlot, w Request, r Round) error {
	defer c.of.progress.follow()()
	return w.send(ctx, d.cs, r)
}

// Exchange is the message state of one connection to an upstream: the calls in
// flight, and their progress.
type Exchange struct {
	Flights  InFlightCalls
	Apart    bool // client requests come outside the responses to calls, and do not name their call
	progress progressRelays
	direct   Client // for tool calls; nil: the SDK sends everything
}

// Client returns the client for a request.
func (x *Exchange) Client(cs *sdk.ClientSession, w Request) Client {
	if x.direct != nil && w.call != nil {
		return x.direct
	}
	return sdkClient{cs}
}

// UseSDK makes tool calls go through the SDK too. Tests compare both clients.
func (x *Exchange) UseSDK() { x.direct = nil }

// Begin adds a call before it is sent. Log is that of the client. Report
// receives the progress of the call, whose token is token; nil if it is
// unwanted. When the call has ended, the caller calls end, which waits until
// its client requests have ended and the client has its log messages.
func (x *Exchange) Begin(f *InFlightCall, log clientctx.Log, token string, report func(done, total float64, message string)) (end func(ctx context.Context)) {
	var forget func()
	f.progress, forget = x.progress.begin(token, report, x.direct != nil)
	f.requestLock, f.logs = make(chan struct{}, 1), newLogRelay(log)
	x.Flights.begin(f)
	return func(ctx context.Context) {
		f.pending.Wait()
		f.logs.end(ctx)
		forget()
	}
}

// Report takes a progress report that came through the SDK.
func (x *Exchange) Report(p *sdk.ProgressNotificationParams) { x.progress.report(p) }

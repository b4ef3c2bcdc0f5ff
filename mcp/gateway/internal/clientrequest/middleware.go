package clientrequest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
)

// Middleware serves the client requests of a server during a call.
func (w *Forwarder) Middleware(x *wire.Exchange) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			switch r := r.(type) {
			case *sdk.ElicitRequest:
				if r.Params == nil {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "an elicitation says what it asks"}
				}
				return asked[*sdk.ElicitResult](ctx, w, x, r.Params)
			case *sdk.CreateMessageWithToolsRequest:
				return asked[*sdk.CreateMessageWithToolsResult](ctx, w, x, r.Params)
			case *sdk.ElicitationCompleteNotificationRequest:
				return nil, nil // no handler waits for it, and the SDK requires content
			case *sdk.ClientRequest[*sdk.CompleteParams]:
				return nil, cannot(method) // the SDK would ping the server in turn
			case *sdk.ListRootsRequest:
				switch {
				case w.Allows(config.Roots):
					return asked[*sdk.ListRootsResult](ctx, w, x, cmp.Or(r.Params, &sdk.ListRootsParams{}))
				case len(w.Server.Roots) == 0:
					return nil, cannot("roots")
				}
			}
			return next(ctx, method, r)
		}
	}
}

type input interface {
	sdk.InputRequest
	sdk.Params
}

type output interface {
	comparable
	sdk.InputResponse
	sdk.Result
}

// onlyOne is the key of a single client request.
const onlyOne = "asked"

// asked asks the client of the one call that a server request can belong to.
func asked[R output](ctx context.Context, w *Forwarder, x *wire.Exchange, p input) (sdk.Result, error) {
	meta := p.GetMeta()
	id, _ := meta[wire.KeyCall].(string)
	delete(meta, wire.KeyCall)
	f, leave, ok := x.Flights.Enter(id)
	if !ok {
		return nil, w.unattributedReason(x)
	}
	defer leave()
	asking, cancel := context.WithCancelCause(f.Context)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(errors.New("the server wants no answer any more")) })()
	all, err := w.Ask(asking, f, sdk.InputRequestMap{onlyOne: p})
	var said *jsonrpc.Error
	var denied *deniedError
	switch {
	case errors.As(err, &denied): // the server does not learn why
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the client may not be asked for " + denied.what}
	case errors.As(err, &said):
		return nil, said
	case err != nil:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	var none R
	answer, ok := all[onlyOne].(R)
	if !ok || answer == none {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the client answered with something else"}
	}
	return answer, nil
}

// unattributedReason returns why the gateway cannot send a request to a client.
// From then on, the gateway calls the tools that may have asked one at a time.
func (w *Forwarder) unattributedReason(x *wire.Exchange) error {
	tools, lost := x.Flights.Tools()
	why := "no call is under way that this is for"
	switch {
	case lost:
		why = "a call was given up before it was answered, and it is unknown for which call this is; restart the server"
	case len(tools) > 1:
		w.RunExclusively(tools)
		why = fmt.Sprintf("several calls are under way (%s), and it is unknown for which call this is; from now on the gateway makes one call at a time", printable(tools))
	}
	w.Log.Warn("a request of a server to its client is refused", "server", w.Server.Name, "why", why)
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: why}
}

func printable(names []string) string { return canon.Printable(strings.Join(names, ", "), 256) }

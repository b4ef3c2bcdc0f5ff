// Package panics has a panic end the one request that it is of. The SDK answers each request on a goroutine of its own, and what
// panics there ends the process, with every other session in it.
package panics

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Middleware answers a request whose handling panics with an error.
func Middleware(log *slog.Logger) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (r sdk.Result, err error) {
			defer Catch(log, method, &err)
			return next(ctx, method, req)
		}
	}
}

// Catch makes, deferred, an error of a panic. The log is told of it all; who sent the request learns nothing of this program.
func Catch(log *slog.Logger, of string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	log.Error("a request ended in a panic", "request", of, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	*err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error; the log of the server says more"}
}

// Package panics limits a panic to its request. The SDK serves each request on
// its own goroutine, where a panic would end the process with all its sessions.
package panics

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Middleware returns an error for a request whose handler panics.
func Middleware(log *slog.Logger) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (r sdk.Result, err error) {
			defer Catch(log, method, &err)
			return next(ctx, method, req)
		}
	}
}

// Catch converts a panic to an error. It is deferred. The log gets all of it; the
// sender of the request learns nothing about this program.
func Catch(log *slog.Logger, of string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	log.Error("a request ended in a panic", "request", of, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	*err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error; the log of the server says more"}
}

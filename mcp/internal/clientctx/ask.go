// Package clientctx lets the call of an upstream tool send requests to its
// client, for input of the user or a response of the model, and write to the
// client's log.
package clientctx

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Client is the client that made a call.
type Client interface {
	// Capabilities returns the capabilities that the client reports; nil means
	// none.
	Capabilities() *sdk.ClientCapabilities
	// Request sends the client all requests of a map, and returns its responses
	// under the same keys. Missing keys have no response. A *jsonrpc.Error is
	// the client's own.
	Request(ctx context.Context, what sdk.InputRequestMap) (sdk.InputResponseMap, error)
}

type key struct{}

// With returns a context for a call of a client.
func With(ctx context.Context, c Client) context.Context { return context.WithValue(ctx, key{}, c) }

// Of returns the client of a context's call, or nil if no client can be asked.
func Of(ctx context.Context) Client {
	c, _ := ctx.Value(key{}).(Client)
	return c
}

// Log receives the log messages of an upstream for its client. The zero Log
// wants none.
type Log struct {
	Session string           // session of the client
	Level   sdk.LoggingLevel // lowest wanted level; empty: none
	Say     func(*sdk.LoggingMessageParams)
}

type logKey struct{}

// WithLog returns a context for a call with a client's log.
func WithLog(ctx context.Context, l Log) context.Context { return context.WithValue(ctx, logKey{}, l) }

// LogOf returns the log of a context's call.
func LogOf(ctx context.Context) Log {
	l, _ := ctx.Value(logKey{}).(Log)
	return l
}

// Package clientctx lets the call of another server's tool ask the client that made it: for what a person fills in, or for what its
// model says; and tell its log.
package clientctx

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Client is who made a call.
type Client interface {
	// Capabilities is what the client says that it can; nil is nothing.
	Capabilities() *sdk.ClientCapabilities
	// Request asks the client all that is in a map, and returns what it answered by the same keys. What the client did not
	// answer is missing. An error that is a *jsonrpc.Error is the client's own.
	Request(ctx context.Context, what sdk.InputRequestMap) (sdk.InputResponseMap, error)
}

type key struct{}

// With returns a context whose call was made by a client.
func With(ctx context.Context, c Client) context.Context { return context.WithValue(ctx, key{}, c) }

// Of returns who made the call of the context, nil where that is nobody who can be asked.
func Of(ctx context.Context) Client {
	c, _ := ctx.Value(key{}).(Client)
	return c
}

// Log is where what a server says for the log of its client goes. The zero Log wants nothing.
type Log struct {
	Session string           // whose client it is
	Level   sdk.LoggingLevel // that is wanted, and all above it; empty: nothing is
	Say     func(*sdk.LoggingMessageParams)
}

type logKey struct{}

// WithLog returns a context whose call has a log at its client.
func WithLog(ctx context.Context, l Log) context.Context { return context.WithValue(ctx, logKey{}, l) }

// LogOf returns the log of the call of a context.
func LogOf(ctx context.Context) Log {
	l, _ := ctx.Value(logKey{}).(Log)
	return l
}

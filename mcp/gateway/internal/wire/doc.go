// Package wire reads and writes the messages of a connection to an upstream.
//
// It wraps the transports of the SDK, routes each message before the SDK reads
// it, and keeps responses as the server wrote them. It attributes client
// requests, progress and log messages to calls in flight, and bounds what a
// server can send. [Client] says why there is a second client beside the SDK's.
package wire

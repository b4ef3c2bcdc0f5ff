package tool

import (
	"context"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
)

// Request describes one call. Input is an Args, a json.RawMessage, or a string
// for a free-form tool. A nil input is an empty object.
type Request struct {
	ID    string // call ID; empty: the runtime makes one
	Tool  string
	Input any
	Batch perm.BatchFacts
	Turn  int // number of its turn in the session, from 0
	// Progress receives the progress reports of the call, beside
	// agent.OnProgress for all calls. nil: none.
	Progress func(Progress)
	// OnStart is called when the call's code is about to run. keep makes the
	// start durable, for each effect class, and fails once the code has
	// ended. note records a note beside those of the tool. nil: none.
	OnStart func(call string, keep func(context.Context) error, note func(ctx context.Context, key string, value any) error)

	// Asked is called, on its own goroutine, for each approval request that the
	// running call waits for. Its context ends when the wait ends.
	Asked func(ctx context.Context, ask ctxperm.ApprovalRequest)
}

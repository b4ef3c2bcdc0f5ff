package upstream

import (
	"context"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp/gateway/internal/clientrequest"
	"github.com/remit-dev/remit/mcp/internal/clientctx"
	"github.com/remit-dev/remit/perm"
)

// Facts holds what the gateway knows about a call.
type Facts struct {
	id     string
	Meta   map[string]any
	report func(done, total float64, message string)
	client clientctx.Client                                       // nil: no client can be asked
	log    clientctx.Log                                          // log of that client
	note   func(ctx context.Context, what any) error              // records a note of the call
	permit func(ctx context.Context, a perm.ResourceAccess) error // evaluates the policy; nil: permits nothing
}

// FactsOf returns the facts about a call of a tool of the runtime.
func FactsOf(ctx context.Context, tc ctxperm.ToolContext) Facts {
	return Facts{id: "remit-" + tc.Call().ID, report: tc.Progress, client: clientctx.Of(ctx), log: clientctx.LogOf(ctx), permit: clientrequest.Permitted(tc), note: func(ctx context.Context, what any) error {
		return tc.Note(ctx, clientrequest.NoteKey, what)
	}}
}

package upstream

import (
	"context"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp/gateway/internal/clientrequest"
	"github.com/remit-dev/remit/mcp/internal/clientctx"
)

func FactsOf(ctx context.Context, tc ctxperm.ToolContext) Facts {
	return Facts{id: "remit-" + tc.Call().ID, report: tc.Progress, client: clientctx.Of(ctx), log: clientctx.LogOf(ctx), permit: clientrequest.Permitted(tc), note: func(ctx context.Context, what any) error {
		return tc.Note(ctx, clientrequest.NoteKey, what)
	}}
}

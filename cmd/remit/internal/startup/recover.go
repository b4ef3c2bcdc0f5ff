package startup

import (
	"context"
	"errors"
	"log/slog"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
)

// recoverCalls recovers the calls that dead processes left in flight, before a
// server serves clients. It uses an owner of its own that ends with it. So
// another process can still revert or continue the open transactions. It logs
// errors and does not stop the server.
func recoverCalls(ctx context.Context, a *cli.App, p *state.Workspace, opts []agent.Option) {
	log := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	rec, err := recoverAsOther(ctx, a, p, opts)
	for _, s := range rec.Settled {
		log.Warn("a call that a dead process left in flight is resolved", "call", s.Call, "tool", cli.Printable(s.Tool), "as", s.Outcome, "why", cli.Printable(s.Why), "see", p.Hint("show", s.Call))
	}
	for _, f := range rec.Failed {
		log.Warn("the outcome of a call that a dead process left in flight cannot be determined here", "txn", f.Txn, "why", cli.Printable(f.Why), "resolve", p.Hint("recover"))
	}
	if n := len(rec.Abandoned); n > 0 {
		log.Warn("transactions of dead processes are open; their sessions can go on with them", "transactions", n, "list", p.Hint("recover"), "revert", p.Hint("revert", rec.Abandoned[n-1]))
	}
	if err != nil {
		log.Warn("calls that dead processes left in flight could not be resolved", "error", cli.PlainError(err), "resolve", p.Hint("recover"))
	}
}

func recoverAsOther(ctx context.Context, a *cli.App, p *state.Workspace, opts []agent.Option) (rec agent.Recovery, err error) {
	j, err := p.Open(ctx)
	if err != nil {
		return rec, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	rt, err := New(a, j, opts...)
	if err != nil {
		return rec, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	return rt.Recover(ctx)
}

package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/mcp/gateway/internal/program"
	"github.com/remit-dev/remit/tool"
)

// mostBegun bounds how often one call starts its server if it finds the server
// dead.
const mostBegun = 3

// Begin returns the connection for a call, and the exclusive use of a server in
// the sandbox. If it returns an error, nothing was sent to the server.
func (u *Upstream) Begin(ctx context.Context, tc ctxperm.ToolContext, limit time.Duration) (*Conn, *process.ServerCall, error) {
	early, cancel := withWaitTimeout(ctx, limit)
	defer cancel()
	for n := 1; ; n++ {
		s, err := u.Session(early)
		if err != nil {
			return nil, nil, tool.NoEffect(err)
		}
		if u.Sandbox == nil {
			return s, nil, nil
		}
		p, ok := s.program.(program.Sandboxed)
		if !ok {
			return nil, nil, tool.NoEffect(errors.New("the server does not run in the sandbox"))
		}
		turn, err := p.Begin(ctx, tc)
		if err == nil || n == mostBegun || ctx.Err() != nil || !s.hasEnded() && !errors.Is(err, process.ErrServerExited) {
			return s, turn, err
		}
		s.Drain() // the previous call left the server dead or busy
	}
}

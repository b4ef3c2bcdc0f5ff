package startup

import (
	"context"
	"errors"
	"slices"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/cmd/remit/internal/upstream"
	"github.com/remit-dev/remit/hooks"
)

// WithRuntime calls fn with a runtime for recorded calls. Its roots are those
// of the records; the flags can name their folders. It closes the runtime when
// fn returns.
func WithRuntime(ctx context.Context, a *cli.App, p *state.Workspace, fn func(rt *agent.Runtime) error) (err error) {
	j, err := p.Read(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	opts, err := p.NamedRootOptions(a)
	if err != nil {
		return err
	}
	databases, err := state.DatabaseOptions(a, p)
	if err != nil {
		return err
	}
	mirrored, err := upstream.Reopen(ctx, a, p, nil)
	if err != nil {
		return err
	}
	opts = append(opts, agent.Tools(hooks.Tools()...)) // a killed resident process leaves calls of them, which only they settle
	rt, err := New(a, j, slices.Concat(opts, databases, mirrored)...)
	if err != nil {
		return &cli.Problem{Code: cli.ExitUsage, What: "remit cannot start", Why: err.Error()}
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	return fn(rt)
}

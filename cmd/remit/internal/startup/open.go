package startup

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/cmd/remit/internal/upstream"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// Opened is a runtime with its journal, its gateway and its notices.
type Opened struct {
	*agent.Runtime
	Gateway *upstream.Gateway // nil: no gateway
	closers []func() error
}

// Close closes the runtime, then its journal and its notices.
func (o *Opened) Close() error {
	var errs []error
	for _, c := range o.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// Open opens the runtime that the flags describe. It opens the journal last:
// an invalid command line creates no folder.
func Open(ctx context.Context, a *cli.App, f *Flags) (*Opened, error) {
	roots, folders, err := f.RootOptions()
	if err != nil {
		return nil, err
	}
	engine, err := policyfile.Load(f.Policies, false)
	if err != nil {
		return nil, err
	}
	reach, err := f.Services.Options(a, folders)
	if err != nil {
		return nil, err
	}
	known, err := f.Services.Names(folders)
	if err != nil {
		return nil, err
	}
	a.ProgramNetwork = f.ProgramNetwork // before the tools are declared
	if err := state.Declare(ctx, a, &f.Declared, folders, known); err != nil {
		return nil, err
	}
	if err := f.Find(a); err != nil {
		return nil, err
	}
	if err := errors.Join(f.CheckStateOutside(folders), f.CheckRootsOutside(folders), f.checkTokenOutside(folders)); err != nil {
		return nil, err
	}
	approver, err := newApprover(a, f)
	if err != nil {
		return nil, err
	}
	databases, err := state.DatabaseOptions(a, &f.Workspace)
	if err != nil {
		return nil, err
	}
	f.WarnOfFormer(ctx, a, folders[0])
	journal, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	if !state.NamesWorkspace(f.Roots) {
		if err := f.CheckOwner(ctx, a, journal, folders[0]); err != nil {
			return nil, errors.Join(err, journal.Close())
		}
	}
	programs, err := Programs(&f.Workspace, journal)
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	filters, err := f.Limits.Filters()
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	var g *upstream.Gateway
	if f.Upstreams.Config != "" {
		if g, err = upstream.Open(ctx, a, &f.Workspace, f.rootWords(), programs); err != nil {
			return nil, errors.Join(err, journal.Close())
		}
		roots = append(roots, agent.Tools(g.Tools()...))
	}
	opts := append(slices.Concat(roots, databases, reach), agent.Policy(policyfile.AskBeforeChange(engine, f.Policies, f.Upstreams.Config, f.rootWords())), agent.Approver(approver), agent.Driver(programs), agent.Filters(filters...))
	tell := Notices(a, f)
	opts = append(opts, agent.OnWaiting(tell.Show)) // a commit can wait in any mode
	if f.OnAsk == "wait" {
		opts = append(opts, agent.SuspendForApproval())
	}
	limits := tool.Limits{ClaimTimeout: f.ClaimTimeout}
	if f.OnAsk == "prompt" { // the user at the terminal ends the wait, without a clock
		limits.Answer = approval.PromptTimeout
	}
	opts = append(opts, agent.Limits(limits))
	rt, err := New(a, journal, opts...)
	if err == nil && f.Retain != nil {
		err = rt.Retain(*f.Retain)
	}
	if err != nil {
		err = &cli.Problem{Code: cli.ExitUsage, What: "remit cannot start", Why: strings.TrimPrefix(err.Error(), "agent: ")}
		return nil, errors.Join(err, journal.Close())
	}
	tell.SetTools(rt.Tools)
	policyfile.Warn(a, engine, f.Policies, rt.Tools().All())
	if g != nil {
		g.SetRuntime(rt)
	}
	closers, asked := []func() error{rt.Close, journal.Close, tell.Close}, Asked{App: a, Place: f.Workspace, Journal: journal}
	if f.Recovers {
		recoverCalls(ctx, a, &f.Workspace, opts)
		stop := asked.Serve(ctx)
		closers = append([]func() error{func() error { stop(); return nil }}, closers...)
	} else {
		asked.log(ctx, "")
	}
	return &Opened{rt, g, closers}, nil
}

// New returns a runtime on a journal with the tools of the command.
func New(a *cli.App, j journal.Journal, opts ...agent.Option) (*agent.Runtime, error) {
	log := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	programs, err := programsOn(j, process.Strict, false)
	if err != nil {
		return nil, err
	}
	near, err := web.New(web.Options{})
	if err != nil {
		return nil, err
	}
	if on, ok := j.(interface{ Dir() string }); ok {
		kept, err := process.NewSnapshotter(process.SnapshotConfig{Dir: filepath.Join(on.Dir(), "kept")})
		if err != nil {
			return nil, err
		}
		opts = append(opts, agent.Driver(kept))
	}
	opts = append(append(opts, a.Customizers...), agent.Driver(programs), agent.Driver(near), // an earlier option replaces the driver
		agent.Journal(j), agent.Host(a.Host), agent.Log(log), agent.Tools(state.ServedTools(a)...))
	return agent.New(append(opts, agent.OnProgress(a.Progress.Report))...)
}

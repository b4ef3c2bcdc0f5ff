package process

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/internal/sandbox"
	"github.com/remit-dev/remit/revert/effect"
)

var (
	contexts      = handleaccess.ContextsOf[ctxperm.ToolContext, ctxperm.Permit]()
	fileInternals = handleaccess.FilesOf[files.ChangeSet, files.DetectedChanges, files.FilePreImage]()
)

// Run runs a program. It returns after the program, and every process that it
// started, has ended. If ctx ends first, Run kills the program, and none of its
// changes are applied. An error means that there is no result. The program was
// denied (ctxperm.ErrDenied, ctxperm.ErrInvalid), could not be started, or was
// killed. Its changes are decided and applied after the tool has returned
// without an error. A call can run one program to its end, with any exit code.
// After one that was denied, could not be started or was killed, it can run
// another.
func Run(ctx context.Context, tc ctxperm.ToolContext, cmd Cmd) (Result, error) {
	cmd, accesses, err := cmd.attached(ctx).complete()
	if err != nil {
		return Result{}, err
	}
	d, err := ctxperm.DriverOf[*Driver](ctx, tc)
	if errors.Is(err, ctxperm.ErrNoDriver) {
		d, err = defaultDriver()
	}
	if err != nil {
		return Result{}, err
	}
	permit, err := ctxperm.Authorize(ctx, tc, accesses...)
	if err != nil {
		return Result{}, err
	}
	defer permit.End()
	call := contexts.PermitCall(permit)
	if call == nil {
		return Result{}, ctxperm.ErrClosed
	}
	out, err := newOutlet(ctx, tc, call, cmd)
	if err != nil {
		return Result{}, err
	}
	h := &runHandle{driver: d, call: call, outlet: out}
	if err := call.Join(h, true); err != nil {
		if errors.Is(err, callstate.ErrSecondCommit) {
			err = fmt.Errorf("run: %w: the call has already run a program or used a database, and two such effects are not atomic; run both programs from one sh script, or make one call for each: a revert of the transaction covers both", ctxperm.ErrInvalid)
		}
		return Result{}, err
	}
	r, err := h.begin(ctx, cmd)
	if err != nil && call.Part(h) {
		h.close() // none of its changes are applied, so another program may run
	}
	return r, err
}

// begin determines what the program may see, and runs it.
func (h *runHandle) begin(ctx context.Context, cmd Cmd) (r Result, err error) {
	if class := h.call.Config().Class; cmd.Network && (class == effect.Pure || class == effect.Reversible) {
		return Result{}, fmt.Errorf("run: %w: a program with network access cannot be reverted, but the call is declared %s", ctxperm.ErrInvalid, class)
	}
	if h.view, err = h.driver.see(ctx, h.call); err != nil {
		return Result{}, err
	}
	spec, err := h.driver.spec(ctx, h, cmd)
	if err != nil {
		return Result{}, err
	}
	return h.run(ctx, spec, cmd)
}

// spec returns the specification of the sandbox.
func (d *Driver) spec(ctx context.Context, h *runHandle, cmd Cmd) (sandbox.Spec, error) {
	dir, ok := h.view.dirs[cmd.Root]
	if !ok {
		return sandbox.Spec{}, fmt.Errorf("run: %w: nothing of root %q may be read by this call, so no program can be started in it", ctxperm.ErrInvalid, cmd.Root)
	}
	surroundings := cmd.Attachment.Environment
	more, caches, home := d.shown(surroundings, h.view.roots)
	h.view.more, h.caches = slices.Concat(more, caches), caches
	s := sandbox.Spec{
		Argv: slices.Clone(cmd.Argv), Env: cmd.environment(d, surroundings.homeFolder(home, h.view.roots)), Dir: filepath.Join(dir, filepath.FromSlash(cmd.Dir)),
		System: readable(more), Home: home,
		Roots: slices.Clone(h.view.roots), Network: cmd.Network, Limits: d.cfg.Limits.sandbox(), Require: d.least,
	}
	for _, dir := range caches {
		s.Roots = append(s.Roots, sandbox.Root{Dir: dir, View: sandbox.Overlay})
	}
	author, err := d.authorFile(ctx, h.call.Config().Recorder.Host(), dir)
	if err != nil {
		return sandbox.Spec{}, fmt.Errorf("run: the name that git commits by: %w", err)
	}
	if author != "" {
		s.System = append(s.System, author)
		s.Env = append([]string{"GIT_CONFIG_SYSTEM=" + author}, s.Env...)
	}
	if h.outlet != nil {
		s.Proxy = proxyEnv(s.Env)
	}
	if h.call.Terms().Demands("sandbox") {
		s.Require = sandbox.Strict
	}
	return s, h.upper(s.Roots)
}

// upper creates a folder for the changes in each root. If it cannot hold an
// overlay, the changes are kept in memory.
func (h *runHandle) upper(roots []sandbox.Root) (err error) {
	for i := range roots {
		if roots[i].View != sandbox.Overlay {
			continue
		}
		if h.scratch == nil {
			if h.scratch, err = h.driver.newScratch(); err != nil {
				return fmt.Errorf("run: the scratch folder %s: %w", h.driver.cfg.Scratch, err)
			}
			if !sandbox.Lasting(h.scratch.dir) {
				return nil
			}
		}
		if roots[i].Upper, err = h.scratch.part(i); err != nil {
			return fmt.Errorf("run: the scratch folder %s: %w", h.driver.cfg.Scratch, err)
		}
	}
	return nil
}

// run starts the program and waits for its end.
func (h *runHandle) run(ctx context.Context, spec sandbox.Spec, cmd Cmd) (Result, error) {
	if err := h.call.Config().Recorder.Host().Point(ctx, "process.run"); err != nil {
		return Result{}, err
	}
	var err error
	if h.since, err = sandbox.Now(); err != nil {
		return Result{}, err
	}
	if cmd.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = h.call.Config().Recorder.Host().WithTimeout(ctx, cmd.Timeout, ErrTimeout)
		defer cancel()
	}
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	p, err := connect(cmd)
	if err != nil {
		return Result{}, err
	}
	if p.tty != nil {
		spec.Terminal = 1 + 1 // standard output
	}
	proc, err := h.start(ctx, &spec, p.theirs)
	p.started()
	if err != nil {
		p.close()
		return Result{}, startError(err)
	}
	h.proc = proc // outlives its program
	streams := copyIO(cmd, p, h.driver.cfg.MaxOutput)
	proxy, err := h.outlet.serve(ctx, proc)
	if err != nil {
		proc.Kill()
	}
	exit, werr := h.wait(proc, streams, kill)
	streams.end(ctx)
	hosts, nerr := h.outlet.finish(ctx, proxy)
	if cause := context.Cause(ctx); cause != nil { // it may have been killed, despite its result
		return Result{}, sentTo(cause, hosts)
	}
	if err := errors.Join(err, werr, nerr); err != nil {
		return Result{}, sentTo(err, hosts)
	}
	reached := proc.Reached()
	r := Result{
		Code: exit.Code, Signal: exit.Signal, Survivors: exit.Left, Stdout: streams.out.bytes(), Stderr: streams.errs.bytes(),
		TruncatedBytes: streams.out.dropped + streams.errs.dropped, Level: Level(reached.Level.String()), MissingProtections: reached.Missing,
	}
	for _, met := range exit.Met {
		r.Restrictions = append(r.Restrictions, Restriction(met))
	}
	r.Hosts, r.Restrictions = hosts, append(r.Restrictions, unreached(hosts)...)
	if h.outlet != nil && proxy == nil {
		r.Restrictions = append(r.Restrictions, Restriction{"proxy", "the program reaches no host: its sandbox has no network of its own here, which a proxy needs; see remit doctor"})
	}
	h.named(cmd, &r)
	return r, h.collect(&r)
}

// start starts the program, with copies of the roots that have no overlay.
func (h *runHandle) start(ctx context.Context, spec *sandbox.Spec, stdio sandbox.Stdio) (*sandbox.Process, error) {
	if err := h.copyKnown(ctx, spec); err != nil {
		return nil, err
	}
	for {
		proc, err := sandbox.Start(ctx, sandbox.Shim(h.driver.cfg.Shim), *spec, stdio)
		var none sandbox.NoOverlayError
		if !errors.As(err, &none) {
			return proc, err
		}
		if h.readCache(spec, none.Root) {
			continue
		}
		if err := h.copyInstead(ctx, spec, none); err != nil {
			return nil, err
		}
	}
}

// readCache shows a cache that can have no overlay read-only. It reports whether
// the folder is a cache.
func (h *runHandle) readCache(spec *sandbox.Spec, dir string) bool {
	i := slices.IndexFunc(spec.Roots, func(r sandbox.Root) bool { return r.Dir == dir && r.View == sandbox.Overlay })
	if i < 0 || !slices.Contains(h.caches, dir) {
		return false
	}
	spec.Roots[i].View, spec.Roots[i].Upper = sandbox.Read, ""
	return true
}

// wait waits for the program's end, and forwards the caller's signals until
// then.
func (h *runHandle) wait(proc *sandbox.Process, streams *callerIO, kill context.CancelCauseFunc) (sandbox.Exit, error) {
	a, done := streams.cmd.Attachment, make(chan struct{})
	var forwarding sync.WaitGroup
	if a.Signals != nil {
		forwarding.Go(func() { a.forward(h.call.Config().Recorder.Host(), proc, streams.pipes, done, kill) })
	}
	exit, err := proc.Wait()
	close(done)
	forwarding.Wait() // the terminal can then be closed
	return exit, err
}

// startError explains a failed start in terms of the tool.
func startError(err error) error {
	switch {
	case errors.Is(err, sandbox.ErrNoSandbox):
		return fmt.Errorf("%w: %w; see remit doctor", ctxperm.ErrDenied, err)
	case errors.Is(err, sandbox.ErrLevel):
		return fmt.Errorf("%w: %w; see remit doctor", ctxperm.ErrDenied, err)
	default:
		return fmt.Errorf("the program was not started: %w", err)
	}
}

// runHandle is a finished program whose changes still lie beside the roots.
type runHandle struct {
	driver  *Driver
	call    *callstate.Call
	outlet  *outlet // nil: the program has no proxy
	view    view
	since   time.Time // before the program could read anything
	scratch *scratch
	proc    *sandbox.Process
	caches  []string                          // folders whose changes are discarded
	copies  map[string]*rootCopy              // copies of roots without an overlay, by the root's folder
	wrote   map[string][]sandbox.OverlayEntry // by the root's folder; nil: the program did not finish
	batch   *files.ChangeSet
}

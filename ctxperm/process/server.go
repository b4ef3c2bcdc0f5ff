package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/sandbox"
	"github.com/remit-dev/remit/perm"
)

// ServerConfig is a program that lives longer than a call and serves many, such as somebody's server of tools.
type ServerConfig struct {
	Argv     []string
	Dir      string            // where it is started: absolute, in a root or in what is Readable; default the first root
	Env      map[string]string // variables beside the driver's; PATH is the driver's alone
	Roots    map[string]string // folders that it works in, by the names of the runtime's roots
	Readable []string          // files and folders of the host, beside those of the system, that it may read
	Network  bool              // it may use the host's network
	Masks    []string          // files that it does not see before its first call, as patterns; later the policy says
}

// Server is a Service that runs. It works on copies of its roots, which nobody else does. A call takes its Turn, for which
// the copies are made like the roots; what the program then does to them is decided, recorded and made in the roots when the
// call ends, like what a program does that a call runs.
type Server struct {
	driver  *Driver
	service ServerConfig
	proc    *sandbox.Process
	pipes   *pipes
	copies  map[string]*rootCopy // by root's folder
	names   map[string]string    // of roots, by folder
	gone    chan struct{}
	stop    context.CancelFunc

	turn  chan struct{} // held by one call
	dirty bool          // the copies hold what is not to be; whoever has the turn knows
	spent bool          // a call left it while it was busy; whoever has the turn knows
	close sync.Once
}

// Serve starts a service. It demands the level of sandbox that the driver does, and namespaces: what a program started must be
// known to be stopped. When ctx ends before it runs it is given up.
func (d *Driver) Serve(ctx context.Context, s ServerConfig) (_ *Server, err error) {
	if _, err := (Cmd{Argv: s.Argv, Env: s.Env}).check(); err != nil {
		return nil, err
	}
	r := &Server{
		driver: d, service: s, copies: map[string]*rootCopy{}, names: map[string]string{}, gone: make(chan struct{}), turn: make(chan struct{}, 1),
	}
	defer func() {
		if err != nil {
			r.giveBack()
		}
	}()
	spec, err := r.spec(ctx)
	if err != nil {
		return nil, err
	}
	if r.pipes, err = newPipes(true); err != nil {
		return nil, err
	}
	whole, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	starting := context.AfterFunc(ctx, stop)
	r.proc, err = sandbox.Start(whole, sandbox.Shim(d.cfg.Shim), spec, r.pipes.theirs)
	r.pipes.started()
	if !starting() && err == nil {
		err = errors.Join(context.Cause(ctx), r.proc.Close())
	}
	if err != nil {
		stop()
		r.pipes.close()
		return nil, startError(err)
	}
	go func() {
		_, _ = r.proc.Wait()
		close(r.gone)
	}()
	return r, nil
}

// spec is what the sandbox is told. The first copies lack what is masked by the service.
func (r *Server) spec(ctx context.Context) (sandbox.Spec, error) {
	s := r.service
	limits := r.driver.cfg.Limits.sandbox()
	if limits.CPU <= 0 {
		limits.CPU = 1000 * time.Hour // it lives long
	}
	spec := sandbox.Spec{
		Argv: slices.Clone(s.Argv), Env: Cmd{Env: s.Env}.environment(r.driver), Dir: s.Dir, Network: s.Network, Limits: limits, Require: r.driver.least,
		System: readable(s.Readable),
	}
	masks, err := patterns(s.Masks)
	if err != nil {
		return spec, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Roots)) {
		dir, err := filepath.EvalSymlinks(s.Roots[name])
		if err != nil {
			return spec, fmt.Errorf("root %s: %w", name, err)
		}
		root, err := host.Real().OpenRoot(dir)
		if err != nil {
			return spec, fmt.Errorf("root %s: %w", name, err)
		}
		id := root.Identity()
		hidden, err := r.masked(ctx, name, root, masks)
		_ = root.Close()
		if err != nil {
			return spec, fmt.Errorf("root %s: %w", name, err)
		}
		c, err := r.driver.borrow(dir)
		if err != nil {
			return spec, fmt.Errorf("the scratch folder %s: %w", r.driver.cfg.Scratch, err)
		}
		r.copies[dir], r.names[dir] = c, name
		since, err := sandbox.Now()
		if err == nil {
			err = c.renew(ctx, hidden, nil, since)
		}
		if err != nil {
			return spec, err
		}
		spec.Roots = append(spec.Roots, sandbox.Root{Dir: dir, Dev: id.Device, Ino: id.Inode, View: sandbox.Direct, Upper: c.place()})
		if spec.Dir == "" {
			spec.Dir = dir
		}
	}
	return spec, nil
}

// readable is what the program may read beside its roots. What lies in something else is there with it.
func readable(more []string) []string {
	all := sandbox.System()
	for _, path := range slices.Compact(slices.Sorted(slices.Values(more))) {
		if !slices.ContainsFunc(all, func(have string) bool { return path == have || strings.HasPrefix(path, have+"/") }) {
			all = append(all, path)
		}
	}
	return all
}

func (r *Server) masked(ctx context.Context, name string, root disk.Root, masks []perm.Mask) ([]string, error) {
	all, err := perm.NewSet(perm.Access(perm.Read, "file://"+name+"/**"))
	if err != nil {
		return nil, err
	}
	return r.driver.hidden(ctx, name, root, all, masks, host.Real().Now())
}

// Pipes are the program's standard files. Close leaves complaints, its standard error, to the caller to read to its end and to close: what
// a program wrote last says why it went.
func (r *Server) Pipes() (in io.WriteCloser, out, complaints *os.File) {
	return r.pipes.in, r.pipes.out, r.pipes.err
}

// Gone is closed when the program is gone.
func (r *Server) Gone() <-chan struct{} { return r.gone }

// Level is how much stands between the program and the machine, and Missing what that lacks.
func (r *Server) Level() (level Level, missing []string) {
	reached := r.proc.Reached()
	return Level(reached.Level.String()), reached.Missing
}

// Close ends the program and everything that it started. What it did to its copies outside of calls is dropped.
func (r *Server) Close() {
	r.close.Do(func() {
		r.stop()
		r.proc.Kill()
		<-r.gone
		_ = r.proc.Close()
		_, _ = r.pipes.in.Close(), r.pipes.out.Close()
		r.turn <- struct{}{} // the call that has the turn ends first
		r.giveBack()
		<-r.turn
	})
}

func (r *Server) giveBack() {
	for _, c := range r.copies {
		r.driver.giveBack(c)
	}
	r.copies = map[string]*rootCopy{}
}

// Begin waits until no other call has the program, and makes its copies like the roots, less what is masked for the call. What
// the program wrote since the last call stays where the roots were not touched, and goes with this one. The call then has the
// program until it has ended. Without End nothing of what the program does is applied.
func (r *Server) Begin(ctx context.Context, tc ctxperm.ToolContext) (_ *ServerCall, err error) {
	call := tc.CallState(callstate.NewKey())
	if call == nil {
		return nil, ctxperm.ErrClosed
	}
	op, err := call.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer op.Leave()
	select {
	case r.turn <- struct{}{}:
	case <-r.gone:
		return nil, ErrServerExited
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if r.spent || len(r.copies) == 0 && len(r.names) > 0 { // closed: the copies are somebody else's
		<-r.turn
		return nil, ErrServerExited
	}
	t := &ServerCall{runHandle: runHandle{driver: r.driver, call: call, copies: r.copies}, resident: r}
	defer func() {
		if err != nil {
			t.leave(true)
		}
	}()
	if t.view, err = r.see(ctx, call); err != nil {
		return nil, err
	}
	if err := r.proc.Pause(ctx); err != nil {
		return nil, r.orGone(err)
	}
	defer r.proc.Resume()
	if t.since, err = sandbox.Now(); err != nil {
		return nil, err
	}
	for _, root := range t.view.roots {
		if err := r.renew(ctx, root, t.since); err != nil {
			return nil, err
		}
	}
	r.dirty = true // until the call has ended well
	return t, call.Join(t, true)
}

// ErrServerExited means that a Resident has no turns any more: its program has gone, or nobody knows what it is at.
var ErrServerExited = errors.New("the program has gone")

func (r *Server) orGone(err error) error {
	select {
	case <-r.gone:
		return ErrServerExited
	default:
		return err
	}
}

// see is what the call may see of the program's roots, which must be the call's.
func (r *Server) see(ctx context.Context, call *callstate.Call) (view, error) {
	all, err := r.driver.see(ctx, call)
	if err != nil {
		return view{}, err
	}
	v := view{names: map[string]string{}, dirs: map[string]string{}}
	for _, root := range all.roots {
		if name, ours := r.names[root.Dir]; ours && all.dirs[name] == root.Dir {
			v.roots, v.dirs[name] = append(v.roots, root), root.Dir
			v.names[root.Dir] = name
		}
	}
	for dir, name := range r.names {
		if v.dirs[name] == "" {
			return view{}, fmt.Errorf("%w: the call may see nothing of root %s at %s, which the program works in", ctxperm.ErrDenied, name, dir)
		}
	}
	return v, nil
}

// renew makes one copy like its root, but for what the program wrote since the last call.
func (r *Server) renew(ctx context.Context, root sandbox.Root, since time.Time) error {
	c, keep := r.copies[root.Dir], map[string]bool{}
	if !r.dirty {
		late, err := c.changes()
		if err != nil {
			return err
		}
		for _, w := range late {
			keep[w.Name] = true
		}
	}
	return c.renew(ctx, root.Masked, keep, since)
}

// ServerCall is a call that has a Resident to itself.
type ServerCall struct {
	runHandle

	resident *Server
	busy     atomic.Bool
	left     sync.Once
}

// SetBusy says whether the program is at something for the call. Where it still is when the call ends, no other call gets a
// turn: what the program did and answered then would be taken for that one's.
func (t *ServerCall) SetBusy(is bool) { t.busy.Store(is) }

// End says that the program has done what the call wanted. It stops it, and looks at what it wrote; the call goes on
// to decide about that when its tool has returned. It returns how many names were written.
func (t *ServerCall) End(ctx context.Context) (wrote int, leftOut []string, err error) {
	op, err := t.call.Enter(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer op.Leave() // until then the call does not end, and nobody else gets the copies
	if err := t.resident.proc.Pause(ctx); err != nil {
		return 0, nil, t.resident.orGone(err)
	}
	var r Result
	err = t.collect(&r)
	return r.ChangedFiles, r.SkippedChanges, err
}

// Finish makes the changes, and goes on with the copies as the program has them.
func (t *ServerCall) Finish(ctx context.Context) error {
	if t.batch == nil {
		t.leave(t.wrote == nil)
		return nil
	}
	err := t.batch.Perform(ctx)
	for dir, all := range t.wrote {
		if adopted := t.copies[dir].adopt(all); adopted != nil {
			err = errors.Join(err, adopted)
		}
	}
	t.leave(err != nil)
	return err
}

// Abort drops what the program wrote.
func (t *ServerCall) Abort(context.Context) { t.leave(true) }

// leave lets the next call have the program. With dirty copies they are made like the roots then.
func (t *ServerCall) leave(dirty bool) {
	t.left.Do(func() {
		if t.batch != nil {
			t.batch.Close()
			t.batch = nil
		}
		t.resident.dirty, t.resident.spent = dirty, t.busy.Load()
		t.resident.proc.Resume()
		<-t.resident.turn
	})
}

var _ callstate.Handle = (*ServerCall)(nil)

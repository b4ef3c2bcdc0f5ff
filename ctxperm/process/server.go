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

// ServerConfig configures a program that serves many calls, such as an MCP
// server.
type ServerConfig struct {
	Argv     []string
	Dir      string            // working directory: absolute, in a root or in Readable; default the first root
	Env      map[string]string // variables beside the driver's; only the driver sets PATH
	Roots    map[string]string // folders that it works in, by the names of the runtime's roots
	Readable []string          // files and folders of the host that it may read, beside those of the system
	Network  bool              // permits the host's network
	Masks    []string          // patterns of files that it does not see before its first call; later the policy decides
}

// Server is a running program that serves calls. It works on its own copies of
// its roots. Begin gives it to one call and updates the copies from the roots.
// When the call ends, the program's changes in them are decided, recorded and
// applied to the roots, like those of a program that a call runs.
type Server struct {
	driver *Driver
	config ServerConfig
	proc   *sandbox.Process
	pipes  *pipes
	copies map[string]*rootCopy // by the root's folder
	names  map[string]string    // names of roots, by folder
	gone   chan struct{}
	stop   context.CancelFunc

	callLock chan struct{} // held by one call
	dirty    bool          // the copies have rejected changes; guarded by callLock
	spent    bool          // a call ended while it was busy; guarded by callLock
	close    sync.Once
}

// Serve starts a server. It demands the driver's level of sandbox, and
// namespaces: stopping the program requires knowing the processes that it
// started. If ctx ends before it runs, Serve gives up.
func (d *Driver) Serve(ctx context.Context, s ServerConfig) (_ *Server, err error) {
	if _, err := (Cmd{Argv: s.Argv, Env: s.Env}).check(); err != nil {
		return nil, err
	}
	r := &Server{
		driver: d, config: s, copies: map[string]*rootCopy{}, names: map[string]string{}, gone: make(chan struct{}), callLock: make(chan struct{}, 1),
	}
	defer func() {
		if err != nil {
			r.returnCopies()
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

// spec returns the specification of the sandbox. The first copies omit the
// names that the configuration masks.
func (r *Server) spec(ctx context.Context) (sandbox.Spec, error) {
	s := r.config
	limits := r.driver.cfg.Limits.sandbox()
	if limits.CPU <= 0 {
		limits.CPU = 1000 * time.Hour // a long-running program
	}
	spec := sandbox.Spec{
		Argv: slices.Clone(s.Argv), Env: Cmd{Env: s.Env}.environment(r.driver, "/tmp"), Dir: s.Dir, Network: s.Network, Limits: limits, Require: r.driver.least,
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
		root, err := host.OpenRoot(host.Real(), dir)
		if err != nil {
			return spec, fmt.Errorf("root %s: %w", name, err)
		}
		id := root.Identity()
		hidden, err := r.masked(ctx, name, root, masks)
		_ = root.Close()
		if err != nil {
			return spec, fmt.Errorf("root %s: %w", name, err)
		}
		c, err := r.driver.takeCopy(dir)
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

// readable returns the paths that the program may read beside its roots. It
// omits paths inside others.
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

// Pipes returns the program's standard files. Close does not close its standard
// error. The caller must read that to its end and close it, because the last
// output explains the exit.
func (r *Server) Pipes() (in io.WriteCloser, out, complaints *os.File) {
	return r.pipes.in, r.pipes.out, r.pipes.err
}

// Gone returns a channel that is closed when the program has exited.
func (r *Server) Gone() <-chan struct{} { return r.gone }

// Level returns the level of protection, and the protections that are missing.
func (r *Server) Level() (level Level, missing []string) {
	reached := r.proc.Reached()
	return Level(reached.Level.String()), reached.Missing
}

// Close ends the program and every process that it started. It discards changes
// in the copies outside of calls.
func (r *Server) Close() {
	r.close.Do(func() {
		r.stop()
		r.proc.Kill()
		<-r.gone
		_ = r.proc.Close()
		_, _ = r.pipes.in.Close(), r.pipes.out.Close()
		r.callLock <- struct{}{} // the call that holds it ends first
		r.returnCopies()
		<-r.callLock
	})
}

func (r *Server) returnCopies() {
	for _, c := range r.copies {
		r.driver.returnCopy(c)
	}
	r.copies = map[string]*rootCopy{}
}

// Begin waits until no other call has the program. Then it updates the copies
// from the roots, without the names that are masked for the call. Changes of
// the program since the last call stay if the roots were not touched, and
// belong to this call. The call has the program until it has ended. Without End
// none of the program's changes are applied.
func (r *Server) Begin(ctx context.Context, tc ctxperm.ToolContext) (_ *ServerCall, err error) {
	call := contexts.Call(tc)
	if call == nil {
		return nil, ctxperm.ErrClosed
	}
	op, err := call.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer op.Leave()
	select {
	case r.callLock <- struct{}{}:
	case <-r.gone:
		return nil, ErrServerExited
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if r.spent || len(r.copies) == 0 && len(r.names) > 0 { // closed: other runs can have the copies
		<-r.callLock
		return nil, ErrServerExited
	}
	t := &ServerCall{runHandle: runHandle{driver: r.driver, call: call, copies: r.copies}, server: r}
	defer func() {
		if err != nil {
			t.leave(true)
		}
	}()
	if t.view, err = r.see(ctx, call); err != nil {
		return nil, err
	}
	if err := r.proc.Pause(ctx); err != nil {
		return nil, r.orExited(err)
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

// ErrServerExited states that a Server accepts no more calls: its program has
// exited, or its activity is unknown.
var ErrServerExited = errors.New("the program has exited")

func (r *Server) orExited(err error) error {
	select {
	case <-r.gone:
		return ErrServerExited
	default:
		return err
	}
}

// see returns what the call may see of the program's roots, which must be the
// call's.
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

// renew updates one copy from its root, except for the program's changes since
// the last call.
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

// ServerCall is the exclusive use of a Server by one call.
type ServerCall struct {
	runHandle

	server *Server
	busy   atomic.Bool
	left   sync.Once
}

// SetBusy sets whether the program still works for the call. If it does when
// the call ends, no other call gets the program. Its later changes and
// responses would be attributed to that call.
func (t *ServerCall) SetBusy(is bool) { t.busy.Store(is) }

// End states that the program has finished the work of the call. It stops the
// program and collects its changes. They are decided after the tool has
// returned. End returns the number of written names, and the changes that
// cannot be applied.
func (t *ServerCall) End(ctx context.Context) (wrote int, leftOut []string, err error) {
	op, err := t.call.Enter(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer op.Leave() // until then the call does not end, and no other run gets the copies
	if err := t.server.proc.Pause(ctx); err != nil {
		return 0, nil, t.server.orExited(err)
	}
	var r Result
	err = t.collect(&r)
	return r.ChangedFiles, r.SkippedChanges, err
}

// Finish applies the changes, and keeps the copies as the program has them.
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

// Abort discards the program's changes.
func (t *ServerCall) Abort(context.Context) { t.leave(true) }

// leave releases the program for the next call. If dirty, that call restores
// the copies from the roots.
func (t *ServerCall) leave(dirty bool) {
	t.left.Do(func() {
		if t.batch != nil {
			t.batch.Close()
			t.batch = nil
		}
		t.server.dirty, t.server.spent = dirty, t.busy.Load()
		t.server.proc.Resume()
		<-t.server.callLock
	})
}

var _ callstate.Handle = (*ServerCall)(nil)

//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/shim"
)

// Main makes this program its own shim. Call it first in main: in a process
// that was started as a shim it does not return.
func Main() { shim.Main() }

func (s Shim) path() (string, error) {
	if s != "" {
		return string(s), nil
	}
	if !shim.Ready() {
		return "", fmt.Errorf("%w: this program does not call sandbox.Main first thing in main, and names no other shim", ErrNoSandbox)
	}
	return "/proc/self/exe", nil // works also if the file was replaced meanwhile
}

// Process is a program in a sandbox. The caller must close it.
type Process struct {
	shim    *os.Process // or its guard, if not alone
	socket  *os.File
	alone   bool // the shim is process 1 of a namespace: its end ends all others
	scratch string
	group   *group
	reached Protections
	uppers  map[string]*os.File // by root
	proxy   *os.File            // listener of the proxy; nil: none
	order   []string            // the roots of uppers that the shim created, by its numbers
	native  map[string]*native  // overlays that this process created, by root
	moves   string              // why it created none
	stop    func() bool
	ending  sync.Mutex        // never held across a wait
	closed  bool              // the socket is closed; guarded by ending
	over    bool              // the shim was waited for, so its number can be reused; guarded by ending
	ended   bool              // only the shim still runs
	locked  map[string]uint32 // by root and name, with NUL between: the bits before the shim changed them
}

// Start runs a program in a sandbox. It returns after the start of the program,
// or with an error. This is ErrLevel for less than spec.Require, a
// NoOverlayError for a root that cannot have an overlay, or ErrNoSandbox. When
// ctx ends, the program and its processes are killed.
func Start(ctx context.Context, shim Shim, spec Spec, stdio Stdio) (*Process, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	path, err := shim.path()
	if err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	p, err := start(ctx, path, spec, stdio, "")
	var none namespaceError
	if errors.As(err, &none) {
		if spec.Require >= Strict {
			return nil, fmt.Errorf("%w (%s): %w", ErrLevel, spec.Require, none)
		}
		return start(ctx, path, spec, stdio, none.Error())
	}
	return p, err
}

// namespaceError states why namespaces are not available.
type namespaceError struct{ error }

// start starts a shim and sends the request. A nonempty without is a reason to
// use no namespaces.
func start(ctx context.Context, path string, spec Spec, stdio Stdio, without string) (*Process, error) {
	p, err := spawn(path, spec, stdio, without == "")
	if err != nil {
		return nil, err
	}
	p.stop = context.AfterFunc(ctx, p.Kill)
	if err := p.begin(spec, without); err != nil {
		_ = p.Close()
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	return p, nil
}

// begin sends the request to the shim and receives the result.
func (p *Process) begin(spec Spec, without string) error {
	order, err := spec.order(p.alone)
	if err != nil {
		return err
	}
	if !p.alone {
		if err := p.withoutNamespaces(order, without); err != nil {
			return err
		}
	}
	p.bound(spec, order)
	mounts := p.attach(spec, order)
	var m shim.Message
	var fds []int
	if err = shim.Send(int(p.socket.Fd()), order, mounts...); err == nil {
		fds, err = shim.Receive(int(p.socket.Fd()), &m)
	}
	p.order = overlays(order)
	for i, root := range p.order {
		if i < len(fds) {
			p.uppers[root] = os.NewFile(uintptr(fds[i]), root)
		}
	}
	if n := len(p.order); m.Proxied && n < len(fds) {
		p.proxy = os.NewFile(uintptr(fds[n]), "proxy")
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return errors.New("the sandbox did not start: its shim ended without a word; does the binary call sandbox.Main?")
	case err != nil:
		return fmt.Errorf("the sandbox did not start: %w", err)
	}
	return p.receive(spec, m)
}

// receive converts the shim's first message for the caller.
func (p *Process) receive(spec Spec, m shim.Message) error {
	switch m.Kind {
	case shim.Began:
		p.reached = Protections{Level: Level(m.Level), Missing: m.Missing, Landlock: m.Landlock, Moves: p.moves}
		if m.Alone != "" && len(p.order) > 0 {
			p.reached.Unsupervised = "the kernel has no supervision of system calls to give: " + m.Alone
		}
		if p.group != nil {
			p.reached.Group = p.group.holds
		}
		return nil
	case shim.TooLow:
		return fmt.Errorf("%w (%s): %s", ErrLevel, spec.Require, m.Why)
	case shim.NoNamespaces:
		return namespaceError{errors.New("namespaces: " + m.Why)}
	case shim.NoOverlay:
		return NoOverlayError{Root: m.Root, Why: m.Why}
	case shim.Failed, shim.Ended:
	}
	return errors.New(m.Why)
}

// withoutNamespaces requests the protections that are available without namespaces.
func (p *Process) withoutNamespaces(order *shim.StartRequest, why string) (err error) {
	if p.scratch, err = os.MkdirTemp("", "remit-sandbox-"); err != nil {
		return err
	}
	order.Scratch = p.scratch
	order.Missing = []string{why, "files: what lies outside cannot be read or written, but looked up, and its bits and times changed where its owner is the same"}
	if !slices.ContainsFunc(order.Env, func(v string) bool { return strings.HasPrefix(v, "TMPDIR=") }) {
		order.Env = append(slices.Clone(order.Env), "TMPDIR="+p.scratch)
	}
	return nil
}

// bound puts the shim into a control group if that is useful: to bound memory,
// or to kill without a namespace. A requested bound that is not available
// counts as missing. Missing groups otherwise do not matter.
func (p *Process) bound(spec Spec, order *shim.StartRequest) {
	if spec.Limits.Memory <= 0 && p.alone {
		return
	}
	g, err := newGroup(fmt.Sprintf("remit-%d", p.shim.Pid), spec.Limits.Memory, int64(order.Limits.Processes)) //nolint:gosec // positive
	if err == nil {
		p.group = g
		err = g.enter(p.shim.Pid)
	}
	if !p.alone && os.Geteuid() == 0 && (err != nil || !slices.Contains(g.holds, "processes")) {
		order.Missing = append(order.Missing, "limit of processes: the root user has none without a control group")
	}
	if err == nil && !slices.Contains(g.holds, "memory") {
		err = errors.New("the control groups delegated to this process do not bound memory")
	}
	if err != nil && spec.Limits.Memory > 0 {
		order.Missing = append(order.Missing, "limit of memory: "+err.Error())
	}
}

// order returns the request to the shim.
func (s Spec) order(namespaces bool) (*shim.StartRequest, error) {
	l := s.Limits.withDefaults()
	// A copy of a root has no socket of the host in it. A root itself can have
	// one.
	live := slices.ContainsFunc(s.Roots, func(r Root) bool { return r.View == Direct && r.Upper == "" })
	own := namespaces && !s.Network && !slices.Contains(s.without, "network")
	may := filterOptions{network: s.Network, namespaces: namespaces, loopback: own, paths: namespaces && !live, report: true}
	may.moves = namespaces && slices.ContainsFunc(s.Roots, func(r Root) bool { return r.View != Read })
	code, err := assembled(may)
	if err != nil {
		return nil, err
	}
	may.report = false
	plain, err := assembled(may)
	if err != nil {
		return nil, err
	}
	o := &shim.StartRequest{
		Argv: s.Argv, Env: s.Env, Path: Path, Dir: s.Dir, System: s.System, Network: s.Network, Loopback: own, Namespaces: namespaces, Filter: code, Plain: plain, Require: int(s.Require), Try: s.try, Without: s.without,
		Limits: shim.Limits{
			Processes: uint64(l.Processes), Files: uint64(l.Files), FileSize: uint64(l.FileSize), //nolint:gosec // positive
			Data: uint64(l.Data), Scratch: uint64(l.Scratch), CPU: uint64((l.CPU + time.Second - 1) / time.Second), //nolint:gosec // positive
		},
	}
	if s.System == nil {
		o.System = System()
	}
	if s.Dir == "" {
		o.Dir = "/"
	}
	o.Home, o.Terminal = s.Home, s.Terminal
	if s.Proxy != nil && own {
		o.Proxy, o.Env = ProxyPort, slices.Concat(s.Proxy, s.Env)
	}
	for _, r := range s.Roots {
		o.Roots = append(o.Roots, shim.Root{Dir: r.Dir, Upper: r.Upper, Dev: r.Dev, Ino: r.Ino, View: string(r.View), Masked: r.Masked})
	}
	return o, nil
}

// overlays returns the roots for which the shim creates overlays.
func overlays(o *shim.StartRequest) (roots []string) {
	for _, r := range o.Roots {
		if r.View == shim.Overlay && !r.Attached {
			roots = append(roots, r.Dir)
		}
	}
	return roots
}

func spawn(path string, spec Spec, stdio Stdio, alone bool) (*Process, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	mine, theirs := os.NewFile(uintptr(ends[0]), "sandbox"), os.NewFile(uintptr(ends[1]), "sandbox")
	defer func() { _ = theirs.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_ = mine.Close()
		return nil, err
	}
	defer func() { _ = null.Close() }()
	files := []*os.File{stdio.In, stdio.Out, stdio.Err, theirs}
	for i := range files {
		if files[i] == nil {
			files[i] = null
		}
	}
	sys, name := &syscall.SysProcAttr{}, shim.GuardName
	if alone {
		name = shim.Name
		sys, err = namespaces(spec.Network, spec.without)
	}
	if err == nil {
		var started *os.Process
		attr := &os.ProcAttr{Dir: "/", Env: shim.Environment(), Files: files, Sys: sys}
		if started, err = os.StartProcess(path, []string{name}, attr); err == nil {
			return &Process{shim: started, socket: mine, alone: alone, uppers: map[string]*os.File{}}, nil
		}
	}
	_ = mine.Close()
	if alone && isRefused(err) {
		return nil, namespaceError{fmt.Errorf("namespaces: %w", refusal(err))}
	}
	return nil, fmt.Errorf("%w: %w", ErrNoSandbox, err)
}

// isRefused reports whether the kernel refuses namespaces: by a setting, by a
// filter, by a limit, or because it has none.
func isRefused(err error) bool {
	for _, e := range []error{unix.EPERM, unix.ENOSPC, unix.EINVAL, unix.ENOSYS, unix.EUSERS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// refusal explains an ambiguous error number of the kernel.
func refusal(err error) error {
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS):
		return fmt.Errorf("user.max_user_namespaces allows no more of them: %w", err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("this process may make none: %w", err)
	}
	return err
}

// namespaces returns the namespaces of the shim. Every user and group keeps its
// ID, so the owners of files need no translation. An ordinary user may map only
// itself.
func namespaces(network bool, without []string) (*syscall.SysProcAttr, error) {
	a := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		// Needed for building the sandbox. The root user has them anyway.
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_SETPCAP},
	}
	if !network {
		a.Cloneflags |= unix.CLONE_NEWNET
		a.AmbientCaps = append(a.AmbientCaps, unix.CAP_NET_ADMIN) // to raise its loopback
	}
	for layer, flag := range map[string]uintptr{
		"users": unix.CLONE_NEWUSER, "name": unix.CLONE_NEWUTS, "network": unix.CLONE_NEWNET, "processes": unix.CLONE_NEWPID,
		"messages": unix.CLONE_NEWIPC,
	} {
		if slices.Contains(without, layer) {
			a.Cloneflags &^= flag
		}
	}
	if a.Cloneflags&unix.CLONE_NEWUSER == 0 {
		return a, nil
	}
	uid, gid := os.Getuid(), os.Getgid()
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	if os.Geteuid() != 0 {
		return a, nil
	}
	var err error
	if a.UidMappings, err = identity("/proc/self/uid_map"); err == nil {
		a.GidMappings, err = identity("/proc/self/gid_map")
	}
	a.GidMappingsEnableSetgroups = true
	return a, err
}

// identity maps every existing ID to itself.
func identity(file string) (maps []syscall.SysProcIDMap, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s: %q", file, line)
		}
		first, err := strconv.Atoi(fields[0])
		if err != nil {
			return nil, err
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, err
		}
		maps = append(maps, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: size})
	}
	return maps, nil
}

// Proxy returns the listener of the program's proxy, or nil if it has none. The
// process closes it. The program's connections wait there.
func (p *Process) Proxy() *os.File { return p.proxy }

// Reached returns the protections of the run.
func (p *Process) Reached() Protections { return p.reached }

// Kill ends the program and its processes immediately.
func (p *Process) Kill() {
	if p.alone {
		_ = p.shim.Kill()
		return
	}
	p.ending.Lock()
	defer p.ending.Unlock()
	if !p.closed { // its number may be reused
		_ = unix.Shutdown(int(p.socket.Fd()), unix.SHUT_RDWR) // the shim kills all, then ends
	}
}

// Signal sends a signal to the program's process group, or only to the program
// if there are no namespaces. After the end of the program it does nothing.
func (p *Process) Signal(sig syscall.Signal) error {
	p.ending.Lock()
	defer p.ending.Unlock()
	if p.closed || p.over {
		return nil
	}
	message := shim.Signal(sig)
	return shim.Send(int(p.socket.Fd()), &message)
}

// Wait waits until the program and its processes have ended. An error means
// that the sandbox was killed or died: the program's exit is then unknown, but
// none of its processes runs.
func (p *Process) Wait() (Exit, error) {
	var m shim.Message
	_, err := shim.Receive(int(p.socket.Fd()), &m)
	p.gone()
	if err == nil && m.Kind == shim.Ended {
		p.ended, p.locked = true, map[string]uint32{}
		for _, l := range m.Locked {
			p.locked[p.order[l.Upper]+"\x00"+l.Name] = l.Mode
		}
		exit := Exit{Code: m.Exit.Code, Left: m.Exit.Left}
		if p.reached.Unsupervised != "" {
			exit.Met = append(exit.Met, p.reached.unsupervised())
		}
		for _, r := range m.Met {
			exit.Met = append(exit.Met, inWords(r))
		}
		if m.Exit.Signal != 0 {
			exit.Signal = syscall.Signal(m.Exit.Signal).String()
		}
		return exit, nil
	}
	_, _ = p.shim.Wait() // only then process 1 has ended, and all others before it
	p.group.kill()       // in case the shim has died and is not process 1
	return Exit{Code: -1}, errors.New("the sandbox was ended before its program did")
}

// Close ends the remaining processes and discards overlays in memory. No
// process of the program remains after it.
func (p *Process) Close() error {
	if p.stop != nil {
		p.stop()
	}
	p.Kill()
	p.gone()
	var err error
	if p.ended && p.group == nil { // the kernel removes the rest
		go func() { _, _ = p.shim.Wait() }()
	} else {
		_, err = p.shim.Wait()
		p.group.kill()
		p.group.remove() // this process may end next
	}
	for _, f := range p.uppers {
		_ = f.Close()
	}
	if p.proxy != nil {
		_ = p.proxy.Close()
	}
	for _, n := range p.native {
		n.close()
	}
	p.ending.Lock()
	p.closed = true
	_ = p.socket.Close()
	p.ending.Unlock()
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ECHILD) {
		err = nil
	}
	if p.scratch != "" {
		err = errors.Join(err, Discard(p.scratch))
	}
	return err
}

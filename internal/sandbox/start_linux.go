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
	"syscall"

	"golang.org/x/sys/unix"
)

func (s Shim) path() (string, error) {
	if s != "" {
		return string(s), nil
	}
	if !shimmed.Load() {
		return "", fmt.Errorf("%w: this program does not call sandbox.Main first thing in main, and names no other shim", ErrNoSandbox)
	}
	return "/proc/self/exe", nil // also when the file was replaced meanwhile
}

// Process is a program in a sandbox. It must be closed.
type Process struct {
	shim    *os.Process
	socket  *os.File
	reached Reached
	uppers  map[string]*os.File // by root
	order   []string            // the roots of uppers, as the shim numbers them
	stop    func() bool
	ended   bool              // nothing but the shim runs any more
	locked  map[string]uint32 // by root and name, NUL between: the bits that the shim had to change
}

// Start runs a program in a sandbox. It returns when the program was started, or
// with the reason why not: ErrLevel where less than spec.Require could be had,
// ErrNoSandbox where nothing could. When ctx ends, the program and everything
// that it started is killed.
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
	p, err := spawn(path, spec, stdio)
	if err != nil {
		return nil, err
	}
	p.stop = context.AfterFunc(ctx, p.Kill)
	if err := p.begin(spec); err != nil {
		_ = p.Close()
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	return p, nil
}

// begin tells the shim what to do and hears whether it did.
func (p *Process) begin(spec Spec) error {
	var m message
	var fds []int
	err := send(int(p.socket.Fd()), spec.order(true))
	if err == nil {
		fds, err = receive(int(p.socket.Fd()), &m)
	}
	p.order = spec.overlays()
	for i, root := range p.order {
		if i < len(fds) {
			p.uppers[root] = os.NewFile(uintptr(fds[i]), root)
		}
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return errors.New("the sandbox did not start: its shim ended without a word; does the binary call sandbox.Main?")
	case err != nil:
		return fmt.Errorf("the sandbox did not start: %w", err)
	case m.Level:
		return fmt.Errorf("%w %s: %s", ErrLevel, spec.Require, m.Failed)
	case m.Began == nil:
		return errors.New(m.Failed)
	}
	p.reached = *m.Began
	return nil
}

func (s Spec) overlays() (roots []string) {
	for _, r := range s.Roots {
		if r.View == Overlay {
			roots = append(roots, r.Dir)
		}
	}
	return roots
}

func spawn(path string, spec Spec, stdio Stdio) (*Process, error) {
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
	sys, err := namespaces(spec.Network, spec.without)
	if err == nil {
		var shim *os.Process
		if shim, err = os.StartProcess(path, []string{shimName}, &os.ProcAttr{Dir: "/", Env: []string{}, Files: files, Sys: sys}); err == nil {
			return &Process{shim: shim, socket: mine, uppers: map[string]*os.File{}}, nil
		}
	}
	_ = mine.Close()
	return nil, fmt.Errorf("%w: %w", ErrNoSandbox, err)
}

// namespaces are what the shim is born into. Every user and group keeps its id:
// files then belong to whom they belong, and nothing has to be translated. An
// ordinary user may map nobody but itself.
func namespaces(network bool, without []string) (*syscall.SysProcAttr, error) {
	a := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		// What building takes. The root user has it anyway.
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_SETPCAP},
	}
	if !network {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	for layer, flag := range map[string]uintptr{"network": unix.CLONE_NEWNET, "processes": unix.CLONE_NEWPID, "messages": unix.CLONE_NEWIPC} {
		if slices.Contains(without, layer) {
			a.Cloneflags &^= flag
		}
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

// identity maps every id that there is here to itself.
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

// Reached says what the run really has.
func (p *Process) Reached() Reached { return p.reached }

// Kill ends the program and everything that it started, at once.
func (p *Process) Kill() { _ = p.shim.Kill() }

// Wait waits until the program and everything that it started is gone. An error
// means that the sandbox was killed or died: how the program ended is then not
// known, but nothing of it runs any more.
func (p *Process) Wait() (Exit, error) {
	var m message
	_, err := receive(int(p.socket.Fd()), &m)
	if err == nil && m.Ended != nil {
		p.ended, p.locked = true, map[string]uint32{}
		for _, l := range m.Locked {
			p.locked[p.order[l.Upper]+"\x00"+string(l.Name)] = l.Mode
		}
		return *m.Ended, nil
	}
	_, _ = p.shim.Wait() // only then is process 1 gone, and all others before it
	return Exit{Code: -1}, errors.New("the sandbox was ended before its program did")
}

// Close ends what still runs and drops overlays in memory. No program
// is left when it returns.
func (p *Process) Close() error {
	if p.stop != nil {
		p.stop()
	}
	p.Kill()
	var err error
	if p.ended { // what is left is the kernel's to clear away
		go func() { _, _ = p.shim.Wait() }()
	} else {
		_, err = p.shim.Wait()
	}
	for _, f := range p.uppers {
		_ = f.Close()
	}
	_ = p.socket.Close()
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ECHILD) {
		err = nil
	}
	return err
}

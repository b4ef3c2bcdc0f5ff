//go:build amd64 || arm64

package shim

import (
	"errors"
	"strconv"
	"sync"
	"syscall"
)

// supervisor serves the program's calls that rename and link. It performs what
// an overlay refuses, and otherwise lets the kernel continue. The kernel then
// checks the arguments again with the program's own rights, so no decision
// about rights depends on the supervisor.
type supervisor struct {
	listener int
	roots    []supervised
	caps     [2]capUserData // capabilities that the thread may use, see lower and raise

	busy sync.Mutex // held while a call is served, and after the program's end
	met  []met      // guarded by busy
}

// supervised is a root that the program can write.
type supervised struct {
	dir     string
	mount   uint64
	overlay bool // an overlay in which the kernel renames no folder of the root
	upper   int  // its upper folder
}

// met is a restriction that the program met, and how often.
type met struct {
	Restriction
	kind  string
	times int
}

// watched returns the roots that the program can write, by their mounts. It
// leaves a root without a unique mount to the kernel.
func (s *sandboxBuild) watched() (all []supervised) {
	upper := 0
	for _, r := range s.Roots {
		w := supervised{dir: r.Dir, overlay: r.View == Overlay && !r.Attached}
		if w.overlay && upper == len(s.uppers) || r.View == Read {
			continue
		}
		if w.overlay {
			w.upper = s.uppers[upper]
			upper++
		}
		fd, err := syscall.Open(r.Dir, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if w.mount, err = mountOf(fd); err == nil {
			all = append(all, w)
		}
		_ = syscall.Close(fd)
	}
	return all
}

// begin lowers the capabilities of the serving thread. It raises them only
// while it moves what the kernel would let the program move.
func (v *supervisor) begin() {
	header := capUserHeader{version: linuxCapabilityVersion3}
	if capget(&header, &v.caps) != nil || v.lower() != nil {
		syscall.Exit(1) // nothing may happen with more rights than the program has
	}
}

// lower leaves the thread no effective capability.
func (v *supervisor) lower() error {
	none := v.caps
	none[0].effective, none[1].effective = 0, 0
	return capset(&capUserHeader{version: linuxCapabilityVersion3}, &none)
}

// raise restores the capabilities.
func (v *supervisor) raise() error {
	return capset(&capUserHeader{version: linuxCapabilityVersion3}, &v.caps)
}

// isMove reports whether a system call renames or links.
func isMove(nr int32) bool {
	rename, link := oldCall(nr)
	return rename || link || nr == syscall.SYS_RENAMEAT || nr == sysRenameat2 || nr == syscall.SYS_LINKAT
}

// serve serves a call that renames or links.
func (v *supervisor) serve(n *notification) {
	v.busy.Lock()
	defer v.busy.Unlock()
	a := notificationAnswer{id: n.id, flags: seccompUserNotifFlagContinue}
	if err := v.answer(n); !errors.Is(err, errContinue) {
		a.flags = 0
		var errno syscall.Errno
		if errors.As(err, &errno) {
			a.err = -int32(errno) //nolint:gosec // a small number
		}
	}
	_ = answerNotification(v.listener, &a)
}

// errContinue lets the kernel continue a call.
var errContinue = errors.New("the kernel goes on")

// call is a rename or link with its arguments.
type call struct {
	link     bool
	old, new name
	flags    uint64
}

// name is a path, and the folder at which it starts.
type name struct {
	at     int32 // a descriptor of the caller's, or atFDCWD
	memory uint64
	parent int
	base   string // with its trailing slashes
}

func (n *name) plain() string {
	end := len(n.base)
	for end > 0 && n.base[end-1] == '/' {
		end--
	}
	return n.base[:end]
}

// callOf decodes the arguments of a system call.
func callOf(q *notification) call {
	here := int32(atFDCWD)
	low := func(n uint64) int32 { return int32(uint32(n)) } //nolint:gosec // the kernel looks at this half
	if rename, link := oldCall(q.number); rename || link {
		return call{link: link, old: name{at: here, memory: q.args[0]}, new: name{at: here, memory: q.args[1]}}
	}
	c := call{
		link: q.number == syscall.SYS_LINKAT,
		old:  name{at: low(q.args[0]), memory: q.args[1]}, new: name{at: low(q.args[2]), memory: q.args[3]},
	}
	if q.number == sysRenameat2 || c.link {
		c.flags = q.args[4] & 0xffffffff
	}
	return c
}

// answer returns the result of a call.
func (v *supervisor) answer(q *notification) error {
	c := callOf(q)
	defer c.close()
	for _, n := range []*name{&c.old, &c.new} {
		if n.open(int(q.pid)) != nil {
			return errContinue
		}
	}
	if !stillWaits(v.listener, q) {
		return errContinue // the caller has ended, and the opened folder may belong to another process
	}
	root, err := v.root(&c)
	if err != nil || root == nil || !root.overlay {
		return errContinue
	}
	if c.link {
		v.reportLink(root, &c)
		return errContinue
	}
	return v.rename(&c)
}

func (c *call) close() {
	for _, n := range []*name{&c.old, &c.new} {
		if n.parent > 0 {
			_ = syscall.Close(n.parent)
		}
	}
}

// open reads the path and opens the folder of its last name.
func (n *name) open(pid int) error {
	path, err := readMemory(pid, n.memory)
	if err != nil {
		return err
	}
	end := len(path)
	for end > 0 && path[end-1] == '/' {
		end--
	}
	begin := end
	for begin > 0 && path[begin-1] != '/' {
		begin--
	}
	switch path[begin:end] {
	case "", ".", "..":
		return syscall.EINVAL
	}
	folder := path[:begin]
	n.base = path[begin:]
	from := atFDCWD
	if folder == "" || folder[0] != '/' {
		start := "/proc/" + strconv.Itoa(pid) + "/cwd"
		if n.at != atFDCWD {
			start = "/proc/" + strconv.Itoa(pid) + "/fd/" + strconv.Itoa(int(n.at))
		}
		if from, err = syscall.Open(start, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0); err != nil {
			return err
		}
		if folder == "" {
			n.parent = from
			return nil
		}
		defer func() { _ = syscall.Close(from) }()
	}
	how := openHow{flags: oPath | syscall.O_DIRECTORY | syscall.O_CLOEXEC, resolve: resolveNoMagiclinks}
	fd, err := openat2(from, folder, &how)
	if err == nil {
		n.parent = fd
	}
	return err
}

// root returns the root of both names, or nil. A call between two mounts fails.
// It is recorded if the program can write one of them.
func (v *supervisor) root(c *call) (*supervised, error) {
	from, err := mountOf(c.old.parent)
	if err != nil {
		return nil, err
	}
	to, err := mountOf(c.new.parent)
	if err != nil {
		return nil, err
	}
	for i := range v.roots {
		r := &v.roots[i]
		switch {
		case r.mount == from && from == to:
			return r, nil
		case r.mount == from || r.mount == to:
			v.reportMounts(c)
			return nil, nil
		}
	}
	return nil, nil
}

// rename renames what the kernel refuses to rename.
func (v *supervisor) rename(c *call) error {
	if c.flags != 0 && c.flags != renameNoreplace && c.flags != renameExchange {
		return errContinue
	}
	from, to := isFolder(c.old), isFolder(c.new)
	if !from && (!to || c.flags != renameExchange) {
		return errContinue
	}
	// With only the rights of the program, whose errors the kernel returns.
	plainly := func() error { return renameAt(c.old.parent, c.old.base, c.new.parent, c.new.base, c.flags) }
	err := plainly()
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	if c.flags == 0 && to && full(c.new) {
		return syscall.ENOTEMPTY
	}
	if from {
		v.reportOpen(c.old)
		err = v.settle(c.old)
	}
	if to && c.flags == renameExchange && (err == nil || !from) {
		v.reportOpen(c.new)
		err = v.settle(c.new)
	}
	if err == nil {
		err = plainly()
	}
	return v.reportRename(c, err)
}

// settle makes a folder renamable by the kernel.
func (v *supervisor) settle(n name) error {
	if err := v.raise(); err != nil {
		return err
	}
	err := settle(n.parent, n.plain())
	if undone := (revertedMoveError{}); errors.As(err, &undone) {
		syscall.Exit(1) // ends the program with its changes, which are inconsistent
	}
	if low := v.lower(); low != nil {
		syscall.Exit(1)
	}
	return err
}

func isFolder(n name) bool {
	var is syscall.Stat_t
	return fstatat(n.parent, n.plain(), &is) == nil && is.Mode&syscall.S_IFMT == syscall.S_IFDIR
}

// full reports whether a folder has an entry, as far as readable.
func full(n name) bool {
	fd, _, err := openListed(n.parent, n.plain())
	if err != nil {
		return false
	}
	defer func() { _ = syscall.Close(fd) }()
	return len(namesIn(fd)) > 0
}

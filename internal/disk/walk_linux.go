//go:build !portable

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// A walker resolves names to descriptors. Only this part decides what lies
// beneath the root. Names are checked before.
type walker interface {
	// pin returns a descriptor of the file itself, a final link included, and
	// opens nothing: no device, no FIFO, no lease.
	pin(name string) (*os.File, error)

	// open opens the target of the name, through a final link if it stays
	// beneath. The caller checks the type.
	open(name string, flags int) (*os.File, error)

	close() error
}

// newWalker prefers openat2. A seccomp filter older than the call returns
// EPERM, an older kernel ENOSYS.
func newWalker(dir string) (walker, error) {
	root, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	w := &kernelWalker{root: root, refuse: beneath}
	probe, err := w.open(".", unix.O_PATH)
	if err == nil {
		return w, probe.Close()
	}
	_ = root.Close()
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return newOutsideWalker(dir)
	}
	return nil, err
}

// kernelWalker walks with openat2. It compares no device numbers: NO_XDEV
// checks mounts, and an overlay may give the files of one mount several device
// numbers.
type kernelWalker struct {
	root   *os.File
	refuse uint64 // what the walk must not resolve
}

const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

func (w *kernelWalker) pin(name string) (*os.File, error) {
	return w.open(name, unix.O_PATH|unix.O_NOFOLLOW)
}

// stat describes the file of pin, without keeping it open.
func (w *kernelWalker) stat(name string) (info Info, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: w.refuse}
	err = control(w.root, func(root int) error {
		return w.withOpen(root, name, &how, func(fd int) error {
			var raw unix.Stat_t
			if err := unix.Fstat(fd, &raw); err != nil {
				return err
			}
			info = infoOf(&raw)
			return nil
		})
	})
	return info, err
}

// folder runs act on a directory, which is open only during act.
func (w *kernelWalker) folder(name string, act func(fd int) error) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: w.refuse}
	return control(w.root, func(root int) error { return w.withOpen(root, name, &how, act) })
}

// withOpen opens a name while act runs. A descriptor that never leaves this
// function needs no os.File, which would cost more than everything else here.
func (w *kernelWalker) withOpen(root int, name string, how *unix.OpenHow, act func(fd int) error) error {
	fd, err := openat2(root, name, how)
	if err != nil {
		return walkError(err)
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written through it
	return act(fd)
}

func (w *kernelWalker) open(name string, flags int) (*os.File, error) {
	how := unix.OpenHow{Flags: uint64(flags) | unix.O_CLOEXEC, Resolve: w.refuse}
	var fd int
	err := control(w.root, func(root int) (err error) {
		fd, err = openat2(root, name, &how)
		return err
	})
	if err != nil {
		return nil, walkError(err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (w *kernelWalker) close() error { return w.root.Close() }

// openat2 retries after a signal, and for a while after the kernel gave up
// because of a rename elsewhere in the tree.
func openat2(root int, name string, how *unix.OpenHow) (fd int, err error) {
	const patience = 128
	for range patience {
		err = interrupted(func() (err error) {
			fd, err = unix.Openat2(root, name, how)
			return err
		})
		if !errors.Is(err, unix.EAGAIN) {
			return fd, err
		}
		runtime.Gosched()
	}
	return fd, err
}

// outsideWalker walks with os.Root, which ignores mounts. So it compares the
// mount at the end of each walk with that of the root.
type outsideWalker struct {
	root *os.Root
	home mountID
}

func newOutsideWalker(dir string) (walker, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	w := &outsideWalker{root: root}
	self, err := root.OpenFile(".", unix.O_PATH, 0)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	w.home, err = placeOf(self)
	if err := errors.Join(err, self.Close()); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return w, nil
}

// mountID is a mount, or on kernels before 5.8 only a device. The device of a
// file says less: a bind mount shares it with its origin, and an overlay may
// give the files of one mount several.
type mountID struct {
	mount bool
	id    uint64
}

func placeOf(file *os.File) (mountID, error) {
	var raw unix.Statx_t
	err := control(file, func(fd int) error {
		return unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &raw)
	})
	if err == nil && raw.Mask&unix.STATX_MNT_ID != 0 {
		return mountID{mount: true, id: raw.Mnt_id}, nil
	}
	info, err := stat(file)
	return mountID{id: info.Device}, err
}

// pin relies on os.Root adding O_NOFOLLOW to every step: together with O_PATH
// that returns the link, where plain O_NOFOLLOW would fail and be resolved.
func (w *outsideWalker) pin(name string) (*os.File, error) {
	return w.open(name, unix.O_PATH)
}

func (w *outsideWalker) open(name string, flags int) (*os.File, error) {
	file, err := w.root.OpenFile(name, flags, 0)
	if err != nil {
		return nil, walkError(rootError(err))
	}
	where, err := placeOf(file)
	if err == nil && where != w.home {
		err = ErrEscape
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

func (w *outsideWalker) close() error { return w.root.Close() }

// walkError maps the kernel's errors to those of this package.
func walkError(err error) error {
	switch {
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.ELOOP):
		return fmt.Errorf("%w: %w", ErrEscape, err)
	case errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%w: %w", ErrType, err)
	}
	return err
}

// control runs use with the descriptor of a file. Meanwhile the file cannot be
// closed, and no other file gets its number.
func control(file *os.File, use func(fd int) error) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return fs.ErrClosed
	}
	var failed error
	if conn.Control(func(fd uintptr) { failed = use(int(fd)) }) != nil {
		return fs.ErrClosed
	}
	return failed
}

// interrupted repeats a system call while signals interrupt it.
func interrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

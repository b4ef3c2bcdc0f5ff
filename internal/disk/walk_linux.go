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
	// with opens the file of the name while act runs. A descriptor that never
	// leaves this function needs no os.File, which would cost more than
	// everything else here. The caller checks the type.
	with(name string, flags int, act func(fd int) error) error

	// open opens the target of the name, through a final link if it stays
	// beneath, and returns its descriptor. The caller checks the type.
	open(name string, flags int) (fd int, err error)

	// stat describes the file itself, a final link included.
	stat(name string) (Info, error)

	// folder runs act on a directory, which is open at least during act.
	folder(name string, act func(fd int) error) error

	// directory runs act on a directory opened for reading. It returns ErrType
	// for a file of another type, a link included.
	directory(name string, act func(fd int) error) error

	close() error
}

// toPin opens the file itself, a final link included, and has no effect on it:
// no device, no FIFO, no lease.
const toPin = unix.O_PATH | unix.O_NOFOLLOW

// newWalker prefers openat2. A seccomp filter older than the call returns
// EPERM, an older kernel ENOSYS.
func newWalker(dir string) (walker, error) {
	root, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	w := &kernelWalker{root: root, refuse: beneath}
	err = w.with(".", unix.O_PATH, func(int) error { return nil })
	if err == nil {
		return w, nil
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

func (w *kernelWalker) with(name string, flags int, act func(fd int) error) error {
	return control(w.root, func(root int) error { return w.withAt(root, name, flags, act) })
}

// withAt is with for a name below an open directory.
func (w *kernelWalker) withAt(dir int, name string, flags int, act func(fd int) error) error {
	fd, err := w.openAt(dir, name, flags)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written through it
	return act(fd)
}

func (w *kernelWalker) openAt(dir int, name string, flags int) (fd int, err error) {
	how := unix.OpenHow{Flags: uint64(flags) | unix.O_CLOEXEC, Resolve: w.refuse}
	fd, err = openat2(dir, name, &how)
	return fd, walkError(err)
}

func (w *kernelWalker) open(name string, flags int) (fd int, err error) {
	err = control(w.root, func(root int) (err error) {
		fd, err = w.openAt(root, name, flags)
		return err
	})
	return fd, err
}

func (w *kernelWalker) stat(name string) (info Info, err error) {
	err = control(w.root, func(root int) error {
		info, err = w.statAt(root, name)
		return err
	})
	return info, err
}

func (w *kernelWalker) folder(name string, act func(fd int) error) error {
	return control(w.root, func(root int) error {
		if name == "." {
			return act(root)
		}
		return w.withAt(root, name, unix.O_PATH|unix.O_DIRECTORY, act)
	})
}

func (w *kernelWalker) directory(name string, act func(fd int) error) error {
	return control(w.root, func(root int) error { return w.directoryAt(root, name, act) })
}

// directoryAt is directory for a name below an open directory. Opening a
// directory has no effect on it, so nothing looks at its type before.
func (w *kernelWalker) directoryAt(dir int, name string, act func(fd int) error) error {
	fd, err := w.openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOTDIR) {
		if info, lerr := w.statAt(dir, name); lerr == nil && info.Type != TypeDir {
			err = ErrType // else something above it is no directory
		}
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written through it
	return act(fd)
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

// with relies on os.Root adding O_NOFOLLOW to every step: together with O_PATH
// that returns the link, where plain O_NOFOLLOW would fail and be resolved.
func (w *outsideWalker) with(name string, flags int, act func(fd int) error) error {
	file, err := w.openFile(name, flags&^unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer file.Close()
	return control(file, act)
}

func (w *outsideWalker) open(name string, flags int) (fd int, err error) {
	err = w.with(name, flags, func(own int) error {
		fd, err = unix.FcntlInt(uintptr(own), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	return fd, err
}

func (w *outsideWalker) stat(name string) (info Info, err error) {
	err = w.with(name, toPin, func(fd int) error {
		info, err = statOf(fd)
		return err
	})
	return info, err
}

func (w *outsideWalker) folder(name string, act func(fd int) error) error {
	return w.with(name, unix.O_PATH|unix.O_DIRECTORY, act)
}

// directory opens the directory that it pinned through its own ".", so that
// there is no second walk.
func (w *outsideWalker) directory(name string, act func(fd int) error) error {
	return w.with(name, toPin, func(pin int) error {
		info, err := statOf(pin)
		if err == nil && info.Type != TypeDir {
			err = ErrType
		}
		if err != nil {
			return err
		}
		return readable(pin, act)
	})
}

// readable runs act on a pinned directory opened for reading and syncing.
func readable(pin int, act func(fd int) error) error {
	var dir int
	err := interrupted(func() (err error) {
		dir, err = unix.Openat(pin, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }() // nothing was written through it
	return act(dir)
}

func (w *outsideWalker) openFile(name string, flags int) (*os.File, error) {
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
	case err == nil:
		return nil
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

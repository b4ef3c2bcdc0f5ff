//go:build !portable

package disk

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// TryLease takes a read lease, which the kernel grants only while no process
// has the inode open for writing, and releases it at once.
func (r *linuxRoot) TryLease(name string) error {
	return pathError("quiet", name, r.quiet(name))
}

func (r *linuxRoot) quiet(name string) error {
	info, err := r.stat(name)
	switch {
	case err != nil:
		return err
	case info.Type == TypeDir, info.Type == TypeLink:
		return nil
	case info.Type != TypeFile:
		return ErrType
	}
	return r.contentOf(name, info, lease)
}

// leaseDelay is the first delay before lease tries again, and leaseTries the
// number of attempts; each delay is twice the one before. A program that this
// process starts holds copies of all descriptors until it calls exec. One of
// them can be open for writing by another goroutine at that time.
const (
	leaseDelay = 200 * time.Microsecond
	leaseTries = 8
)

// lease takes and releases a read lease. Closing the descriptor would release
// it too, but not while a forked child still shares it.
func lease(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	for try := range leaseTries - 1 {
		if !errors.Is(err, unix.EAGAIN) {
			break
		}
		time.Sleep(leaseDelay << try)
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	}
	switch {
	case errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	case err != nil:
		return err
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	return err
}

//go:build !portable

package disk

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Quiet asks for a read lease, which the kernel grants only while nobody has
// the inode open for writing, and gives it back at once.
func (r *linuxRoot) Quiet(name string) error {
	err := r.pinned(name, func(pin *os.File, info Info) error {
		switch info.Type {
		case TypeDir, TypeLink:
			return nil
		case TypeFile:
		default:
			return ErrType
		}
		file, err := r.unpin(name, pin, info)
		if err != nil {
			return err
		}
		defer file.Close()
		return control(file, lease)
	})
	return pathError("quiet", name, err)
}

// lease takes and returns a read lease. Closing the descriptor would return
// it too, but not while a child that was just forked still shares it.
func lease(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
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

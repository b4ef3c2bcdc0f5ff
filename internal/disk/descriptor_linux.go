//go:build !portable

package disk

import (
	"io/fs"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// descriptor is an open file descriptor. The kernel gives its number to another
// file as soon as it is closed. So it stays open until its last use has ended.
type descriptor struct {
	fd    int
	users atomic.Int64 // number of uses, and descriptorClosed
}

// descriptorClosed is set from the close on.
const descriptorClosed = 1 << 62

// use runs a system call on the descriptor. After the close it returns
// fs.ErrClosed.
func (d *descriptor) use(call func(fd int) error) error {
	for {
		n := d.users.Load()
		if n&descriptorClosed != 0 {
			return fs.ErrClosed
		}
		if d.users.CompareAndSwap(n, n+1) {
			break
		}
	}
	defer func() {
		if d.users.Add(-1) == descriptorClosed {
			_ = unix.Close(d.fd) // Close has returned
		}
	}()
	return call(d.fd)
}

// close closes the descriptor, or leaves that to the uses that still run.
func (d *descriptor) close() error {
	for {
		n := d.users.Load()
		if n&descriptorClosed != 0 {
			return fs.ErrClosed
		}
		if d.users.CompareAndSwap(n, n|descriptorClosed) {
			if n > 0 {
				return nil
			}
			return unix.Close(d.fd)
		}
	}
}

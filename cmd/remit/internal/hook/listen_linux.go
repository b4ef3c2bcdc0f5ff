package hook

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/hookclient"
)

// errRunning says that another process of this user serves the socket.
var errRunning = errors.New("another resident process serves the agents of this user")

// listener is the socket of a resident process, with its lock.
type listener struct {
	*net.UnixListener
	lock *os.File
}

// Close closes the socket, and then the lock.
func (l *listener) Close() error { return errors.Join(l.UnixListener.Close(), l.lock.Close()) }

// listen makes the socket below the user's folder for state. One process can
// listen: it holds a lock until the listener's process ends.
func listen(home string) (_ *listener, err error) {
	dir := filepath.Join(home, filepath.FromSlash(hookclient.Folder))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errRunning
		}
		return nil, err
	}
	at, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = at.Close() }()
	// Nobody listens on a socket of an earlier process: this one has the lock.
	if err := os.Remove(filepath.Join(dir, hookclient.Socket)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	name := fmt.Sprintf("/proc/self/fd/%d/%s", at.Fd(), hookclient.Socket) // a path has at most 107 bytes
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the next process removes it under the lock
	return &listener{l, lock}, os.Chmod(filepath.Join(dir, hookclient.Socket), 0o600)
}

// private refuses a folder that others can use: they could put a socket of
// theirs in it.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s: mode %v; it must be a folder of mode 0700", dir, info.Mode())
	}
	return nil
}

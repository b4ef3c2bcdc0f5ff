package hook

import (
	"errors"
	"net"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/internal/hookclient"
)

// errRunning says that another process of this user serves the socket.
var errRunning = errors.New("another resident process serves the agents of this user")

// listener is the socket of a resident process, with its lock.
type listener struct {
	*net.UnixListener
	lock *os.File
	path string
}

// Close removes the socket, closes it, and then the lock.
func (l *listener) Close() error {
	err := os.Remove(l.path)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.UnixListener.Close(), l.lock.Close())
}

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
	if err := tryLock(lock); err != nil {
		return nil, err
	}
	// Nobody listens on a socket of an earlier process: this one has the lock.
	path := filepath.Join(dir, hookclient.Socket)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := listenAt(home, dir)
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // its address can have another path; see Close
	return &listener{l, lock, path}, os.Chmod(path, 0o600)
}

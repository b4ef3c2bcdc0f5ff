package sqlite

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const lockSuffix = ".lock"

// errLocked says that somebody else has a lock that excludes ours.
var errLocked = errors.New("locked")

// ownerLock is the file that an opening holds locked for as long as it lives.
// The system lets go of the lock when the process ends, however it ends.
type ownerLock struct {
	owner string
	file  *os.File
}

// lockOwner makes a new owner and its lock. A name is used once, so that a name
// whose file is gone stands for a dead owner for ever.
func lockOwner(dir string) (*ownerLock, error) {
	for {
		owner := "o_" + strings.ToLower(rand.Text())
		lock, err := tryLockOwner(dir, owner)
		if err == nil || !errors.Is(err, errLocked) {
			return lock, err
		}
	}
}

// tryLockOwner makes the file and locks it. Between the two, somebody who looks
// for dead owners can take the file for one of them and remove it: then the lock
// is on a file without a name, which nobody would ever find.
func tryLockOwner(dir, owner string) (*ownerLock, error) {
	path := filepath.Join(dir, owner+lockSuffix)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = lockExclusive(f)
	for errors.Is(err, errLocked) { // they look only for a moment
		time.Sleep(firstPause)
		err = lockExclusive(f)
	}
	if err == nil {
		err = stillNamed(f, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &ownerLock{owner: owner, file: f}, nil
}

func stillNamed(f *os.File, path string) error {
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(mine, there) {
		return errLocked
	}
	return err
}

// release ends the owner's life. The file is removed after that: its name is
// never used again, so nobody can be harmed.
func (l *ownerLock) release(remove bool) error {
	path := l.file.Name()
	err := l.file.Close()
	if remove {
		err = errors.Join(err, ignoreMissing(os.Remove(path)))
	}
	return err
}

// isLocked reports whether the owner of a lock file lives. It asks with a shared
// lock, so that two who ask at once do not take each other for the owner.
func isLocked(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = lockShared(f)
	locked := errors.Is(err, errLocked)
	if locked {
		err = nil
	}
	return locked, errors.Join(err, f.Close())
}

// checkOwner refuses names that no opening can have: a name becomes a path.
func checkOwner(owner string) error {
	digits, ok := strings.CutPrefix(owner, "o_")
	if !ok || digits == "" || strings.Trim(digits, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return fmt.Errorf("%q is not an owner of this journal", owner)
	}
	return nil
}

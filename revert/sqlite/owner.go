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

// errLocked says that another opening has a lock that excludes ours.
var errLocked = errors.New("locked")

// ownerLock is the file that a live opening holds locked. The system releases
// the lock when the process ends, for any reason.
type ownerLock struct {
	owner string
	file  *os.File
}

// lockOwner creates a new owner and its lock. A name is used once, so a name
// whose file is gone identifies a dead owner forever.
func lockOwner(dir string) (*ownerLock, error) {
	for {
		owner := "o_" + strings.ToLower(rand.Text())
		lock, err := tryLockOwner(dir, owner)
		if err == nil || !errors.Is(err, errLocked) {
			return lock, err
		}
	}
}

// tryLockOwner creates the file and locks it. In between, a process that looks
// for dead owners can remove the file. Then the lock is on a file without a
// name, which no process can find.
func tryLockOwner(dir, owner string) (*ownerLock, error) {
	path := filepath.Join(dir, owner+lockSuffix)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = lockExclusive(f)
	for errors.Is(err, errLocked) { // they hold it only briefly
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

// release ends the owner. It removes the file after that: the name is never
// used again, so the removal is safe.
func (l *ownerLock) release(remove bool) error {
	path := l.file.Name()
	err := l.file.Close()
	if remove {
		err = errors.Join(err, ignoreMissing(os.Remove(path)))
	}
	return err
}

// isLocked reports whether the owner of a lock file lives. It tries a shared
// lock, so that two callers do not mistake each other for the owner.
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

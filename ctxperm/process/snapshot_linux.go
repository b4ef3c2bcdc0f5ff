//go:build !portable

package process

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/sandbox"
)

const (
	rereads = false // a file that may not be read now may not be read later
	watches = true  // package watch works
)

// snapshotClock returns the time of the stamps of files. A change from now on
// has this time or a later one.
func snapshotClock() (time.Time, error) { return sandbox.Now() }

// flush syncs the file system of a file.
func flush(f *os.File) error { return unix.Syncfs(int(f.Fd())) }

// hardenMany makes many copied files durable with their whole file system.
func (s *snapshotStore) hardenMany() error { return with(s.dir, s.flush) }

// copiedLink returns the target of the copy of a link.
func copiedLink(at string) (string, error) { return os.Readlink(at) }

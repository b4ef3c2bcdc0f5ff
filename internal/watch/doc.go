// Package watch tells which names of a folder may have changed since somebody
// looked, so that the next look needs no walk of the whole folder. It works on
// Linux, by inotify. Elsewhere New returns an error, and callers walk.
//
// A Tree answers for everything that the kernel reports: it never says that
// nothing changed when an event was lost. What the kernel does not report is
// listed at New.
package watch

import "errors"

// ErrUnsupported states that changes of a folder cannot be watched, because of
// the system, the kind of file system, or mounts in the folder.
var ErrUnsupported = errors.New("changes of the folder cannot be watched")

// ErrStale states that events were lost, so that only a walk tells what changed.
// The Tree is of no more use.
var ErrStale = errors.New("changes of the folder were lost")

// Dirty are names that may have changed, relative to the watched folder.
type Dirty struct {
	// Names maps each name to whether everything below it may have changed too,
	// because it is a directory that came, went or moved.
	Names map[string]bool
	// Opened are the files that somebody may still have open. A file that is
	// mapped into memory changes without any event.
	Opened map[string]bool
	// Links are the inodes of files that got a name in the folder besides others.
	// One that was in the folder before can have changed by that name.
	Links map[uint64]bool
	// Unsure states that a name came and went before anybody could see whether
	// it was one of a file with other names. Only a walk tells.
	Unsure bool
}

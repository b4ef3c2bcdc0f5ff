package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/revert/record"
)

// logState is what can be told of a write-ahead log before SQLite reads it.
type logState struct {
	alive int // openings that live: while there are any, the log is not read
	file  os.FileInfo
	place logPlace // how far SQLite will read
}

// checkFolder reads the write-ahead log of a folder before SQLite does, where nobody
// has the journal open. What living openings write is not read, and is no damage.
// Somebody may open and close the journal while this reads: so damage is what is found
// twice in a log that nobody has touched meanwhile.
func checkFolder(dir string) (logState, error) {
	for {
		before, damage := lookAtLog(dir)
		if before.alive > 0 || !errors.Is(damage, record.ErrDamaged) {
			return before, damage
		}
		after, again := lookAtLog(dir)
		if after.alive > 0 || again == nil {
			return after, again
		}
		if b, a := before.file, after.file; b != nil && a != nil && os.SameFile(b, a) && b.Size() == a.Size() && b.ModTime().Equal(a.ModTime()) {
			return after, again
		}
	}
}

// lookAtLog counts the openings that live, and checks the log unless there are any.
func lookAtLog(dir string) (s logState, err error) {
	if s.alive, err = countAlive(dir); err != nil || s.alive > 0 {
		return s, err
	}
	path := filepath.Join(dir, databaseName+"-wal")
	if s.file, err = os.Stat(path); err != nil {
		return logState{}, ignoreMissing(err)
	}
	s.place, err = checkLog(path)
	return s, err
}

// countAlive counts the openings that live.
func countAlive(dir string) (n int, err error) {
	err = eachFile(filepath.Join(dir, "owners"), func(path, _ string) error {
		locked, err := isLocked(path)
		if locked {
			n++
		}
		return err
	})
	return n, ignoreMissing(err)
}

// unread refuses to open a journal whose log SQLite would cut where it must not. What
// stands before the damage can be had by cutting the log there.
func unread(damage error) error {
	if errors.Is(damage, record.ErrDamaged) {
		return fmt.Errorf("%w; nothing was changed: copy the folder, and have the copy checked", damage)
	}
	return damage
}

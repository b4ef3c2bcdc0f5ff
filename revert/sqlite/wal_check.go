package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/revert/record"
)

// logState is the state of a write-ahead log before SQLite reads it.
type logState struct {
	alive int // live openings: while there are any, the log is not read
	file  os.FileInfo
	place logPlace // how far SQLite will read
}

// checkFolder reads the write-ahead log of a folder before SQLite does, if no
// opening is alive. It does not read the writes of live openings, and they are
// no damage. A process may open and close the journal during the read. So
// damage must be found twice in an unchanged log.
func checkFolder(dir string) (logState, error) {
	for {
		before, damage := readLogState(dir)
		if before.alive > 0 || !errors.Is(damage, record.ErrDamaged) {
			return before, damage
		}
		after, again := readLogState(dir)
		if after.alive > 0 || again == nil {
			return after, again
		}
		if b, a := before.file, after.file; b != nil && a != nil && os.SameFile(b, a) && b.Size() == a.Size() && b.ModTime().Equal(a.ModTime()) {
			return after, again
		}
	}
}

// readLogState counts the live openings, and checks the log if there are none.
func readLogState(dir string) (s logState, err error) {
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

// countAlive returns the number of live openings.
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

// damagedLogError refuses to open a journal whose log SQLite would cut at damage. The
// entries before the damage can be saved by cutting the log there.
func damagedLogError(damage error) error {
	if errors.Is(damage, record.ErrDamaged) {
		return fmt.Errorf("%w; nothing was changed: copy the folder, and have the copy checked", damage)
	}
	return damage
}

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/revert/record"
)

// checkFolder reads the write-ahead log of a folder before SQLite does, where nobody
// has the journal open. It returns how many have: what they write is not read, and is
// no damage. Somebody may open and close the journal while this reads: so damage is
// what is found twice in a log that nobody has touched meanwhile.
func checkFolder(dir string) (alive int, damage error) {
	for {
		alive, before, damage := lookAtLog(dir)
		if alive > 0 || !errors.Is(damage, record.ErrDamaged) {
			return alive, damage
		}
		alive, after, again := lookAtLog(dir)
		if alive > 0 || again == nil {
			return alive, again
		}
		if before != nil && after != nil && os.SameFile(before, after) && before.Size() == after.Size() && before.ModTime().Equal(after.ModTime()) {
			return 0, again
		}
	}
}

// lookAtLog counts the openings that live, and checks the log unless there are any.
func lookAtLog(dir string) (alive int, log os.FileInfo, err error) {
	if alive, err = countAlive(dir); err != nil || alive > 0 {
		return alive, nil, err
	}
	path := filepath.Join(dir, databaseName+"-wal")
	log, err = os.Stat(path)
	if err != nil {
		return 0, nil, ignoreMissing(err)
	}
	return 0, log, checkLog(path)
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

// soundLog refuses to open a journal whose log SQLite would cut where it must not. What
// stands before the damage can be had by cutting the log there.
func soundLog(dir string) error {
	_, damage := checkFolder(dir)
	if errors.Is(damage, record.ErrDamaged) {
		return fmt.Errorf("%w; nothing was changed: copy the folder, and let remit fsck say more", damage)
	}
	return damage
}

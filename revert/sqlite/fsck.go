package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// FsckReport is the result of Fsck.
type FsckReport struct {
	revert.FsckReport
	Incomplete bool  `json:"incomplete,omitempty"` // Open refuses the journal with ErrIncomplete
	Missing    int64 `json:"missing,omitempty"`    // number of missing entries that the head file promises
	Alive      int   `json:"alive"`                // live openings; while there are any, no other process may read the write-ahead log
	Unnamed    int64 `json:"unnamed"`              // blobs that no entry names: left by a crash, or not named yet
	Leftover   int64 `json:"leftover"`             // unfinished blobs of dead openings; the next Open removes them
}

// Fsck checks the journal in a folder. It runs revert.Fsck, and checks what
// only this store can check: the write-ahead log's checksums, before SQLite
// reads it and drops what does not fit; the file's own structure; claims; the
// files of blobs, and foreign files among them. It returns record.ErrDamaged if
// there was any problem.
//
// Fsck stops at a damaged write-ahead log: opening the journal would destroy
// what follows the damage.
//
// Fsck compares the entries with the head file beside them. Without a head kept
// elsewhere it cannot detect that a folder is an older copy of itself, or that
// the folder and its head file were changed together.
func Fsck(ctx context.Context, dir string, o revert.FsckOptions) (FsckReport, error) {
	dir, err := filepath.Abs(dir)
	f := fsck{dir: dir, options: o}
	if err == nil {
		err = f.run(ctx)
	}
	if err == nil {
		err = f.report.Err()
	}
	if err != nil {
		err = fmt.Errorf("journal in %s: %w", dir, explainFS(dir, err))
	}
	return f.report, err
}

type fsck struct {
	dir     string
	options revert.FsckOptions
	report  FsckReport
	journal *Journal // for reading, without an owner of its own
	folder  folderState
	whole   bool // it has all entries that the head file promises
	named   *digestSet
}

func (f *fsck) problem(format string, args ...any) {
	f.report.Problems++
	if f.options.Found != nil {
		f.options.Found(revert.Problem{What: fmt.Errorf(format, args...).Error()})
	}
}

func (f *fsck) run(ctx context.Context) (err error) {
	if sound, err := f.beforeOpening(); err != nil || !sound {
		return err
	}
	f.journal = &Journal{dir: f.dir, lock: &ownerLock{}, wait: busyBackoff{limit: time.Minute}}
	if f.journal.reader, err = sql.Open("sqlite", f.journal.dsn("busy_timeout(10000)", "query_only(1)")); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.journal.reader.Close())
		if f.whole {
			_ = f.journal.recordCheckpoint() // if it fails, the next opening checks the whole database
		}
	}()
	err = checkFormat(ctx, f.journal.reader)
	if errors.Is(err, errEmpty) {
		err = cmp.Or(f.folder.checkBegun(), err)
	}
	if err != nil {
		return err // it may belong to another program: nothing more is checked
	}
	if f.named, err = newScratch(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.named.close()) }()
	for _, part := range []func(context.Context) error{f.complete, f.structure, f.contract, f.derived, f.rows, f.files} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// beforeOpening checks what opening would change. It reports whether the
// journal may be opened.
func (f *fsck) beforeOpening() (sound bool, err error) {
	info, err := os.Stat(f.dir)
	if err == nil {
		_, err = os.Lstat(filepath.Join(f.dir, databaseName))
		if errors.Is(err, os.ErrNotExist) {
			if w, none := lookAtFolder(f.dir, busyBackoff{limit: time.Minute}); none == nil {
				err = cmp.Or(w.checkBegun(), err)
			}
		}
	}
	if err == nil {
		err = checkFile(filepath.Join(f.dir, databaseName))
	}
	if errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("there is no %s: %w", databaseName, journal.ErrNotFound)
	}
	if err != nil {
		return false, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		f.problem("others may enter the folder (mode %v): chmod 700 it", info.Mode().Perm())
	}
	var damage error
	f.folder, damage = lookAtFolder(f.dir, busyBackoff{limit: time.Minute})
	f.report.Alive = f.folder.log.alive
	if !errors.Is(damage, record.ErrDamaged) {
		return damage == nil, damage
	}
	f.problem("%w; nothing else was checked: copy the folder before any program opens it, which would drop everything after the damage", damage)
	return false, nil
}

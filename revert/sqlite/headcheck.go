package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Exists reports whether a folder has a journal, or remains of one.
func Exists(dir string) bool {
	_, db := os.Lstat(filepath.Join(dir, databaseName))
	_, head := os.Lstat(filepath.Join(dir, headName))
	return !errors.Is(db, os.ErrNotExist) || !errors.Is(head, os.ErrNotExist)
}

// folderState is the state of a folder before SQLite reads it: first the head file,
// which never has more than the database, and then the log.
type folderState struct {
	dir  string
	wait busyBackoff
	mark mark
	none bool  // there is no head file
	bad  error // the head file is damaged
	log  logState
}

func lookAtFolder(dir string, wait busyBackoff) (w folderState, err error) {
	w.dir, w.wait = dir, wait
	w.mark, w.none, err = readHead(dir, wait)
	if errors.Is(err, ErrIncomplete) {
		w.bad, err = err, nil
	}
	if err == nil {
		w.log, err = checkFolder(dir)
	}
	return w, err
}

// reread reads a missing head file once more. A process that creates a journal
// creates the head file first. So it exists by now if another process has
// created the journal since the first read.
func (w folderState) reread() (folderState, error) {
	if !w.none {
		return w, nil
	}
	return lookAtFolder(w.dir, w.wait)
}

// checkBegun returns an error if the folder shows that entries were promised, or
// content stored.
func (w folderState) checkBegun() error {
	found, err := hasContent(filepath.Join(w.dir, "blobs"))
	if err == nil && !found {
		_, err = os.Lstat(filepath.Join(w.dir, reserveName)) // created with the journal
		found, err = err == nil, ignoreMissing(err)
	}
	if err == nil && w.none && found {
		now, err := w.reread()
		if err != nil || !now.none {
			return err
		}
	}
	switch {
	case err != nil:
		return err
	case w.mark.head.Size > 0:
		return fmt.Errorf("%w: %s is empty or missing, and %s says that %s promised by %s", ErrIncomplete, databaseName, headName, were(w.mark.head.Size), timeOf(w.mark.at))
	case w.bad != nil:
		return w.bad
	case w.none && found:
		return fmt.Errorf("%w: %s is empty or missing, and its other files are present", record.ErrDamaged, databaseName)
	}
	return nil
}

// complete compares a database with its head file.
func (w folderState) complete(ctx context.Context, j *Journal) error {
	w, err := w.reread()
	switch {
	case err != nil:
		return err
	case w.bad != nil:
		return fmt.Errorf("%w: nothing shows whether %s has all that was promised", w.bad, databaseName)
	case w.none:
		return fmt.Errorf("%w: %s is missing, as in a copy that left it out: nothing shows whether %s has all that was promised", ErrIncomplete, headName, databaseName)
	}
	size, err := j.size(ctx)
	if err != nil {
		return j.causeOf(ctx, err)
	}
	//mutant:check
	if w.mark.head.Size > size {
		return fmt.Errorf("%w: %s", ErrIncomplete, j.describeMissing(ctx, size, w.mark))
	}
	if err := w.prefix(ctx, j); err != nil {
		return err
	}
	if w.log.alive > 0 || w.log.place.covers(w.mark.log) {
		return nil
	}
	return j.checkWhole(ctx)
}

// prefix compares the promised entries with the present ones. Damaged entries
// are reported when they are read, and do not prevent reading the others.
func (w folderState) prefix(ctx context.Context, j *Journal) error {
	size := w.mark.head.Size
	tree, err := journal.TreeOf(size, j.finder(ctx))
	if err == nil && tree.Head() == w.mark.head {
		return nil
	}
	if err != nil && !errors.Is(err, journal.ErrNotFound) && !errors.Is(err, record.ErrDamaged) {
		return err
	}
	if tree, err = j.treeOfLeaves(ctx, size); err != nil || tree.Head() == w.mark.head {
		return unlessDamaged(err)
	}
	return fmt.Errorf("%w: the first %d entries are not those that %s was written for: some are missing or were changed, or the file belongs to another journal", ErrIncomplete, size, headName)
}

// treeOfLeaves computes the tree of entries again, if all of them are sound.
func (j *Journal) treeOfLeaves(ctx context.Context, size int64) (tree journal.Tree, err error) {
	for e, err := range j.Entries(ctx, journal.Query{}) {
		if err != nil || e.Pos > size {
			return tree, err
		}
		tree, _ = tree.Add(e.Leaf)
	}
	return tree, nil
}

func unlessDamaged(err error) error {
	if errors.Is(err, record.ErrDamaged) {
		return nil
	}
	return err
}

// describeMissing describes the missing entries.
func (j *Journal) describeMissing(ctx context.Context, size int64, m mark) string {
	which, since := fmt.Sprintf("entries %d to %d are", size+1, m.head.Size), ""
	if m.head.Size == size+1 {
		which = fmt.Sprintf("entry %d is", m.head.Size)
	}
	for e, err := range j.Entries(ctx, journal.Query{Newest: true, Limit: 1}) {
		if err == nil && !e.Header.At.IsZero() {
			since = "after " + timeOf(e.Header.At) + " and "
		}
	}
	return fmt.Sprintf("%s missing, %d of %d, written %sby %s: %s was cut, deleted or left out of a copy, or %s is older than %s",
		which, m.head.Size-size, m.head.Size, since, timeOf(m.at), databaseName+"-wal", databaseName, headName)
}

func were(n int64) string {
	if n == 1 {
		return "1 entry was"
	}
	return fmt.Sprintf("%d entries were", n)
}

func timeOf(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }

// checkWhole checks a whole database whose log is not the one of the head file.
// Either the log was copied into the database and removed, or it was cut or
// removed while a part of it had been copied. In the second case tables and
// indexes can have different times.
func (j *Journal) checkWhole(ctx context.Context) error {
	var says string
	if err := j.reader.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&says); err != nil {
		return j.causeOf(ctx, err)
	}
	var n int64
	if err := j.reader.QueryRowContext(ctx, "SELECT coalesce(sum(n), 0) FROM batches").Scan(&n); err != nil {
		return j.causeOf(ctx, err)
	}
	last, err := j.size(ctx)
	switch {
	case err != nil:
		return j.causeOf(ctx, err)
	case says != "ok":
		return fmt.Errorf("%w: the write-ahead log was cut, deleted or left out of a copy, and %s is inconsistent: %s", record.ErrDamaged, databaseName, says)
	case n < last:
		return fmt.Errorf("%w: the write-ahead log was cut, deleted or left out of a copy, and %d of %d entries are missing from %s", record.ErrDamaged, last-n, last, databaseName)
	}
	return nil
}

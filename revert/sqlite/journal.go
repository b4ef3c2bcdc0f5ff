package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/remit-dev/remit/revert/journal"
)

// Journal is one opening of a journal in a folder. Make it with Open; it is safe
// for concurrent use.
type Journal struct {
	dir     string
	wait    busyBackoff // what each wait for other processes starts with
	reader  *sql.DB
	asked   sync.Map // *sql.Stmt of the reader, by text
	lock    *ownerLock
	queue   queue
	kept    unnamedBlobs
	names   names
	writer  *writer // of the caller who leads; nil until it is needed
	failed  atomic.Pointer[error]
	closed  atomic.Bool
	whole   bool // it was compared with its head file
	accepts bool // a person goes on with what is there
}

var _ journal.Journal = (*Journal)(nil)

func (j *Journal) owners() string   { return filepath.Join(j.dir, "owners") }
func (j *Journal) newBlobs() string { return filepath.Join(j.dir, "blobs", "new") }

// Dir returns the state folder, so that a runtime can refuse roots around it.
func (j *Journal) Dir() string { return j.dir }

// Owner names this opening.
func (j *Journal) Owner() string { return j.lock.owner }

// Alive reports whether an owner's lock is held. A name without a file is dead:
// the file is there before anybody can learn the name, and names are used once.
func (j *Journal) Alive(ctx context.Context, owner string) (bool, error) {
	if err := j.usable(ctx); err != nil {
		return false, err
	}
	if err := checkOwner(owner); err != nil {
		return false, err
	}
	if owner == j.lock.owner {
		return true, nil
	}
	return isLocked(filepath.Join(j.owners(), owner+lockSuffix))
}

// usable reports why nothing can be done: the context or the opening has ended.
func (j *Journal) usable(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if j.closed.Load() {
		return errClosed
	}
	return nil
}

// because returns the reason behind an error of the reader: whoever reads while
// the journal is closed or the context ends gets errors of all kinds.
func (j *Journal) because(ctx context.Context, err error) error {
	if ended := j.usable(ctx); ended != nil {
		return ended
	}
	return explain(err)
}

// poison makes every later Append and Keep fail.
func (j *Journal) poison(err error) { j.failed.CompareAndSwap(nil, &err) }

// Close ends this opening once the batches that wait are stored. The owner is
// dead afterwards; its lock file stays while an unfinished transaction names it.
func (j *Journal) Close() error {
	if j.closed.Swap(true) {
		return nil
	}
	j.queue.drain()
	var errs []error
	if j.writer != nil {
		errs = append(errs, j.writer.close())
	}
	named := true
	if j.reader != nil && j.lock != nil {
		if still, err := j.named(context.Background(), j.lock.owner); err == nil {
			named = still
		}
	}
	if j.reader != nil {
		errs = append(errs, j.reader.Close())
	}
	errs = append(errs, j.names.close())
	if j.whole && j.failed.Load() == nil {
		_ = j.rest() // without it the next opening looks at all
	}
	if j.lock != nil {
		errs = append(errs, j.lock.release(!named))
	}
	return errors.Join(errs...)
}

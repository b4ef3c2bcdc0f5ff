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

// Journal is one opening of a journal in a folder. Open returns it. It is safe
// for concurrent use.
type Journal struct {
	dir     string
	wait    busyBackoff // initial value of each wait for other processes
	reader  *sql.DB
	asked   sync.Map // *sql.Stmt of the reader, by text
	lock    *ownerLock
	queue   queue
	kept    unnamedBlobs
	names   namedBlobs
	recent  recent
	foreign foreign
	hashed  atomic.Pointer[storedBatch] // the last one whose hashes were read
	writer  *writer                     // belongs to the leader; nil until it is needed
	failed  atomic.Pointer[error]
	life    journal.Lifetime
	closed  atomic.Bool
	whole   bool // it was compared with its head file
	accepts bool // a person accepts an incomplete journal
}

var _ journal.Journal = (*Journal)(nil)

func (j *Journal) owners() string   { return filepath.Join(j.dir, "owners") }
func (j *Journal) newBlobs() string { return filepath.Join(j.dir, "blobs", "new") }

// Dir returns the state folder, so that a runtime can refuse roots around it.
func (j *Journal) Dir() string { return j.dir }

// Owner identifies this opening.
func (j *Journal) Owner() string { return j.lock.owner }

// Alive reports whether an owner's lock is held. A name without a file is dead:
// the file exists before any process can learn the name, and names are used
// once.
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

// usable returns an error if the context or the opening has ended.
func (j *Journal) usable(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if j.closed.Load() {
		return errClosed
	}
	return nil
}

// causeOf returns the cause of an error of the reader: a read while the journal
// is closed or the context ends can return any error.
func (j *Journal) causeOf(ctx context.Context, err error) error {
	if ended := j.usable(ctx); ended != nil {
		return ended
	}
	return explain(err)
}

// poison makes every later Append and StoreContent fail.
func (j *Journal) poison(err error) {
	if j.failed.CompareAndSwap(nil, &err) {
		j.life.End(err)
	}
}

// Life ends when an error has poisoned this opening.
func (j *Journal) Life() context.Context { return j.life.Context() }

// Close ends this opening after the waiting batches are stored. The owner is
// dead afterwards; its lock file stays while an unfinished transaction names
// it.
func (j *Journal) Close() error {
	if j.closed.Swap(true) {
		return nil
	}
	j.queue.drain()
	var errs []error
	j.indexAtClose()
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
		_ = j.recordCheckpoint() // if it fails, the next opening checks the whole database
	}
	if j.lock != nil {
		errs = append(errs, j.lock.release(!named))
	}
	return errors.Join(errs...)
}

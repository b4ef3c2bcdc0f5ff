package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// Append stores a batch in a transaction that it may share with others. An error
// that is none of revert's and not the context's leaves the batch unstored,
// except with ErrPoisoned: then nobody knows.
func (j *Journal) Append(ctx context.Context, b journal.Batch) (err error) {
	defer func() {
		if err == nil {
			j.kept.named(b.Blobs)
		}
	}()
	if err := j.usable(ctx); err != nil {
		return err
	}
	if err := b.Check(); err != nil {
		return err
	}
	if err := haveFiles(j.dir, b.Blobs); err != nil {
		return err
	}
	r := newRequest(b)
	if !j.queue.join(r) {
		return errClosed
	}
	for {
		select {
		case <-ctx.Done():
			if j.queue.leave(r) {
				return context.Cause(ctx)
			}
			// Too late: the batch is in a transaction, and only its end tells
			// whether it is stored.
			<-r.wake
			return r.err
		case s := <-r.wake:
			if s == told {
				return r.err
			}
			if err := j.lead(ctx, r); err != nil {
				return err
			}
		}
	}
}

// lead stores what waits. After an error nothing was taken: the request goes,
// and whoever is next tries with a context of its own.
func (j *Journal) lead(ctx context.Context, r *request) error {
	defer j.queue.resign()
	err := j.flush(ctx)
	if err != nil {
		j.queue.leave(r)
	}
	return err
}

// errAgain: the reserve was given away, so that what waits again has room now.
var errAgain = errors.New("journal: there is room now")

// flush begins a transaction as soon as no other process has one, and stores all
// that wait by then.
func (j *Journal) flush(ctx context.Context) error {
	for {
		if err := j.flushOnce(ctx); !errors.Is(err, errAgain) {
			return err
		}
	}
}

func (j *Journal) flushOnce(ctx context.Context) error {
	//mutant:check
	if failed := j.failed.Load(); failed != nil {
		return *failed
	}
	return retryBusy(ctx, j.wait, func() error {
		w, err := j.openWriter(ctx)
		if err != nil {
			return err
		}
		// Callers that the last transaction has just released are about to come
		// with their next batch. Letting them run once gets these into this
		// transaction; waiting by the clock would cost more than it gathers.
		runtime.Gosched()
		durable := j.queue.durable()
		if err := w.setSync(durable); err != nil {
			return j.abandon(err)
		}
		if err := w.begin(); err != nil {
			if codeOf(err) == codeBusy {
				return err
			}
			return j.abandon(err)
		}
		return j.commit(w, j.queue.take(durable))
	})
}

// commit stores the batches that may be stored, and tells all of them.
func (j *Journal) commit(w *writer, taken []*request) error {
	refused, err := w.store(taken)
	if err == nil {
		err = w.promise()
	}
	if err != nil {
		return j.failedToStore(err, taken...)
	}
	for i, r := range taken {
		r.tell(refused[i])
	}
	return nil
}

// failedToStore tells those whose transaction failed. Where the disk is full and
// there is a reserve, it is given to those that only end what began: they wait again.
func (j *Journal) failedToStore(err error, taken ...*request) error {
	needed := slices.ContainsFunc(taken, func(r *request) bool { return ends(r.batch) })
	roomy := codeOf(err) == codeFull && needed && j.reserve().release()
	err = j.abandon(err)
	again := false
	for _, r := range slices.Backward(taken) {
		if roomy && ends(r.batch) {
			j.queue.putBack(r)
			again = true
		} else {
			r.tell(err)
		}
	}
	if again {
		return errAgain
	}
	return nil
}

// openWriter returns the connection that writes. The name of the write-ahead log, which
// a connection makes where it is not there, must be durable before anything in it is:
// SQLite syncs the folder too, and does not say when that fails.
func (j *Journal) openWriter(ctx context.Context) (*writer, error) {
	if j.writer != nil {
		return j.writer, nil
	}
	w, err := newWriter(ctx, j)
	if err != nil {
		return nil, err
	}
	if err := syncFolder(j.dir); err != nil {
		err = fmt.Errorf("journal: %w", errors.Join(err, w.close()))
		if errors.Is(err, errUnsynced) {
			err = fmt.Errorf("%w: %w", journal.ErrPoisoned, err)
			j.poison(err)
		}
		return nil, err
	}
	j.writer = w
	return w, nil
}

// abandon gives the writing connection up with whatever transaction it has: the
// next append gets a new one, whose state is known. After an I/O error there is
// no next append.
func (j *Journal) abandon(err error) error {
	io := codeOf(err) == codeIO || errors.Is(err, errHead)
	err = trouble(j.dir, explain(err))
	w := j.writer
	j.writer = nil
	if closing := w.close(); closing != nil {
		err = errors.Join(err, closing)
	}
	if io {
		err = fmt.Errorf("%w: %w", journal.ErrPoisoned, err)
		j.poison(err)
	}
	return err
}

// haveFiles checks that large blobs exist. What nobody names may be removed by
// whoever collects, inside a transaction that writes: so it is looked at once
// more inside that of the batch.
func haveFiles(dir string, blobs []journal.Blob) error {
	for _, blob := range blobs {
		ref := blob.Ref()
		if ref.Size <= journal.InlineMax {
			continue
		}
		info, err := os.Stat(blobPath(dir, ref))
		if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() != ref.Size {
			return missing(ref)
		}
		if err != nil {
			return fmt.Errorf("blob %s: %w", ref.Digest, err)
		}
	}
	return nil
}

func missing(ref effect.BlobRef) error {
	return fmt.Errorf("blob %s of %d bytes: %w", ref.Digest, ref.Size, journal.ErrNotFound)
}

func notOwner(o journal.Ownership) error {
	return fmt.Errorf("transaction %s, owner %s: %w", o.Txn, o.Owner, journal.ErrNotOwner)
}

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

// Append stores a batch in a transaction that it may share with others. If the
// error is neither one of package journal nor the context's, the batch is not
// stored. After ErrPoisoned the outcome is unknown.
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
	r := newRequest(b).pack()
	if !j.queue.join(r) {
		return errClosed
	}
	for {
		select {
		case <-ctx.Done():
			if j.queue.leave(r) {
				return context.Cause(ctx)
			}
			// Too late: the batch is in a transaction, and only the end of that
			// tells whether it is stored.
			<-r.wake
			return r.err
		case s := <-r.wake:
			if s == readContent {
				return r.err
			}
			if err := j.lead(ctx, r); err != nil {
				return err
			}
		}
	}
}

// lead stores the waiting batches. After an error no batch was taken: the
// request leaves the queue, and the next leader tries with its own context.
func (j *Journal) lead(ctx context.Context, r *request) error {
	defer j.queue.resign()
	err := j.flush(ctx)
	if err != nil {
		j.queue.leave(r)
	}
	return err
}

// errAgain says that the reserve was released, so waiting batches have space
// now.
var errAgain = errors.New("journal: space is available now")

// flush begins a transaction as soon as no other process has one, and stores
// all batches that wait at that time.
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
		// Callers that the last transaction has just released are about to
		// append their next batch. Letting them run once gets these into this
		// transaction; waiting for a fixed time would cost more than it
		// gathers.
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

// commit stores the batches that pass the checks, and wakes all callers.
func (j *Journal) commit(w *writer, taken []*request) error {
	refused, err := w.store(taken)
	if err == nil {
		err = w.promise()
	}
	if err != nil {
		return j.failedToStore(err, taken...)
	}
	for i, r := range taken {
		r.finish(refused[i])
	}
	j.index(w)
	return nil
}

// failedToStore reports a failed transaction to its callers. If the disk is
// full and there is a reserve, it releases the reserve. Batches that only end
// begun work then wait again.
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
			r.finish(err)
		}
	}
	if again {
		return errAgain
	}
	return nil
}

// openWriter returns the connection that writes. A connection creates the
// write-ahead log if it is missing. The name of the log must be durable before
// its content. SQLite syncs the folder too, but does not report a failure of
// that.
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

// abandon closes the writing connection with its transaction. The next append
// gets a new connection in a known state. After an I/O error there is no next
// append.
func (j *Journal) abandon(err error) error {
	io := codeOf(err) == codeIO || errors.Is(err, errHead)
	err = explainFS(j.dir, explain(err))
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

// haveFiles checks that large blobs exist. A collector may delete an unnamed
// blob inside a writing transaction. So the transaction of the batch checks
// again.
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

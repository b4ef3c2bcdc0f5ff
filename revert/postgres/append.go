package postgres

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/remit-dev/remit/revert/journal"
)

// maxID is the length in bytes of the longest session, transaction or call ID
// of an entry: an index of PostgreSQL takes no longer ones.
const maxID = 1024

// Append stores a batch in a transaction that it may share with others. If the
// connection is lost meanwhile, Append connects again and finds out whether the
// batch is stored. If the error is neither one of package journal nor the
// context's, the batch is not stored.
func (j *Journal) Append(ctx context.Context, b journal.Batch) error {
	if err := j.writable(ctx); err != nil {
		return err
	}
	if err := b.Check(); err != nil {
		return err
	}
	if err := fits(b); err != nil {
		return err
	}
	r := newRequest(b)
	if !j.queue.join(r) {
		return errClosed
	}
	select {
	case err := <-r.end:
		return err
	case <-ctx.Done():
		if j.queue.leave(r) {
			return context.Cause(ctx)
		}
		return <-r.end // only the end of the transaction tells whether it is stored
	}
}

func fits(b journal.Batch) error {
	for i, e := range b.Entries {
		if max(len(e.Header.Session), len(e.Header.Txn), len(e.Header.Call)) > maxID {
			return fmt.Errorf("batch: entry %d of %d: an ID has more than %d bytes", i+1, len(b.Entries), maxID)
		}
	}
	if max(len(b.Take.To.Txn), len(b.Fence.Txn)) > maxID {
		return fmt.Errorf("batch: the ID of a transaction has more than %d bytes", maxID)
	}
	return nil
}

// write stores the waiting batches until the journal is closed. It alone uses
// the session.
func (j *Journal) write() {
	defer close(j.written)
	alive := time.NewTicker(j.lease / 3)
	defer alive.Stop()
	for {
		select {
		case <-j.queue.wake:
			j.flushAll()
		case <-alive.C:
			j.ping()
		case <-j.stop:
			j.flushAll()
			return
		}
	}
}

func (j *Journal) flushAll() {
	for {
		// Callers that the last transaction has just released are about to
		// append their next batch: let them run once.
		runtime.Gosched()
		taken := j.queue.take()
		if len(taken) == 0 {
			return
		}
		j.flush(taken)
	}
}

// flush stores requests and wakes their callers.
func (j *Journal) flush(taken []*request) {
	if failed := j.failed.Load(); failed != nil {
		finish(taken, nil, *failed)
		return
	}
	j.number++
	f := &flush{journal: j, number: j.number, sync: len(j.unsynced) >= unsyncedFlushes || j.unsyncedSize >= unsyncedBytes}
	for _, r := range taken {
		f.batches, f.size = append(f.batches, r.batch), f.size+r.size
	}
	err := j.storeFlush(f)
	failed, refusedWhole := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil:
		j.appended.Store(true)
	case refusedWhole && j.failed.Load() == nil && len(taken) > 1 && failed.Code != codeDiskFull:
		for _, r := range taken { // one of them is the cause
			j.flush([]*request{r})
		}
		return
	}
	finish(taken, f.refused, err)
}

func finish(taken []*request, refused []error, err error) {
	for i, r := range taken {
		switch {
		case err != nil:
			r.end <- err
		default:
			r.end <- refused[i]
		}
	}
}

// storeFlush stores a flush, again after a conflict with another node and after
// a lost connection.
func (j *Journal) storeFlush(f *flush) error {
	for conflicts := 0; ; {
		err := f.store(j.session)
		if err == nil {
			j.keep(f)
			return nil
		}
		if codeOf(err) == codeNoOwner {
			err = ErrFenced
		}
		if errors.Is(err, ErrFenced) || errors.Is(err, ErrPooler) {
			return j.fail(err)
		}
		if !j.session.conn.IsClosed() { // the server refused a statement, and the transaction is over
			if conflicts++; isConflict(err) && conflicts < maxConflicts {
				continue
			}
			return explain(err)
		}
		stored, err := j.regain()
		if stored && f.sent {
			j.keep(f)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// The largest flushes that the server may lose when it crashes, because this
// opening can send them again.
const (
	unsyncedFlushes = 64
	unsyncedBytes   = 1 << 20
)

// keep notes what a crash of the server can lose: the flushes that did not wait
// for the disk, until one that did. The server has one log, so that one synced
// them too.
func (j *Journal) keep(f *flush) {
	switch {
	case !f.written:
	case f.synced():
		j.acked, j.unsynced, j.unsyncedSize = f.number, nil, 0
	default:
		j.unsynced, j.unsyncedSize = append(j.unsynced, f), j.unsyncedSize+f.size
	}
}

// sendAgain stores acknowledged flushes that a crash of the server has lost.
// They were the newest of its log, and this opening alone could have changed
// what they depend on.
func (j *Journal) sendAgain(ctx context.Context, s *session) error {
	for _, f := range j.unsynced {
		var stored bool
		if err := s.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM flushes WHERE owner = $1 AND number = $2)", j.id, f.number).Scan(&stored); err != nil {
			return err
		}
		if stored {
			continue
		}
		f.sync = true
		was := f.refused
		if err := f.store(s); err != nil {
			return err
		}
		for i, err := range f.refused {
			if err != nil && was[i] == nil {
				return fmt.Errorf("%w: %w", ErrLost, err)
			}
		}
	}
	return nil
}

// flush is one transaction of the server with the batches of several callers.
type flush struct {
	journal *Journal
	number  int64
	batches []journal.Batch
	size    int  // in bytes
	sync    bool // wait for the disk also without a durable batch

	view    view
	refused []error // for each batch
	sent    bool    // the commit may have reached the server
	written bool    // there was something to commit
}

// store runs the transaction: it reads and locks what the batches depend on,
// decides which of them pass, and writes these.
func (f *flush) store(s *session) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout+f.journal.lease)
	defer cancel()
	f.sent, f.written = false, false
	defer func() {
		if (err != nil || !f.written) && !s.conn.IsClosed() {
			_, rollback := s.conn.Exec(ctx, "ROLLBACK")
			err = errors.Join(err, rollback)
		}
	}()
	f.view = newView(f.batches)
	if err := f.read(ctx, s); err != nil {
		return err
	}
	f.refused = make([]error, len(f.batches))
	passed := f.batches[:0:0]
	for i, b := range f.batches {
		if f.refused[i] = f.view.apply(b); f.refused[i] == nil {
			passed = append(passed, b)
		}
	}
	if len(passed) == 0 {
		return nil
	}
	f.written = true
	return f.write(ctx, s, passed)
}

// synced reports whether the server syncs the flush before it acknowledges it.
func (f *flush) synced() bool {
	return f.sync || slices.ContainsFunc(f.batches, func(b journal.Batch) bool { return b.Durable })
}

// read begins the transaction. A flush without a durable batch does not wait
// for the disk: the next durable one syncs it too, as the server has one log.
func (f *flush) read(ctx context.Context, s *session) error {
	var b pgx.Batch
	b.Queue("BEGIN")
	if !f.synced() {
		b.Queue("SET LOCAL synchronous_commit = off")
	}
	b.Queue("SELECT pg_backend_pid()").QueryRow(func(row pgx.Row) error {
		var pid uint32
		if err := row.Scan(&pid); err != nil {
			return err
		}
		if pid != s.pid {
			return ErrPooler
		}
		return nil
	})
	b.Queue("SELECT FROM owners WHERE id = $1 AND token = $2 AND ended IS NULL FOR SHARE", f.journal.id, s.token).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(); noRows(err) {
			return ErrFenced
		} else if err != nil {
			return err
		}
		return nil
	})
	f.view.queue(&b, f.journal)
	return s.conn.SendBatch(ctx, &b).Close()
}

package sqlite

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// SyncLevel returns SQLite's own setting for the last append: 2 is FULL, 1 is
// NORMAL.
func (j *Journal) SyncLevel() (level int, err error) {
	err = j.writer.conn.QueryRowContext(context.Background(), "PRAGMA synchronous").Scan(&level)
	return level, err
}

// Plan returns SQLite's plan for a query, a line for each step.
func (j *Journal) Plan(q journal.Query) (string, error) {
	query, args := selectBatches(q, placesFor(q), 0, keyAt(1000), pageBatches)
	rows, err := j.reader.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }() // Err below returns the error
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			return "", err
		}
		plan = append(plan, step)
	}
	return strings.Join(plan, "\n"), rows.Err()
}

// Index updates the derived tables at once.
func (j *Journal) Index(ctx context.Context) error {
	return j.exclusively(ctx, func(w *writer) error { return w.index() })
}

// Repack changes the entries of a packed batch that begins at a position, and
// seals it again.
func Repack(pos, n int64, data []byte, change func(entries []record.Entry)) []byte {
	b := unpack(keyAt(pos), n, data)
	var entries []record.Entry
	for i, p := range b.entries {
		e := b.entry(i)
		e.Header = record.Header{Kind: p.kind, Session: p.session, Txn: p.txn, Call: p.call}
		entries = append(entries, e)
	}
	change(entries)
	return append(pack(b.ops, entries), b.hashes...)
}

// WithoutHashes returns a packed batch without the hashes of the tree.
func WithoutHashes(pos, n int64, data []byte) []byte {
	b := unpack(keyAt(pos), n, data)
	b.hashes = nil
	return b.pack()
}

// Waiting returns how many batches wait for a transaction. A single one is
// retried while another process writes, and is briefly not counted.
func (j *Journal) Waiting() int {
	j.queue.mu.Lock()
	defer j.queue.mu.Unlock()
	return len(j.queue.waiting)
}

// LeadIsInherited lets three requests wait. The first leads and resigns; the
// second is told to lead, and leaves before it reads that. LeadIsInherited
// reports whether the third then leads.
func LeadIsInherited() bool {
	var q queue
	var all [3]*request
	for i := range all {
		all[i] = newRequest(journal.Batch{})
		q.join(all[i])
	}
	<-all[0].wake
	q.leave(all[0])
	q.resign()
	q.leave(all[1])
	return len(all[2].wake) == 1
}

// LookBefore reads a folder like an opening before SQLite does. The returned
// function continues after make has run: it compares the current journal with
// the first read.
func LookBefore(ctx context.Context, dir string, make func()) (begun, complete error) {
	j := &Journal{dir: dir, wait: busyBackoff{limit: time.Minute}}
	w, err := lookAtFolder(dir, j.wait)
	if err != nil {
		return err, err
	}
	make()
	begun = w.checkBegun()
	other, err := Open(ctx, dir)
	if err != nil {
		return begun, err
	}
	return begun, errors.Join(w.complete(ctx, other), other.Close())
}

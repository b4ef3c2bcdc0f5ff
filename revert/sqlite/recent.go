package sqlite

import (
	"context"
	"errors"
	"sync"
)

// recent keeps the newest batches in memory, as this opening has read them: the
// derived tables do not have the last ones, and most queries ask for new
// entries.
type recent struct {
	mu       sync.Mutex // guards the fields below; held while the batches are read that others will need too
	read     bool
	after    batchKey // all batches after this one are in batches, which only grows at its end
	last     batchKey
	erasures int64
	batches  []*storedBatch
	bytes    int
}

// snapshot is the batches after a key, up to the last one at some time. The
// derived tables have those up to the key.
type snapshot struct {
	after   batchKey
	last    batchKey
	batches []*storedBatch
}

// snapshot reads the batches that were stored since the last one.
func (j *Journal) snapshot(ctx context.Context) (snapshot, error) {
	var indexed, last batchKey
	var erasures int64
	stmt, err := j.prepared("SELECT indexed, erasures, coalesce((SELECT max(key) FROM batches), 0) FROM state")
	if err != nil {
		return snapshot{}, err
	}
	if err := stmt.QueryRowContext(ctx).Scan(&indexed, &erasures, &last); err != nil {
		return snapshot{}, err
	}
	r := &j.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	// Erased bodies must not be read from memory, and what is far behind is not
	// worth reading.
	//mutant:check
	if !r.read || erasures > r.erasures || indexed > r.last {
		r.read, r.after, r.last, r.erasures, r.batches, r.bytes = true, indexed, indexed, erasures, nil, 0
	}
	if last > r.last {
		if err := r.extend(ctx, j); err != nil {
			return snapshot{}, err
		}
	}
	if len(r.batches) > 2*indexBatches || r.bytes > 2*indexBytes {
		r.trim(indexed)
	}
	return snapshot{r.after, r.last, r.batches}, nil
}

// extend reads the batches after the last one.
func (r *recent) extend(ctx context.Context, j *Journal) error {
	stmt, err := j.prepared(batchesAfter)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(ctx, int64(r.last))
	if err != nil {
		return err
	}
	for rows.Next() {
		b, err := scanBatch(rows)
		if err != nil {
			return errors.Join(err, rows.Close())
		}
		r.batches, r.last, r.bytes = append(r.batches, b), b.key, r.bytes+b.size
	}
	return errors.Join(rows.Err(), rows.Close())
}

// trim drops the batches that the derived tables have.
func (r *recent) trim(indexed batchKey) {
	var rest []*storedBatch // not the same memory: snapshots use it
	r.bytes = 0
	for _, b := range r.batches {
		if b.key > indexed {
			rest, r.bytes = append(rest, b), r.bytes+b.size
		}
	}
	r.after, r.batches = max(r.after, indexed), rest
}

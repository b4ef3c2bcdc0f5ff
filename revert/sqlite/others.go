package sqlite

import (
	"context"
	"sync/atomic"
)

// foreign notes what this opening knows of the batches of others. Its writer
// reads these before it stores its own.
type foreign struct {
	found atomic.Int64 // how often the writer found batches of others
	known atomic.Int64 // batchKey up to which it knows all; set after found
	new   atomic.Int64 // how often a reader found later ones
}

// Others returns a number that differs from each earlier one if another opening
// may have stored entries since. It costs less than a query for entries.
func (j *Journal) Others(ctx context.Context) (int64, error) {
	if err := j.usable(ctx); err != nil {
		return 0, err
	}
	stmt, err := j.prepared("SELECT coalesce(max(key), 0) FROM batches")
	if err != nil {
		return 0, err
	}
	var last int64
	if err := stmt.QueryRowContext(ctx).Scan(&last); err != nil {
		return 0, err
	}
	//mutant:check
	if last > j.foreign.known.Load() {
		return -j.foreign.new.Add(1), nil
	}
	return j.foreign.found.Load(), nil
}

package sqlite

import (
	"context"

	"github.com/remit-dev/remit/revert"
)

// SyncLevel returns how SQLite itself says that the last append was committed:
// 2 is FULL, 1 is NORMAL.
func (j *Journal) SyncLevel() (level int, err error) {
	err = j.writer.conn.QueryRowContext(context.Background(), "PRAGMA synchronous").Scan(&level)
	return level, err
}

// LeadIsInherited makes three wait: the first leads and gives up, the second is
// told to lead and leaves before it has heard of it. It reports whether the
// third leads then.
func LeadIsInherited() bool {
	var q queue
	var all [3]*request
	for i := range all {
		all[i] = newRequest(revert.Batch{})
		q.join(all[i])
	}
	<-all[0].wake
	q.leave(all[0])
	q.resign()
	q.leave(all[1])
	return len(all[2].wake) == 1
}

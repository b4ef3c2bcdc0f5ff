package postgres

import (
	"context"
	"errors"
	"hash/crc32"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/remit-dev/remit/revert/journal"
)

// Journal is one opening of a journal in PostgreSQL. Open returns it. It is
// safe for concurrent use.
type Journal struct {
	config    *pgx.ConnConfig
	schema    string
	lease     time.Duration
	reconnect time.Duration

	existing bool                         // it must exist
	locate   func() (nodeIdentity, error) // finds the node; nil: the opening has none
	node     *nodeIdentity

	owner string
	id    int32 // of the owner, second key of its lock
	class int32 // first key of the locks of the journal

	pool    *pgxpool.Pool
	queue   queue
	session *session // belongs to the writer
	number  int64    // of the last flush; belongs to the writer
	acked   int64    // of the last synced flush; belongs to the writer
	// unsynced are the acknowledged flushes since then, which a crash of the
	// server can lose. They belong to the writer.
	unsynced     []*flush
	unsyncedSize int // in bytes
	seen         atomic.Int64
	failed       atomic.Pointer[error]
	life         journal.Lifetime
	closed       atomic.Bool

	appended  atomic.Bool   // the sequencer is needed
	stop      chan struct{} // closed by Close
	written   chan struct{} // closed at the end of the writer
	sequenced chan struct{} // closed at the end of the sequencer
}

var _ journal.Journal = (*Journal)(nil)

// The second keys of the advisory locks that belong to no owner.
const (
	sequencerLock = 0
	collectLock   = -1
	soleLock      = -2 // and below, by name
)

// Owner identifies this opening.
func (j *Journal) Owner() string { return j.owner }

// Shared says that processes on other nodes use the journal too.
func (j *Journal) Shared() bool { return true }

// Alive reports whether the session of an owner holds its lock. If it does not,
// Alive ends that owner first, in the same transaction: it can never append
// again, so it is not reported dead and found alive later.
func (j *Journal) Alive(ctx context.Context, owner string) (alive bool, err error) {
	if err := j.usable(ctx); err != nil {
		return false, err
	}
	if owner == j.owner {
		failed := j.failed.Load()
		return failed == nil || !errors.Is(*failed, ErrFenced), nil
	}
	err = j.again(ctx, func() error {
		return pgx.BeginFunc(ctx, j.pool, func(tx pgx.Tx) error {
			alive, err = j.probe(ctx, tx, owner)
			return err
		})
	})
	return alive, err
}

// LooksAlive reports whether an owner holds its lock now, or is this opening. An
// owner that does not can still connect again.
func (j *Journal) LooksAlive(ctx context.Context, owner string) (is bool, err error) {
	if err := j.usable(ctx); err != nil {
		return false, err
	}
	if owner == j.owner {
		return j.Alive(ctx, owner)
	}
	err = j.again(ctx, func() error {
		return j.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM owners o WHERE o.owner = $1 AND o.ended IS NULL AND "+alive("o.id", "$2")+")", owner, j.class).Scan(&is)
	})
	return is, err
}

// probe takes the owner's lock in shared mode, so that probes do not take each
// other for the owner.
func (j *Journal) probe(ctx context.Context, tx pgx.Tx, owner string) (alive bool, err error) {
	var id int32
	err = tx.QueryRow(ctx, "SELECT id FROM owners WHERE owner = $1 AND ended IS NULL", owner).Scan(&id)
	if noRows(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var free bool
	if err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock_shared($1, $2)", j.class, id).Scan(&free); err != nil || !free {
		return !free, err
	}
	_, err = tx.Exec(ctx, "UPDATE owners SET ended = now() WHERE id = $1", id)
	return false, err
}

// Sole acquires a name for work that only one opening may do at a time, on any
// node. It does not wait: ok is false if another opening has the name. release,
// or the end of the process, releases it.
func (j *Journal) Sole(name string) (release func() error, ok bool, err error) {
	ctx := context.Background()
	if err := j.usable(ctx); err != nil {
		return nil, false, err
	}
	conn, err := j.pool.Acquire(ctx)
	if err != nil {
		return nil, false, j.causeOf(ctx, err)
	}
	key := soleLock - int32(crc32.ChecksumIEEE([]byte(name))>>2)
	err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1, $2)", j.class, key).Scan(&ok)
	if err != nil || !ok {
		conn.Release()
		return nil, false, j.causeOf(ctx, err)
	}
	return func() error {
		defer conn.Release()
		_, err := conn.Exec(ctx, "SELECT pg_advisory_unlock($1, $2)", j.class, key)
		if err != nil {
			_ = conn.Conn().Close(ctx) // the end of the session releases it
		}
		return j.causeOf(ctx, err)
	}, true, nil
}

// Life ends when this opening can append no more: it was fenced, or the server is
// away for too long or has lost entries.
func (j *Journal) Life() context.Context { return j.life.Context() }

// Close ends this opening after the waiting batches are stored. The owner is
// dead afterwards.
func (j *Journal) Close() error {
	if j.closed.Swap(true) {
		return nil
	}
	j.queue.close()
	close(j.stop)
	<-j.written
	<-j.sequenced
	ctx, cancel := context.WithTimeout(context.Background(), j.lease)
	defer cancel()
	if j.session != nil {
		// If this fails, the end of the session tells the same.
		_, _ = j.session.conn.Exec(ctx, "UPDATE owners SET ended = now() WHERE id = $1 AND ended IS NULL", j.id)
		_ = j.session.conn.Close(ctx)
	}
	j.pool.Close()
	return nil
}

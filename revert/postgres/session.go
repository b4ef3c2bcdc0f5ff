package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// session is the connection that holds the lock of this opening. All appends go
// through it: if the lock is free, no append of this opening is in flight.
type session struct {
	conn  *pgx.Conn
	pid   uint32 // of the server's process
	token int64  // every append checks it
}

// ping shows the server that this process lives, and finds out early that the
// connection is gone.
func (j *Journal) ping() {
	if j.failed.Load() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), j.lease)
	defer cancel()
	if j.session.conn.Ping(ctx) != nil {
		_, _ = j.regain() // a failure is kept for the next append
	}
}

// regain connects again after the connection was lost. If another process has
// taken this opening for dead, it fails with ErrFenced. It reports whether the
// flush with the last number is stored, also beside ErrFenced.
func (j *Journal) regain() (stored bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), j.reconnect)
	defer cancel()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		stored, err := j.reconnectOnce(ctx)
		if err == nil || errors.Is(err, ErrFenced) || errors.Is(err, ErrLost) || errors.Is(err, ErrPooler) {
			if err != nil {
				err = j.fail(err)
			}
			return stored, err
		}
		select {
		case <-ctx.Done():
			return false, j.fail(errors.Join(ErrOutcome, explain(err)))
		case <-time.After(pause):
		}
	}
}

func (j *Journal) reconnectOnce(ctx context.Context) (stored bool, err error) {
	_ = j.session.conn.Close(ctx)
	next, err := j.connect(ctx)
	if err != nil {
		return false, err
	}
	if err = j.relock(ctx, next.conn); err == nil {
		stored, err = j.renew(ctx, next)
	}
	if err == nil {
		err = j.sendAgain(ctx, next)
	}
	if err != nil {
		return stored, errors.Join(err, next.conn.Close(ctx))
	}
	j.session = next
	return stored, nil
}

// relock takes the lock of this opening again. The server may not have noticed
// yet that the earlier connection is gone: then its process is told to end.
func (j *Journal) relock(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND classid = $1::int8::oid AND objid = $2::int8::oid AND objsubid = 2 AND mode = 'ExclusiveLock' AND pid = $3`,
		int64(uint32(j.class)), int64(uint32(j.id)), int32(j.session.pid))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "SELECT pg_advisory_lock($1, $2)", j.class, j.id)
	return err
}

// renew raises the token, so that no append of the earlier connection can
// follow, and tells whether the last flush is stored. Nothing that was synced
// may be missing.
func (j *Journal) renew(ctx context.Context, next *session) (stored bool, err error) {
	// The update waits for synchronous standbys, and so does what it shows.
	var fenced bool
	err = next.conn.QueryRow(ctx, "UPDATE owners SET token = token + 1 WHERE id = $1 RETURNING token, ended IS NOT NULL", j.id).Scan(&next.token, &fenced)
	if noRows(err) {
		return false, ErrLost
	}
	if err != nil {
		return false, err
	}
	if err := j.checkPlace(ctx, next); err != nil {
		return false, err
	}
	var last, kept bool
	err = next.conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM flushes WHERE owner = $1 AND number = $2),
		$3 = 0 OR EXISTS (SELECT FROM flushes WHERE owner = $1 AND number = $3)`, j.id, j.number, j.acked).Scan(&last, &kept)
	switch {
	case err != nil:
		return false, err
	case !kept:
		return last, ErrLost
	case fenced:
		return last, ErrFenced
	}
	return last, nil
}

// checkPlace returns an error if a copy of the node took its place while this
// opening had no connection. The lock of the row makes a copy that is opening
// end first; one that opens later finds the lock of this opening.
func (j *Journal) checkPlace(ctx context.Context, next *session) error {
	if j.node == nil {
		return nil
	}
	var place, host, dir string
	err := next.conn.QueryRow(ctx, "SELECT place, host, dir FROM nodes WHERE id = $1 FOR SHARE", j.node.id).Scan(&place, &host, &dir)
	switch {
	case noRows(err):
		return ErrLost
	case err == nil && place != j.node.place:
		return fmt.Errorf("%w: node %s lives at %s in %s: %w", ErrFenced, j.node.id, host, dir, ErrCopiedNode)
	}
	return err
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/remit-dev/remit/revert/record"
)

var errClosed = errors.New("journal is closed")

// The primary result codes that this package handles.
const (
	codeBusy    = lib.SQLITE_BUSY
	codeIO      = lib.SQLITE_IOERR
	codeCorrupt = lib.SQLITE_CORRUPT
	codeFull    = lib.SQLITE_FULL
	codeNotADB  = lib.SQLITE_NOTADB
	codeNoOpen  = lib.SQLITE_CANTOPEN
	codeReading = lib.SQLITE_READONLY
	codeUnique  = lib.SQLITE_CONSTRAINT
)

// codeOf returns SQLite's primary result code, or 0 for other errors.
func codeOf(err error) int {
	if failed, ok := errors.AsType[*driver.Error](err); ok {
		return failed.Code() & 0xff
	}
	return 0
}

// explain names the condition behind an error of SQLite.
func explain(err error) error {
	switch codeOf(err) {
	case codeCorrupt, codeNotADB:
		return fmt.Errorf("%w: %s was cut or changed: %w", record.ErrDamaged, databaseName, err)
	case codeNoOpen, codeReading:
		return fmt.Errorf("journal: %s and the folder around it must be yours to read and write: %w", databaseName, err)
	case codeFull:
		return fmt.Errorf("journal: no space left, nothing was stored: %w", err)
	default:
		return fmt.Errorf("journal: %w", err)
	}
}

// busyBackoff limits the wait for another process that writes.
type busyBackoff struct {
	limit time.Duration
	next  time.Duration
	until time.Time
}

const (
	firstPause = 50 * time.Microsecond // about a third of a commit elsewhere
	lastPause  = 5 * time.Millisecond
)

// pause sleeps, each time longer, or returns why the wait must end.
func (p *busyBackoff) pause(ctx context.Context) error {
	now := time.Now()
	if p.next == 0 {
		p.next, p.until = firstPause, now.Add(p.limit)
	}
	if now.After(p.until) {
		return fmt.Errorf("journal: another process has been writing for %v", p.limit)
	}
	timer := time.NewTimer(p.next)
	defer timer.Stop()
	p.next = min(2*p.next, lastPause)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// sleep is pause without a context.
func (p *busyBackoff) sleep() error { return p.pause(context.Background()) }

// connect takes a writing connection from a pool. Its setup reads the schema,
// while another process may have the file locked exclusively.
func connect(ctx context.Context, db *sql.DB, wait busyBackoff) (conn *sql.Conn, err error) {
	err = retryBusy(ctx, wait, func() error {
		conn, err = db.Conn(ctx)
		return err
	})
	if err != nil {
		return nil, explain(err)
	}
	return conn, nil
}

// retryBusy repeats f while another process writes.
func retryBusy(ctx context.Context, wait busyBackoff, f func() error) error {
	for {
		err := f()
		if codeOf(err) != codeBusy {
			return err
		}
		if err := wait.pause(ctx); err != nil {
			return err
		}
	}
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/remit-dev/remit/revert/journal"
)

var (
	// ErrFenced says that another process took this opening for dead, after its
	// connection was lost, and that it can never append again. Open the journal
	// again. It is also journal.ErrNotOwner.
	ErrFenced = fmt.Errorf("another process found this opening dead, as its connection was lost; open the journal again: %w", journal.ErrNotOwner)
	// ErrPooler says that a pooler in transaction mode is between remit and
	// PostgreSQL. It moves a client between sessions, and locks belong to a
	// session. Connect to the server itself, or use session mode.
	ErrPooler = errors.New("a connection pooler in transaction mode is in between: locks of a session do not last through it; connect to PostgreSQL itself, or use session mode")
	// ErrOutcome says that the connection was lost during an append and did not
	// come back in time: the batch is stored as a whole, or not at all. Open the
	// journal again and read. It is also journal.ErrPoisoned.
	ErrOutcome = fmt.Errorf("the connection was lost during an append, and its outcome is unknown: %w", journal.ErrPoisoned)
	// ErrLost says that the server came back without entries that it had
	// acknowledged: it failed before they were synced, or a standby without them
	// took over. It is also journal.ErrPoisoned.
	ErrLost = fmt.Errorf("the server lost entries that it had acknowledged: %w", journal.ErrPoisoned)
	// ErrNewer says that a newer remit wrote the schema.
	ErrNewer = errors.New("a newer remit wrote the schema")
	// ErrRights says that the role lacks a right.
	ErrRights = errors.New("the role lacks a right")
	// ErrUnsafeFolder says that the state folder of a node cannot hold its
	// identity.
	ErrUnsafeFolder = errors.New("the state folder cannot be used")
	// ErrNoJournal says that the database has no journal. It is also
	// journal.ErrNotFound.
	ErrNoJournal = fmt.Errorf("the database has no journal: %w", journal.ErrNotFound)

	errClosed = errors.New("journal is closed")
)

// The SQLSTATE codes that this package handles.
const (
	codeUnique      = "23505"
	codeNoOwner     = "23502" // a flush without an owner: the token is stale
	codeSerialize   = "40001"
	codeDeadlock    = "40P01"
	codeNoRights    = "42501"
	codeReadOnly    = "25006"
	codeLockTimeout = "55P03"
	codeDiskFull    = "53100"
	codeStopped     = "57P01" // the session was told to end
	codeCrashed     = "57P02"
)

// maxConflicts is how often a flush begins again because of another node.
const maxConflicts = 50

// codeOf returns the SQLSTATE of an error of the server, or "".
func codeOf(err error) string {
	if failed, ok := errors.AsType[*pgconn.PgError](err); ok {
		return failed.Code
	}
	return ""
}

// isConflict reports whether a transaction met another one, and can be
// repeated.
func isConflict(err error) bool {
	switch codeOf(err) {
	case codeUnique, codeSerialize, codeDeadlock:
		return true
	}
	return false
}

// explain names the condition behind an error.
func explain(err error) error {
	if err == nil {
		return nil
	}
	switch codeOf(err) {
	case codeDiskFull:
		return fmt.Errorf("journal: the server has no space left, nothing was stored: %w", err)
	case codeNoRights:
		return fmt.Errorf("journal: %w: %w", ErrRights, err)
	case codeLockTimeout:
		return fmt.Errorf("journal: another process holds a lock for too long, nothing was stored: %w", err)
	default:
		return fmt.Errorf("journal: %w", err)
	}
}

// usable returns an error if the context or the opening has ended.
func (j *Journal) usable(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if j.closed.Load() {
		return errClosed
	}
	return nil
}

// writable is usable for what changes the journal.
func (j *Journal) writable(ctx context.Context) error {
	if err := j.usable(ctx); err != nil {
		return err
	}
	if failed := j.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// causeOf returns the cause of an error: a call while the journal is closed or
// the context ends can return any error.
func (j *Journal) causeOf(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ended := j.usable(ctx); ended != nil {
		return ended
	}
	return explain(err)
}

// readAttempts is how often a read is tried whose connection is gone: those of
// the pool may all be from before the server stopped.
const readAttempts = readers + 1

// again runs a read, or another step that may run twice, until the server
// answers it.
func (j *Journal) again(ctx context.Context, step func() error) (err error) {
	for range readAttempts {
		if err = step(); err == nil || !isLostConnection(err) {
			break
		}
		if ended := j.usable(ctx); ended != nil {
			return ended
		}
	}
	return j.causeOf(ctx, err)
}

// isLostConnection reports whether a connection ended before the server
// answered.
func isLostConnection(err error) bool {
	switch code := codeOf(err); {
	case code == codeStopped || code == codeCrashed:
		return true
	case code != "":
		return false
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err)
}

// fail makes every later append fail with the first such error.
func (j *Journal) fail(err error) error {
	if j.failed.CompareAndSwap(nil, &err) {
		j.life.End(err)
	}
	return *j.failed.Load()
}

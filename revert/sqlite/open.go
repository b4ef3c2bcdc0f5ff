package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const databaseName = "journal.db"

// Option changes how Open opens a journal.
type Option func(*Journal)

// BusyTimeout sets how long an append waits for other processes that write, if
// its context does not end earlier. Default: one minute. After that time the
// whole batch is refused.
func BusyTimeout(d time.Duration) Option { return func(j *Journal) { j.wait.limit = d } }

// Open opens the journal in a folder and creates missing files. Each opening
// has its own owner. Any number can be open at once, in one process or in
// several.
func Open(ctx context.Context, dir string, opts ...Option) (*Journal, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := newJournal(dir)
	for _, opt := range opts {
		opt(j)
	}
	if j.wait.limit < 0 {
		return nil, fmt.Errorf("open journal: BusyTimeout %s: must not be negative", j.wait.limit)
	}
	err = j.open(ctx)
	if reserveMayHelp(dir, err) && j.reserve().release() {
		again := newJournal(j.dir)
		again.wait = j.wait
		err = errors.Join(j.Close(), again.open(ctx))
		j = again
	}
	if err != nil {
		return nil, fmt.Errorf("open journal in %s: %w", dir, explainFS(dir, errors.Join(err, j.Close())))
	}
	_ = j.reserve().fill() // without space for it, batches that need it are refused
	return j, nil
}

func newJournal(dir string) *Journal {
	return &Journal{dir: dir, wait: busyBackoff{limit: time.Minute}, names: namedBlobs{lock: make(chan struct{}, 1)}}
}

func (j *Journal) open(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := makePrivate(j.dir); err != nil {
		return err
	}
	for _, name := range []string{"blobs", filepath.Join("blobs", "new"), "owners"} {
		if err := makeFolder(filepath.Join(j.dir, name)); err != nil {
			return err
		}
	}
	if err := j.openReader(ctx); err != nil {
		return err
	}
	var err error
	if j.lock, err = lockOwner(filepath.Join(j.dir, "owners")); err != nil {
		return err
	}
	return j.sweep(ctx)
}

// readers is the maximum number of concurrent readers; others wait. No reader
// waits for a second connection.
const readers = 8

// openReader opens the reading pool, and creates the tables if there are none.
func (j *Journal) openReader(ctx context.Context) (err error) {
	if err = checkFile(filepath.Join(j.dir, databaseName)); err != nil {
		return err
	}
	w, err := lookAtFolder(j.dir, j.wait)
	//mutant:check
	if err = damagedLogError(err); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(j.dir, databaseName)); errors.Is(err, os.ErrNotExist) { // before SQLite creates the file
		if err := w.checkBegun(); err != nil && !j.accepts {
			return err
		}
	}
	if j.reader, err = sql.Open("sqlite", j.dsn("busy_timeout(10000)", "query_only(1)")); err != nil {
		return err
	}
	// Keep all idle connections: file locks belong to the process, so SQLite
	// cannot close one while another is open, and connections that are opened
	// for many readers at once leave their descriptors behind.
	j.reader.SetMaxOpenConns(readers)
	j.reader.SetMaxIdleConns(readers)
	err = retryBusy(ctx, j.wait, func() error { return checkFormat(ctx, j.reader) })
	switch {
	case errors.Is(err, errEmpty):
		if err = w.checkBegun(); err == nil {
			err = makeHead(j.dir, j.wait)
		}
		if j.whole = err == nil; err != nil && !j.accepts {
			return err
		}
	case err == nil && !j.accepts:
		err = w.complete(ctx, j)
		j.whole = err == nil
		return err
	default:
		return err
	}
	// Before the write-ahead log exists, which copies this mode.
	if err := os.Chmod(filepath.Join(j.dir, databaseName), 0o600); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", j.dsn(writerPragmas()...))
	if err != nil {
		return err
	}
	err = errors.Join(create(ctx, db, j.wait), db.Close())
	if err != nil {
		return err
	}
	// The name of the file must be as durable as its content.
	return syncFolder(j.dir)
}

// dsn returns the name of the database and the settings of each connection.
// They disable conveniences for other programs: no schema that calls functions,
// no statement that damages the file on purpose.
func (j *Journal) dsn(pragmas ...string) string {
	path := filepath.ToSlash(filepath.Join(j.dir, databaseName))
	if !strings.HasPrefix(path, "/") { // a drive letter
		path = "/" + path
	}
	q := url.Values{"_defensive": {"1"}, "_dqs": {"0"}}
	q["_pragma"] = append([]string{"foreign_keys(1)", "trusted_schema(0)", "cell_size_check(1)"}, pragmas...)
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}

// writerPragmas returns the settings of the writer. It waits for other writers
// itself, so that the wait ends with its context. Deleted bytes are
// overwritten. If fsync alone stops at the drive's cache, fullfsync goes
// through it. The log is copied into the file, which waits for the disk,
// whenever it has 16 MB: every few hundred calls.
func writerPragmas() []string {
	return []string{"busy_timeout(0)", "synchronous(FULL)", "secure_delete(1)", "fullfsync(1)", "checkpoint_fullfsync(1)", "wal_autocheckpoint(4096)"}
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// holdWrites blocks every other writer until the returned function runs.
func holdWrites(t *testing.T, dir string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "journal.db"))
	require.NoError(t, err)
	conn, err := db.Conn(context.Background())
	require.NoError(t, err)
	_, err = conn.ExecContext(context.Background(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	return sync.OnceFunc(func() {
		_, err := conn.ExecContext(context.Background(), "ROLLBACK")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.NoError(t, db.Close())
	})
}

// gather waits until n batches wait.
func gather(j *sqlite.Journal, n int) {
	for j.Waiting() != n {
		runtime.Gosched()
	}
}

func one(txn string) []record.Entry {
	return []record.Entry{journaltest.Entry(record.Header{Txn: txn}, "tool")}
}

func count(t *testing.T, j journal.Journal) (n int) {
	t.Helper()
	for _, err := range j.Entries(context.Background(), journal.Query{}) {
		require.NoError(t, err)
		n++
	}
	return n
}

func TestReadersDoNotWaitForAWriter(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, open(t, dir).Close())
	defer holdWrites(t, dir)()
	j := open(t, dir)
	require.Zero(t, count(t, j))
	_, err := j.Unfinished(t.Context())
	require.NoError(t, err)
	require.NoError(t, j.Close())
}

func TestAnAppendWaitsNoLongerThanItsContext(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	defer func() { _ = j.Close() }()
	require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: one("t"), Durable: true}))
	release := holdWrites(t, dir)
	defer release()

	// Many callers cancel at once. The lead passes from one to the next of
	// them, although some have already left, and must reach the one who stays.
	const many = 30
	ctx, cancel := context.WithCancel(t.Context())
	hasty, patient := make(chan error, many), make(chan error, 1)
	for range many {
		go func() { hasty <- j.Append(ctx, journal.Batch{Entries: one("hasty"), Durable: true}) }()
	}
	gather(j, many)
	go func() { patient <- j.Append(t.Context(), journal.Batch{Entries: one("patient"), Durable: true}) }()
	gather(j, many+1)
	cancel()
	for range many {
		require.ErrorIs(t, <-hasty, context.Canceled)
	}
	require.Equal(t, 1, count(t, j))
	release()
	require.NoError(t, <-patient, "the lead was passed on")
	require.Equal(t, 2, count(t, j))
}

func TestAnAppendWaitsNoLongerThanTheLimit(t *testing.T) {
	dir := t.TempDir()
	_, err := sqlite.Open(t.Context(), dir, sqlite.BusyTimeout(-1))
	require.ErrorContains(t, err, "must not be negative")
	j, err := sqlite.Open(t.Context(), dir, sqlite.BusyTimeout(30*time.Millisecond))
	require.NoError(t, err)
	defer func() { _ = j.Close() }()
	release := holdWrites(t, dir)
	defer release()
	require.ErrorContains(t, j.Append(t.Context(), journal.Batch{Entries: one("t"), Durable: true}), "another process has been writing for 30ms")
	require.ErrorContains(t, j.Append(t.Context(), journal.Batch{Durable: true}), "another process")
	release()
	require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: one("t"), Durable: true}))
	require.Equal(t, 1, count(t, j))
}

// TestSharedTransaction gathers batches behind a held lock, so that one transaction
// stores them, and makes half of them fail.
func TestSharedTransaction(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	defer func() { _ = j.Close() }()
	own := journal.Ownership{Txn: "t", Owner: j.Owner()}
	require.NoError(t, j.Append(t.Context(), journal.Batch{Take: journal.OwnerChange{To: own}, Durable: true}))
	release := holdWrites(t, dir)
	defer release()

	const n = 30
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = j.Append(t.Context(), neighbour(i, own)) })
	}
	gather(j, n)
	release()
	all.Wait()

	claimed, stored := 0, 0
	for i, err := range errs {
		switch {
		case i%3 == 1:
			require.ErrorIs(t, err, journal.ErrNotOwner)
		case errors.Is(err, journal.ErrClaimed):
			claimed++
		default:
			require.NoError(t, err)
			stored++
		}
	}
	require.Equal(t, n/3-1, claimed, "one of them holds the resource")
	require.Equal(t, n/3+1, stored)
	require.Equal(t, stored, count(t, j))
}

func neighbour(i int, own journal.Ownership) journal.Batch {
	b := journal.Batch{Entries: one("t"), Fence: own, Durable: i%2 == 0}
	switch i % 3 {
	case 1:
		b.Fence.Owner = "somebody"
	case 2:
		b.Fence.Txn = fmt.Sprint("u", i)
		b.Take.To = b.Fence
		b.Claims = []string{"r"}
	}
	return b
}

func TestCloseStoresWhatWaits(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	require.NoError(t, j.Append(t.Context(), journal.Batch{Durable: true}))
	release := holdWrites(t, dir)
	defer release()
	waiting := make(chan error, 1)
	go func() { waiting <- j.Append(t.Context(), journal.Batch{Entries: one("t"), Durable: true}) }()
	gather(j, 1)
	closed := make(chan error, 1)
	go func() { closed <- j.Close() }()
	for err := error(nil); err == nil; { // until it has begun to close
		_, err = j.Unfinished(t.Context())
	}
	require.ErrorContains(t, j.Append(t.Context(), journal.Batch{Durable: true}), "closed")
	release()
	require.NoError(t, <-waiting)
	require.NoError(t, <-closed)
	j = open(t, dir)
	defer func() { _ = j.Close() }()
	require.Equal(t, 1, count(t, j))
}

func TestLeadIsNeverLost(t *testing.T) { require.True(t, sqlite.LeadIsInherited()) }

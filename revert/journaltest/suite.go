package journaltest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Opener opens one storage. Each call is one more opening of the same storage,
// also while earlier openings are open.
type Opener func(t *testing.T) journal.Journal

// Run tests a journal. For each test, open creates an empty storage and returns
// its Opener.
func Run(t *testing.T, open func(t *testing.T) Opener) {
	for _, part := range []struct {
		name string
		test func(*testing.T, store)
	}{
		{"append", testAppend},
		{"owners", testOwners},
		{"claims", testClaims},
		{"query", testQuery},
		{"blobs", testBlobs},
		{"tree", testTree},
		{"erase", testErase},
		{"collect", testCollect},
		{"fsck", testFsck},
		{"life", testLife},
		{"hammer", testHammer},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, store(open)) })
	}
}

// store creates a new storage.
type store func(t *testing.T) Opener

// fresh opens a new storage until the test ends.
func (s store) fresh(t *testing.T) journal.Journal { return s(t).until(t) }

// until opens the storage once more, until the test ends.
func (o Opener) until(t *testing.T) journal.Journal {
	j := o(t)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

// Entry returns a sealed entry about an invalid call of the named tool. Equal
// arguments give equal entries.
func Entry(h record.Header, tool string) record.Entry {
	h.Kind = record.KindInvalid
	return seal(h, &record.Invalid{Tool: record.ToolRef{Name: tool}, Why: "for a test"})
}

// entry returns an entry of any kind. In a journal the kind matters only for
// queries.
func entry(h record.Header, n int) record.Entry {
	switch h.Kind {
	case record.KindRevertNote:
		return seal(h, &record.RevertNote{Key: "n", Value: json.RawMessage(fmt.Sprint(n))})
	case record.KindSavepoint:
		return seal(h, &record.Savepoint{Name: fmt.Sprint(n)})
	case record.KindCommitted:
		return seal(h, &record.Committed{})
	default:
		return Entry(h, fmt.Sprint(n))
	}
}

func seal(h record.Header, body record.Body) record.Entry {
	if h.At.IsZero() {
		h.At = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	}
	e, err := record.Seal(record.Record{Header: h, Body: body}, []byte("salt for testing"))
	if err != nil {
		panic(err) // only a mistake in this package can cause it
	}
	return e
}

// numbered returns n entries of one transaction.
func numbered(txn string, n int) []record.Entry {
	all := make([]record.Entry, n)
	for i := range all {
		all[i] = entry(record.Header{Txn: txn}, i)
	}
	return all
}

// begin makes a transaction with one entry and returns its ownership.
func begin(t *testing.T, j journal.Journal, txn string, claims ...string) journal.Ownership {
	t.Helper()
	own := journal.Ownership{Txn: txn, Owner: j.Owner()}
	require.NoError(t, j.Append(t.Context(), journal.Batch{
		Entries: numbered(txn, 1),
		Durable: true,
		Take:    journal.OwnerChange{To: own},
		Fence:   own,
		Claims:  claims,
	}))
	return own
}

// end ends a transaction.
func end(t *testing.T, j journal.Journal, own journal.Ownership) {
	t.Helper()
	require.NoError(t, j.Append(t.Context(), journal.Batch{Fence: own, End: true, Durable: true}))
}

// read returns what a query selects.
func read(t *testing.T, j journal.Journal, q journal.Query) []record.Entry {
	t.Helper()
	var all []record.Entry
	for e, err := range j.Entries(context.WithoutCancel(t.Context()), q) {
		require.NoError(t, err)
		all = append(all, bare(t, e))
	}
	return all
}

// bare returns an entry without cached data from earlier reads. Its header must
// be the decoded one.
func bare(t *testing.T, e record.Entry) record.Entry {
	t.Helper()
	again, err := e.Checked()
	require.NoError(t, err)
	require.Equal(t, again.Header, e.Header)
	return again
}

func unfinished(t *testing.T, j journal.Journal) []journal.Ownership {
	t.Helper()
	all, err := j.Unfinished(t.Context())
	require.NoError(t, err)
	return all
}

// at returns the entries as a journal returns them that stored them from a
// position on.
func at(pos int64, entries []record.Entry) []record.Entry {
	all := make([]record.Entry, len(entries))
	for i, e := range entries {
		e.Pos = pos + int64(i)
		all[i] = e
	}
	return all
}

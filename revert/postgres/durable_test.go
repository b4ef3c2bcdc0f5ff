package postgres_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/pgtest"
	"github.com/remit-dev/remit/revert/journal"
)

// After a durable append, also of a barrier, the server has synced its log up
// to the end. What another page header takes is less than any record.
func TestDurableAppendsAreWaitedFor(t *testing.T) {
	url, schema := storage(t)
	j := until(t, url, schema)
	const synced = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn()) < 100"
	for n := range 10 {
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: pair("t", n)}))
		b := journal.Batch{Durable: true}
		if n%2 == 0 {
			b.Entries = pair("u", n/2)
		}
		require.NoError(t, j.Append(t.Context(), b))
		require.Equal(t, "t\n", pgtest.Rows(t, url, synced))
	}
	// The stored content is synced too, before any batch names it.
	blob, err := j.StoreContent(t.Context(), &zeros{left: 3 * journal.InlineMax})
	require.NoError(t, err)
	require.Equal(t, "t\n", pgtest.Rows(t, url, synced))
	require.Equal(t, int64(3*journal.InlineMax), blob.Ref().Size)
}

// zeros is content of zeros, of which a chunk has no data.
type zeros struct{ left int }

func (z *zeros) Read(p []byte) (int, error) {
	n := min(len(p), z.left)
	z.left -= n
	clear(p[:n])
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

package journal

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/record"
)

// TestErasedBodyIsNotReachable checks that the header that an erasure leaves
// does not keep the memory of the body, which a sealed entry shares with it.
func TestErasedBodyIsNotReachable(t *testing.T) {
	s := newMemoryStore()
	j := s.open()
	own := Ownership{Txn: "t_1", Owner: j.Owner()}
	e, err := record.Seal(record.Record{
		Header: record.Header{Kind: record.KindInvalid, Txn: "t_1", Call: "c_1", At: time.Unix(0, 0)},
		Body:   &record.Invalid{Why: "a secret"},
	}, make([]byte, record.SaltSize))
	require.NoError(t, err)
	ctx := context.Background()
	require.NoError(t, j.Append(ctx, Batch{Entries: []record.Entry{e}, Take: OwnerChange{To: own}}))
	before := s.batches
	require.NoError(t, j.Append(ctx, Batch{Erase: []string{"c_1"}}))
	erased := s.batches[0][0]
	require.NotEmpty(t, erased.Erased)
	require.Nil(t, erased.Body)
	require.Nil(t, erased.Salt)
	require.Equal(t, e.Head, erased.Head)
	require.NotSame(t, &e.Head[0], &erased.Head[0])
	require.True(t, bytes.Contains(before[0][0].Body, []byte("a secret")), "a reader that began before still has its entries")
}

package sqlite_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// TestTurns appends through several openings alternately. The result is one log
// with the head of its entries, and each transaction begins once, with one
// owner.
func TestTurns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		var open []*sqlite.Journal
		for range 2 {
			j, err := sqlite.Open(t.Context(), dir)
			require.NoError(rt, err)
			defer func() { require.NoError(rt, j.Close()) }()
			open = append(open, j)
		}
		begun, stored := map[string]bool{}, 0
		for i := range rapid.IntRange(1, 12).Draw(rt, "appends") {
			j := open[rapid.IntRange(0, 1).Draw(rt, "who")]
			b := journal.Batch{}
			if n := rapid.IntRange(0, 2).Draw(rt, "txn"); n > 0 { // a complete one
				txn := journal.Ownership{Txn: fmt.Sprintf("t%d", n), Owner: j.Owner()}
				b.Take.To, b.Fence, b.End = txn, txn, true
			}
			for k := range rapid.SampledFrom([]int{1, 1, 2, 4, 4, 5, 8}).Draw(rt, "entries") {
				e, err := record.Seal(record.Record{
					Header: record.Header{Kind: record.KindDecided, Session: "s", Txn: b.Fence.Txn, Call: fmt.Sprint(i, k)}, Body: &record.Decided{},
				}, make([]byte, record.SaltSize))
				require.NoError(rt, err)
				b.Entries = append(b.Entries, e)
			}
			err := j.Append(t.Context(), b)
			if txn := b.Fence.Txn; txn != "" && begun[txn] {
				require.ErrorIs(rt, err, journal.ErrNotOwner)
				continue
			}
			require.NoError(rt, err)
			begun[b.Fence.Txn] = true
			stored += len(b.Entries)
		}
		var tree journal.Tree
		for e, err := range open[0].Entries(t.Context(), journal.Query{}) {
			require.NoError(rt, err)
			tree, _ = tree.Add(e.Leaf)
		}
		require.EqualValues(rt, stored, tree.Size())
		for _, j := range open {
			head, err := j.Head(t.Context())
			require.NoError(rt, err)
			require.Equal(rt, tree.Head(), head)
		}
	})
}

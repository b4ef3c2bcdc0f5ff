package journaltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

func testAppend(t *testing.T, s store) {
	t.Run("an empty journal has nothing", func(t *testing.T) {
		j := s.fresh(t)
		require.Empty(t, read(t, j, journal.Query{}))
		require.Empty(t, unfinished(t, j))
	})

	t.Run("entries come back as they were, in order, with positions from 1", func(t *testing.T) {
		j := s.fresh(t)
		var want []record.Entry
		for i, durable := range []bool{true, false, false, true, false} {
			batch := numbered("t", i+1)
			want = append(want, at(int64(len(want)+1), batch)...)
			require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: batch, Durable: durable}))
			require.Equal(t, want, read(t, j, journal.Query{}))
		}
	})

	t.Run("a position that the caller made up is not used", func(t *testing.T) {
		j := s.fresh(t)
		batch := numbered("t", 2)
		batch[0].Pos, batch[1].Pos = 77, 5
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: batch, Durable: true}))
		require.Equal(t, at(1, batch), read(t, j, journal.Query{}))
		require.Equal(t, int64(77), batch[0].Pos, "the caller's batch is left alone")
	})

	t.Run("everything is there for another opening and after opening again", func(t *testing.T) {
		open := s(t)
		j := open(t)
		own := begin(t, j, "t", "r")
		batch := numbered("t", 3)
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: batch, Fence: own}))
		want := append(at(1, numbered("t", 1)), at(2, batch)...)

		require.Equal(t, want, read(t, open.until(t), journal.Query{}))
		require.NoError(t, j.Close())
		again := open.until(t)
		require.Equal(t, want, read(t, again, journal.Query{}))
		require.Equal(t, []journal.Ownership{own}, unfinished(t, again))
		require.NoError(t, again.Append(t.Context(), journal.Batch{Entries: batch, Durable: true}))
		require.Len(t, read(t, again, journal.Query{After: 4}), 3, "positions go on where they were")
	})

	t.Run("a batch without entries is a barrier", func(t *testing.T) {
		j := s.fresh(t)
		require.NoError(t, j.Append(t.Context(), journal.Batch{}))
		require.NoError(t, j.Append(t.Context(), journal.Batch{Durable: true}))
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: numbered("", 1)}))
		require.NoError(t, j.Append(t.Context(), journal.Batch{Durable: true}))
		require.Len(t, read(t, j, journal.Query{}), 1)
	})

	t.Run("what is given out is not shared", func(t *testing.T) {
		j := s.fresh(t)
		batch := numbered("t", 1)
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: batch, Durable: true}))
		for _, e := range read(t, j, journal.Query{}) {
			spoil(e)
		}
		require.Equal(t, at(1, numbered("t", 1)), read(t, j, journal.Query{}))
	})

	t.Run("malformed batches are refused whole", func(t *testing.T) { testMalformed(t, s) })
	t.Run("an entry that does not fit its leaf", func(t *testing.T) { testForged(t, s) })
}

func spoil(e record.Entry) {
	for _, part := range [][]byte{e.Head, e.Salt, e.Body} {
		for i := range part {
			part[i] = 'x'
		}
	}
}

func testMalformed(t *testing.T, s store) {
	j := s.fresh(t)
	own := begin(t, j, "t")
	unsealed := numbered("t", 1)[0]
	unsealed.Leaf = ""
	for name, b := range map[string]journal.Batch{
		"claims without a fence":   {Claims: []string{"r"}},
		"an end without a fence":   {End: true},
		"given to nobody":          {Take: journal.OwnerChange{To: journal.Ownership{Txn: "t2"}}},
		"an entry without a leaf":  {Fence: own, Entries: []record.Entry{unsealed}},
		"an entry without content": {Fence: own, Entries: []record.Entry{{}}},
		"a blob that lies":         {Fence: own, Blobs: []journal.Blob{journal.InlineBlob(digest([]byte("a")), []byte("b"))}},
		"a blob without a digest":  {Fence: own, Blobs: []journal.Blob{journal.InlineBlob("sha256:../../x", []byte("b"))}},
		"an inline blob too large": {Fence: own, Blobs: []journal.Blob{inline(content(journal.InlineMax+1, 1))}},
	} {
		t.Run(name, func(t *testing.T) {
			b.Entries, b.Durable = append(numbered("t", 1), b.Entries...), true
			require.Error(t, j.Append(t.Context(), b))
			require.Len(t, read(t, j, journal.Query{}), 1)
			require.Equal(t, []journal.Ownership{own}, unfinished(t, j))
		})
	}
}

// testForged accepts two results: the entry is refused, or every read reports
// it as damaged, beside its sound neighbors.
func testForged(t *testing.T, s store) {
	for _, part := range []string{"head", "salt", "body", "leaf"} {
		t.Run(part, func(t *testing.T) {
			j := s.fresh(t)
			batch := numbered("t", 3)
			e := &batch[1]
			switch part {
			case "head":
				e.Head = entry(record.Header{Txn: "u"}, 1).Head
			case "salt":
				e.Salt[0]++
			case "body":
				e.Body = batch[0].Body
			case "leaf":
				e.Leaf = batch[0].Leaf
			}
			if j.Append(t.Context(), journal.Batch{Entries: batch, Durable: true}) != nil {
				require.Empty(t, read(t, j, journal.Query{}))
				return
			}
			requireDamaged(t, j, 2, 3)
		})
	}
}

func requireDamaged(t *testing.T, j journal.Journal, pos, of int64) {
	t.Helper()
	n := int64(0)
	for e, err := range j.Entries(t.Context(), journal.Query{}) {
		n++
		require.Equal(t, n, e.Pos)
		if n == pos {
			require.ErrorIs(t, err, record.ErrDamaged)
			require.ErrorContains(t, err, "entry 2")
		} else {
			require.NoError(t, err)
		}
	}
	require.Equal(t, of, n)
}

package journaltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

func testErase(t *testing.T, s store) {
	t.Run("bodies go, all else stays", func(t *testing.T) {
		open := s(t)
		j, other := open.until(t), open.until(t)
		run(t, j, "t1", true)
		run(t, j, "t2", true)
		before, kept := read(t, j, journal.Query{}), head(t, j)
		require.NoError(t, other.Append(t.Context(), eraseOf("t1")))
		for _, j := range []journal.Journal{j, other, open.until(t)} {
			for i, e := range read(t, j, journal.Query{})[:len(before)] {
				if e.Header.Call == "c_t1" {
					require.Equal(t, before[i].BodyDigest(), e.Erased)
					require.Nil(t, e.Salt)
					require.Nil(t, e.Body)
					require.Equal(t, before[i].Leaf, e.Leaf)
					require.Equal(t, before[i].Header, e.Header)
					_, err := record.Unseal(e)
					require.ErrorIs(t, err, record.ErrErased)
				} else {
					require.Equal(t, before[i], e)
				}
			}
			report, problems, err := fsck(t, j, kept)
			require.NoError(t, err, problems)
			require.Equal(t, int64(3), report.Erased)
			require.Equal(t, head(t, j), report.Head)
		}
		txn, c, err := revert.LoadCall(t.Context(), j, "c_t1")
		require.NoError(t, err)
		require.Equal(t, revert.TxnCommitted, txn.State())
		require.Equal(t, revert.PhaseErased, c.Phase)
		require.Equal(t, "kim", c.Erased.By)
		require.Empty(t, c.Changes)
	})

	t.Run("what binds more than the call stays", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t", true)
		labelled := seal(record.Header{Kind: record.KindLabelled, Session: "s", Call: "c_t"}, &record.Labelled{Labels: []string{"private"}})
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{labelled}, Durable: true}))
		require.NoError(t, j.Append(t.Context(), eraseOf("t")))
		require.NotEmpty(t, read(t, j, journal.Query{Kinds: []record.Kind{record.KindLabelled}})[0].Body)
	})

	t.Run("twice is once", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t", true)
		require.NoError(t, j.Append(t.Context(), eraseOf("t")))
		once := read(t, j, journal.Query{Call: "c_t"})
		require.NoError(t, j.Append(t.Context(), eraseOf("t")))
		twice := read(t, j, journal.Query{Call: "c_t"})
		require.Equal(t, once, twice[:len(once)])
		require.NotEmpty(t, twice[len(once)].Body, "the record that says so is never erased")
		_, _, err := revert.LoadCall(t.Context(), j, "c_t")
		require.NoError(t, err)
	})

	t.Run("a refused batch erases nothing", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t", true)
		before := read(t, j, journal.Query{})
		b := eraseOf("t")
		b.Fence = journal.Ownership{Txn: "t", Owner: j.Owner()}
		require.ErrorIs(t, j.Append(t.Context(), b), journal.ErrNotOwner)
		b.Fence, b.Erase = journal.Ownership{}, []string{""}
		require.Error(t, j.Append(t.Context(), b))
		require.Equal(t, before, read(t, j, journal.Query{}))
	})

	t.Run("bodies that are gone without a record are damage", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t", true)
		require.NoError(t, j.Append(t.Context(), journal.Batch{Erase: []string{"c_t"}, Durable: true}))
		requireProblems(t, j, journal.Head{}, revert.Problem{Pos: 1}, "no record says who erased it")
	})

	t.Run("a record without the erasure is damage", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t", true)
		b := eraseOf("t")
		b.Erase = nil
		require.NoError(t, j.Append(t.Context(), b))
		requireProblems(t, j, journal.Head{}, revert.Problem{Pos: 1}, "its records are there")
	})
}

func testCollect(t *testing.T, s store) {
	small, large := content(100, 9), content(journal.InlineMax+1, 9) // the content of run
	t.Run("content that is named stays", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t1", true)
		run(t, j, "t2", true)
		require.NoError(t, j.Append(t.Context(), eraseOf("t1")))
		c, err := j.CollectGarbage(t.Context(), nil)
		require.NoError(t, err)
		require.Zero(t, c.Blobs)
		require.Empty(t, c.Waiting)
		for _, data := range [][]byte{small, large} {
			require.Equal(t, data, load(t, j, effect.BlobRef{Digest: digest(data), Size: int64(len(data))}))
		}
	})

	t.Run("content that nothing names goes", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t", true)
		require.NoError(t, j.Append(t.Context(), eraseOf("t")))
		c, err := j.CollectGarbage(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, int64(2), c.Blobs)
		require.Equal(t, int64(len(small)+len(large)), c.Bytes)
		require.Positive(t, c.Size)
		for _, data := range [][]byte{small, large} {
			ref := effect.BlobRef{Digest: digest(data), Size: int64(len(data))}
			_, err := j.OpenContent(t.Context(), ref)
			require.ErrorIs(t, err, journal.ErrNotFound)
			// A batch that names it now is refused; the content can be stored
			// again.
			require.ErrorIs(t, j.Append(t.Context(), journal.Batch{Blobs: []journal.Blob{journal.StoredBlob(ref)}}), journal.ErrNotFound)
			require.NoError(t, j.Append(t.Context(), journal.Batch{Blobs: []journal.Blob{keep(t, j, data)}, Durable: true}))
			require.Equal(t, data, load(t, j, ref))
		}
		_, problems, err := fsck(t, j, journal.Head{})
		require.NoError(t, err, problems)
		c, err = j.CollectGarbage(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, int64(2), c.Blobs, "what was kept and never named")
	})

	t.Run("beside others, new content that is not named yet stays", func(t *testing.T) {
		open := s(t)
		j, other := open.until(t), open.until(t)
		kept, was := keep(t, other, large), keep(t, other, content(journal.InlineMax+2, 9))
		c, err := j.CollectGarbage(t.Context(), []effect.BlobRef{was.Ref()})
		require.NoError(t, err)
		require.Equal(t, int64(1), c.Blobs)
		require.NoError(t, other.Append(t.Context(), journal.Batch{Blobs: []journal.Blob{kept}, Durable: true}))
		require.ErrorIs(t, other.Append(t.Context(), journal.Batch{Blobs: []journal.Blob{was}}), journal.ErrNotFound)
	})
}

// eraseOf returns a batch that erases the call of a transaction of run.
func eraseOf(txn string) journal.Batch {
	return journal.Batch{
		Erase: []string{"c_" + txn}, Durable: true,
		Entries: []record.Entry{seal(
			record.Header{Kind: record.KindErased, Session: "s", Txn: txn, Call: "c_" + txn},
			&record.Erased{Cause: "asked", By: "kim", Why: "for a test", Tool: record.ToolRef{Name: "tool"}, As: string(revert.PhaseDone), Left: true},
		)},
	}
}

package journaltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
)

func testErase(t *testing.T, s store) {
	t.Run("bodies go, all else stays", func(t *testing.T) {
		open := s(t)
		j, other := open.until(t), open.until(t)
		run(t, j, "t1", true)
		run(t, j, "t2", true)
		before, kept := read(t, j, revert.Query{}), head(t, j)
		require.NoError(t, other.Append(t.Context(), eraseOf("t1")))
		for _, j := range []revert.Journal{j, other, open.until(t)} {
			for i, e := range read(t, j, revert.Query{})[:len(before)] {
				if e.Header.Call == "c_t1" {
					require.Equal(t, before[i].BodyDigest(), e.Erased)
					require.Nil(t, e.Salt)
					require.Nil(t, e.Body)
					require.Equal(t, before[i].Leaf, e.Leaf)
					require.Equal(t, before[i].Header, e.Header)
					_, err := revert.Unseal(e)
					require.ErrorIs(t, err, revert.ErrErased)
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
		require.Equal(t, revert.CommittedState, txn.State())
		require.Equal(t, revert.PhaseErased, c.Phase)
		require.Equal(t, "kim", c.Erased.By)
		require.Empty(t, c.Changes)
	})

	t.Run("what binds more than the call stays", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t", true)
		labelled := seal(revert.Header{Kind: revert.KindLabelled, Session: "s", Call: "c_t"}, &revert.Labelled{Labels: []string{"private"}})
		require.NoError(t, j.Append(t.Context(), revert.Batch{Entries: []revert.Entry{labelled}, Durable: true}))
		require.NoError(t, j.Append(t.Context(), eraseOf("t")))
		require.NotEmpty(t, read(t, j, revert.Query{Kinds: []revert.Kind{revert.KindLabelled}})[0].Body)
	})

	t.Run("twice is once", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t", true)
		require.NoError(t, j.Append(t.Context(), eraseOf("t")))
		once := read(t, j, revert.Query{Call: "c_t"})
		require.NoError(t, j.Append(t.Context(), eraseOf("t")))
		twice := read(t, j, revert.Query{Call: "c_t"})
		require.Equal(t, once, twice[:len(once)])
		require.NotEmpty(t, twice[len(once)].Body, "the record that says so is never erased")
		_, _, err := revert.LoadCall(t.Context(), j, "c_t")
		require.NoError(t, err)
	})

	t.Run("a refused batch erases nothing", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t", true)
		before := read(t, j, revert.Query{})
		b := eraseOf("t")
		b.Fence = revert.Ownership{Txn: "t", Owner: j.Owner()}
		require.ErrorIs(t, j.Append(t.Context(), b), revert.ErrNotOwner)
		b.Fence, b.Erase = revert.Ownership{}, []string{""}
		require.Error(t, j.Append(t.Context(), b))
		require.Equal(t, before, read(t, j, revert.Query{}))
	})

	t.Run("bodies that are gone without a record are damage", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t", true)
		require.NoError(t, j.Append(t.Context(), revert.Batch{Erase: []string{"c_t"}, Durable: true}))
		requireProblems(t, j, revert.Head{}, revert.Problem{Pos: 1}, "no record says who erased it")
	})

	t.Run("a record without the erasure is damage", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t", true)
		b := eraseOf("t")
		b.Erase = nil
		require.NoError(t, j.Append(t.Context(), b))
		requireProblems(t, j, revert.Head{}, revert.Problem{Pos: 1}, "its records are there")
	})
}

func testCollect(t *testing.T, s store) {
	small, large := content(100, 9), content(revert.InlineMax+1, 9) // what run keeps
	t.Run("content that is named stays", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t1", true)
		run(t, j, "t2", true)
		require.NoError(t, j.Append(t.Context(), eraseOf("t1")))
		c, err := j.Collect(t.Context(), nil)
		require.NoError(t, err)
		require.Zero(t, c.Blobs)
		require.Empty(t, c.Waiting)
		for _, data := range [][]byte{small, large} {
			require.Equal(t, data, load(t, j, revert.BlobRef{Digest: digest(data), Size: int64(len(data))}))
		}
	})

	t.Run("content that nothing names goes", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t", true)
		require.NoError(t, j.Append(t.Context(), eraseOf("t")))
		c, err := j.Collect(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, int64(2), c.Blobs)
		require.Equal(t, int64(len(small)+len(large)), c.Bytes)
		require.Positive(t, c.Size)
		for _, data := range [][]byte{small, large} {
			ref := revert.BlobRef{Digest: digest(data), Size: int64(len(data))}
			_, err := j.Open(t.Context(), ref)
			require.ErrorIs(t, err, revert.ErrNotFound)
			// Who would name it now is refused, and can keep it anew.
			require.ErrorIs(t, j.Append(t.Context(), revert.Batch{Blobs: []revert.Blob{revert.StoredBlob(ref)}}), revert.ErrNotFound)
			require.NoError(t, j.Append(t.Context(), revert.Batch{Blobs: []revert.Blob{keep(t, j, data)}, Durable: true}))
			require.Equal(t, data, load(t, j, ref))
		}
		_, problems, err := fsck(t, j, revert.Head{})
		require.NoError(t, err, problems)
		c, err = j.Collect(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, int64(2), c.Blobs, "what was kept and never named")
	})

	t.Run("beside others, new content that is not named yet stays", func(t *testing.T) {
		open := s(t)
		j, other := open.until(t), open.until(t)
		kept, was := keep(t, other, large), keep(t, other, content(revert.InlineMax+2, 9))
		c, err := j.Collect(t.Context(), []revert.BlobRef{was.Ref()})
		require.NoError(t, err)
		require.Equal(t, int64(1), c.Blobs)
		require.NoError(t, other.Append(t.Context(), revert.Batch{Blobs: []revert.Blob{kept}, Durable: true}))
		require.ErrorIs(t, other.Append(t.Context(), revert.Batch{Blobs: []revert.Blob{was}}), revert.ErrNotFound)
	})
}

// eraseOf erases the call of a transaction that run made.
func eraseOf(txn string) revert.Batch {
	return revert.Batch{
		Erase: []string{"c_" + txn}, Durable: true,
		Entries: []revert.Entry{seal(
			revert.Header{Kind: revert.KindErased, Session: "s", Txn: txn, Call: "c_" + txn},
			&revert.Erased{Cause: "asked", By: "kim", Why: "for a test", Tool: revert.ToolRef{Name: "tool"}, As: revert.PhaseDone, Left: true},
		)},
	}
}

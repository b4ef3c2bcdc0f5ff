package journaltest

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

func testTree(t *testing.T, s store) {
	t.Run("an empty journal has the head of the empty tree", func(t *testing.T) {
		j := s.fresh(t)
		require.Equal(t, slowHead(nil), head(t, j))
		require.NoError(t, j.Append(t.Context(), journal.Batch{Durable: true}))
		require.Equal(t, slowHead(nil), head(t, j), "a barrier adds nothing")
	})

	t.Run("after every batch the head is that of all leaves", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) { testHeads(t, rt, s(t)) })
	})

	t.Run("a refused batch does not move it", func(t *testing.T) {
		j := s.fresh(t)
		begin(t, j, "t", "r")
		before := head(t, j)
		u := journal.Ownership{Txn: "u", Owner: j.Owner()}
		for _, n := range []int{1, 2} {
			require.ErrorIs(t, j.Append(t.Context(), journal.Batch{Entries: numbered("u", n), Fence: u, Durable: true}), journal.ErrNotOwner)
			require.ErrorIs(t, j.Append(t.Context(), journal.Batch{
				Entries: numbered("u", n), Take: journal.OwnerChange{To: u}, Fence: u, Claims: []string{"r"}, Durable: true,
			}), journal.ErrClaimed)
		}
		require.Equal(t, before, head(t, j))
	})

	t.Run("every head is a prefix of every later one, and of no other", func(t *testing.T) { testPrefix(t, s) })

	t.Run("a hash that is not stored is an error", func(t *testing.T) {
		j := s.fresh(t)
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: numbered("t", 5), Durable: true}))
		for _, index := range []int64{-1, tlog.StoredHashCount(5), tlog.StoredHashIndex(2, 1), 1 << 40, 1<<63 - 1} {
			_, err := j.Hashes(t.Context(), []int64{0, index})
			require.Error(t, err, index)
		}
	})
}

// testHeads appends random batches through two openings alternately.
func testHeads(t *testing.T, rt *rapid.T, open Opener) {
	openings := []journal.Journal{open(t), open(t)}
	defer func() {
		for _, j := range openings {
			require.NoError(t, j.Close())
		}
	}()
	var leaves []string
	for range rapid.IntRange(1, 12).Draw(rt, "batches") {
		j := openings[rapid.IntRange(0, 1).Draw(rt, "opening")]
		batch := numbered("t", rapid.SampledFrom([]int{0, 1, 1, 2, 3, 8, 17}).Draw(rt, "entries"))
		require.NoError(rt, j.Append(t.Context(), journal.Batch{Entries: batch, Durable: rapid.Bool().Draw(rt, "durable")}))
		for _, e := range batch {
			leaves = append(leaves, e.Leaf)
		}
		for _, j := range openings {
			require.Equal(rt, slowHead(leaves), head(t, j))
		}
	}
	again := open(t)
	require.Equal(rt, slowHead(leaves), head(t, again))
	require.NoError(t, again.Close())
}

func testPrefix(t *testing.T, s store) {
	j := s.fresh(t)
	heads, leaves := []journal.Head{head(t, j)}, []string{}
	for i := range 40 {
		batch := []record.Entry{entry(record.Header{Txn: "t"}, i)}
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: batch}))
		heads, leaves = append(heads, head(t, j)), append(leaves, batch[0].Leaf)
		require.Equal(t, slowHead(leaves), heads[i+1])
	}
	for i, old := range heads {
		for _, now := range heads[i:] {
			proof, err := journal.Proof(t.Context(), j, old, now)
			require.NoError(t, err)
			require.NoError(t, journal.CheckPrefix(old, now, proof))
			other := journal.Head{Size: old.Size, Root: digest([]byte("other"))}
			require.ErrorIs(t, journal.CheckPrefix(other, now, proof), record.ErrDamaged)
			if now == old {
				continue
			}
			_, err = journal.Proof(t.Context(), j, now, old)
			require.ErrorIs(t, err, record.ErrDamaged)
			require.ErrorIs(t, journal.CheckPrefix(now, old, proof), record.ErrDamaged)
			require.ErrorContains(t, journal.CheckPrefix(now, old, proof), "cut off")
		}
	}
	// Another journal of the same length must not be accepted for this one.
	fork := s.fresh(t)
	for i := range 40 {
		batch := []record.Entry{entry(record.Header{Txn: "t"}, i)}
		if i == 7 {
			batch = numbered("u", 1)
		}
		require.NoError(t, fork.Append(t.Context(), journal.Batch{Entries: batch}))
	}
	now := head(t, fork)
	for size, old := range heads {
		proof, err := journal.Proof(t.Context(), fork, old, now)
		require.NoError(t, err)
		if err = journal.CheckPrefix(old, now, proof); size <= 7 {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, record.ErrDamaged)
		}
	}
}

func head(t *testing.T, j journal.Journal) journal.Head {
	t.Helper()
	h, err := j.Head(t.Context())
	require.NoError(t, err)
	return h
}

// slowHead computes a head as RFC 6962 defines it, from all leaves at once.
func slowHead(leaves []string) journal.Head {
	sum := slowRoot(leaves)
	return journal.Head{Size: int64(len(leaves)), Root: "sha256:" + hex.EncodeToString(sum[:])}
}

func slowRoot(leaves []string) [sha256.Size]byte {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return sha256.Sum256(append([]byte{0}, leaves[0]...))
	}
	k := 1
	for 2*k < len(leaves) {
		k *= 2
	}
	left, right := slowRoot(leaves[:k]), slowRoot(leaves[k:])
	return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
}

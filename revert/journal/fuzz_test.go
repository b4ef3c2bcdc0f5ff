package journal_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// FuzzParseHead checks that a head has one spelling, so comparing texts
// compares heads.
func FuzzParseHead(f *testing.F) {
	tree := journal.Tree{}
	for _, leaf := range []string{"a", "b", "c"} {
		f.Add(tree.Head().String())
		tree, _ = tree.Add(leaf)
	}
	for _, seed := range []string{"+1:", "01:", "1:sha256:", "-0:", "1:SHA256:", "1152921504606846977:"} {
		f.Add(seed + tree.Head().Root[len("sha256:"):])
		f.Add(seed + tree.Head().Root)
		f.Add("3:sha256:" + strings.ToUpper(tree.Head().Root[len("sha256:"):]))
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := journal.ParseHead(text)
		if err != nil {
			require.Zero(t, h)
			return
		}
		require.Equal(t, text, h.String())
		if h.Size > 0 || h == (journal.Tree{}).Head() {
			require.NoError(t, journal.CheckPrefix(h, h, nil), "a head that is read is one")
		} else {
			require.ErrorIs(t, journal.CheckPrefix(h, h, nil), record.ErrDamaged, "there is one empty tree")
		}
	})
}

// FuzzTree checks that Tree, which keeps only its right edge, has the same head
// as a tree over all of its leaves. Its proofs hold for no other tree.
func FuzzTree(f *testing.F) {
	f.Add([]byte("abc"), uint8(1))
	f.Add([]byte("abcdefgh"), uint8(3))
	f.Add([]byte{}, uint8(0))
	f.Fuzz(func(t *testing.T, leaves []byte, cut uint8) {
		if len(leaves) > 64 {
			t.Skip()
		}
		tree, older := journal.Tree{}, journal.Tree{}
		var stored []tlog.Hash
		for i, b := range leaves {
			if i == int(cut) {
				older = tree
			}
			var whole []tlog.Hash
			tree, whole = tree.Add(string([]byte{b}))
			stored = append(stored, whole...)
		}
		root, err := tlog.TreeHash(int64(len(leaves)), tlog.HashReaderFunc(func(at []int64) (out []tlog.Hash, err error) {
			for _, i := range at {
				out = append(out, stored[i])
			}
			return out, nil
		}))
		require.NoError(t, err)
		want := slowRoot(leaves)
		require.Equal(t, want, [32]byte(root), "what is stored makes the root")
		require.Equal(t, journal.Head{Size: int64(len(leaves)), Root: "sha256:" + hex.EncodeToString(want[:])}, tree.Head())
		proof, err := journal.Proof(t.Context(), hashes{stored: stored}, older.Head(), tree.Head())
		require.NoError(t, err)
		require.NoError(t, journal.CheckPrefix(older.Head(), tree.Head(), proof))
		if older.Size() > 0 && older.Size() < tree.Size() {
			other, _ := journal.Tree{}.Add("something else")
			for other.Size() < older.Size() {
				other, _ = other.Add("x")
			}
			if other.Head() != older.Head() {
				require.Error(t, journal.CheckPrefix(other.Head(), tree.Head(), proof))
			}
		}
	})
}

// slowRoot computes the root as RFC 6962 defines it, over all leaves at once.
func slowRoot(leaves []byte) [32]byte {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return sha256.Sum256([]byte{0, leaves[0]})
	}
	cut := 1
	for cut*2 < len(leaves) {
		cut *= 2
	}
	left, right := slowRoot(leaves[:cut]), slowRoot(leaves[cut:])
	return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
}

// hashes is a journal that has only the hashes of its tree.
type hashes struct {
	journal.Journal

	stored []tlog.Hash
}

func (h hashes) Hashes(_ context.Context, at []int64) (out []tlog.Hash, err error) {
	for _, i := range at {
		out = append(out, h.stored[i])
	}
	return out, nil
}

package revert_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
)

// FuzzParseHead: a head has one spelling, so two people who compare texts compare heads.
func FuzzParseHead(f *testing.F) {
	tree := revert.Tree{}
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
		h, err := revert.ParseHead(text)
		if err != nil {
			require.Zero(t, h)
			return
		}
		require.Equal(t, text, h.String())
		if h.Size > 0 || h == (revert.Tree{}).Head() {
			require.NoError(t, revert.CheckPrefix(h, h, nil), "a head that is read is one")
		} else {
			require.ErrorIs(t, revert.CheckPrefix(h, h, nil), revert.ErrDamaged, "there is one empty tree")
		}
	})
}

// FuzzTree: the tree that only ever keeps its right edge has the head of the tree that
// is made of all of its leaves, and its proofs hold for no other one.
func FuzzTree(f *testing.F) {
	f.Add([]byte("abc"), uint8(1))
	f.Add([]byte("abcdefgh"), uint8(3))
	f.Add([]byte{}, uint8(0))
	f.Fuzz(func(t *testing.T, leaves []byte, cut uint8) {
		if len(leaves) > 64 {
			t.Skip()
		}
		tree, older := revert.Tree{}, revert.Tree{}
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
		require.Equal(t, revert.Head{Size: int64(len(leaves)), Root: "sha256:" + hex.EncodeToString(want[:])}, tree.Head())
		proof, err := revert.Proof(t.Context(), hashes{stored: stored}, older.Head(), tree.Head())
		require.NoError(t, err)
		require.NoError(t, revert.CheckPrefix(older.Head(), tree.Head(), proof))
		if older.Size() > 0 && older.Size() < tree.Size() {
			other, _ := revert.Tree{}.Add("something else")
			for other.Size() < older.Size() {
				other, _ = other.Add("x")
			}
			if other.Head() != older.Head() {
				require.Error(t, revert.CheckPrefix(other.Head(), tree.Head(), proof))
			}
		}
	})
}

// FuzzBody: the body of a record that is read and written again says the same, and a
// second time the same bytes; nothing of another kind is taken for it.
func FuzzBody(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(string(v.Header.Kind), []byte(v.CanonicalBody))
	}
	f.Add("done", []byte(`{"Result":null}`))
	f.Add("nothing", []byte(`{}`))
	salt := bytes.Repeat([]byte{7}, revert.SaltSize)
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		e, ok := entryOf(t, revert.Kind(kind), body, salt)
		if !ok {
			return
		}
		rec, err := revert.Unseal(e)
		if err != nil {
			require.Zero(t, rec)
			return
		}
		first, err := revert.Seal(rec, salt)
		require.NoError(t, err, "what is read can be written")
		again, err := revert.Unseal(first)
		require.NoError(t, err)
		second, err := revert.Seal(again, salt)
		require.NoError(t, err)
		require.Equal(t, string(first.Body), string(second.Body))
		require.Equal(t, first.Leaf, second.Leaf)
		other := first
		other.Body = append(bytes.Clone(first.Body), ' ')
		_, err = revert.Unseal(revert.Entry{Pos: 1, Head: other.Head, Salt: other.Salt, Body: other.Body, Leaf: other.Leaf})
		require.ErrorIs(t, err, revert.ErrDamaged, "a byte more is another body")
	})
}

// slowRoot is the root as RFC 6962 defines it, over all leaves at once.
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

// hashes is a journal that knows the hashes of its tree, and nothing else.
type hashes struct {
	revert.Journal

	stored []tlog.Hash
}

func (h hashes) Hashes(_ context.Context, at []int64) (out []tlog.Hash, err error) {
	for _, i := range at {
		out = append(out, h.stored[i])
	}
	return out, nil
}

// entryOf is an entry that fits its leaf, whatever its body says.
func entryOf(t *testing.T, kind revert.Kind, body, salt []byte) (revert.Entry, bool) {
	t.Helper()
	head, err := canon.Marshal(revert.Header{V: revert.RecordVersion, Kind: kind, Session: "s_1"})
	if err != nil || len(body) == 0 {
		return revert.Entry{}, false // a kind that is no text
	}
	sum := string(canon.Sum("remit/body/v1", salt, body))
	return revert.Entry{Pos: 1, Head: head, Salt: salt, Body: body, Leaf: string(canon.Sum("remit/leaf/v1", head, []byte(sum)))}, true
}

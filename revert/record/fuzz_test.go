package record_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/record"
)

// FuzzBody checks that a body keeps its meaning when it is read and written
// again, and its bytes the second time. No other kind accepts it.
func FuzzBody(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(string(v.Header.Kind), []byte(v.CanonicalBody))
	}
	f.Add("done", []byte(`{"Result":null}`))
	f.Add("nothing", []byte(`{}`))
	f.Add("done", []byte(`{"a":"\\","b":{"c":["]}","\\\"",{}]},"d":"\\\\\"","e":-1}`))
	salt := bytes.Repeat([]byte{7}, record.SaltSize)
	f.Fuzz(func(t *testing.T, what string, body []byte) {
		e, ok := entryOf(t, record.Kind(what), body, salt)
		if !ok {
			return
		}
		if canon.IsCanonical(body) {
			require.Equal(t, leafOfText(t, bodyOf(t, saltedFields(t, hex.EncodeToString(salt), string(body))), string(e.Head)), e.Leaf)
		}
		rec, err := record.Unseal(e)
		if err != nil {
			require.Zero(t, rec)
			return
		}
		first, err := record.Seal(rec, salt)
		require.NoError(t, err, "what is read can be written")
		again, err := record.Unseal(first)
		require.NoError(t, err)
		second, err := record.Seal(again, salt)
		require.NoError(t, err)
		require.Equal(t, string(first.Body), string(second.Body))
		require.Equal(t, first.Leaf, second.Leaf)
		other := first
		other.Body = append(bytes.Clone(first.Body), ' ')
		_, err = record.Unseal(record.Entry{Pos: 1, Head: other.Head, Salt: other.Salt, Body: other.Body, Leaf: other.Leaf})
		require.ErrorIs(t, err, record.ErrDamaged, "a byte more is another body")
	})
}

// entryOf returns an entry that fits its leaf, for any body that has fields.
func entryOf(t *testing.T, k record.Kind, body, salt []byte) (record.Entry, bool) {
	t.Helper()
	head, err := canon.Marshal(record.Header{V: record.Version, Kind: k, Session: "s_1"})
	if err != nil {
		return record.Entry{}, false // the kind is not valid UTF-8
	}
	e := record.Entry{Pos: 1, Head: head, Salt: salt, Body: body}
	e.Leaf = record.Leaf(e)
	return e, e.Leaf != ""
}

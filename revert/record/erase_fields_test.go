package record_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/revert/record"
)

// erasedVector is a record of the vectors without some fields.
type erasedVector struct {
	Leaf  string   `json:"leaf"`
	Names []string `json:"names"`
	Salt  string   `json:"salt"`
	Body  string   `json:"body"`
}

func TestErasedFieldVectors(t *testing.T) {
	file := readVectors(t)
	for _, v := range file.Erased {
		at := slices.IndexFunc(file.Records, func(of vector) bool { return of.Leaf == v.Leaf })
		e, err := file.Records[at].entry(t).EraseFields(v.Names...)
		require.NoError(t, err)
		require.Equal(t, v.Salt, hex.EncodeToString(e.Salt))
		require.Equal(t, v.Body, string(e.Body))
		require.Equal(t, v.Leaf, e.Leaf)
		require.Equal(t, v.Names, e.ErasedFields())
	}
}

// names returns the names of the fields that an entry still has.
func names(t require.TestingT, e record.Entry) []string {
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(e.Body, &members))
	return slices.Sorted(maps.Keys(members))
}

// TestEraseFields erases fields of all records in several steps. The leaf and
// the rest stay, the steps do not matter, and the whole body can still be
// erased.
func TestEraseFields(t *testing.T) {
	all := vectors(t)
	rapid.Check(t, func(rt *rapid.T) {
		v := rapid.SampledFrom(all).Draw(rt, "record")
		e := v.entry(t)
		every := names(rt, e)
		var erased []string
		for _, name := range rapid.Permutation(every).Draw(rt, "order") {
			if !rapid.Bool().Draw(rt, "erase") {
				continue
			}
			erased = append(erased, name)
			var err error
			e, err = e.EraseFields(name)
			require.NoError(rt, err)
			_, err = e.EraseFields(name)
			require.ErrorIs(rt, err, record.ErrErased, "it is gone already")
		}
		if len(erased) == 0 {
			return
		}
		at := v.entry(t)
		at, err := at.EraseFields(erased...)
		require.NoError(rt, err)
		require.Equal(rt, at, e, "in one step or in several")

		require.Equal(rt, v.Leaf, e.Leaf)
		require.NoError(rt, e.Check())
		require.Equal(rt, v.BodyDigest, e.BodyDigest())
		slices.Sort(erased)
		require.Equal(rt, erased, e.ErasedFields())
		var rest map[string]json.RawMessage
		require.NoError(rt, json.Unmarshal(e.Body, &rest))
		require.Len(rt, rest, len(every)-len(erased))

		e, err = e.Kept()
		require.NoError(rt, err)
		for range 2 { // the second time with the decoded body that the entry keeps
			r, err := record.Unseal(e)
			require.ErrorIs(rt, err, record.ErrErased)
			require.ErrorContains(rt, err, erased[0])
			require.Equal(rt, v.Kind, record.KindOf(r.Body))
		}

		e.Erased, e.Salt, e.Body = e.BodyDigest(), nil, nil
		require.NoError(rt, e.Check())
		require.Empty(rt, e.ErasedFields())
		_, err = e.EraseFields(every[0])
		require.ErrorIs(rt, err, record.ErrErased)
	})
}

func TestEraseFieldsRefuses(t *testing.T) {
	e := vectors(t)[0].entry(t)
	name := names(t, e)[0]
	for says, list := range map[string][]string{
		"no field to erase": {},
		`no field "none"`:   {name, "none"},
		`field "` + name:    {name, name},
	} {
		_, err := e.EraseFields(list...)
		require.ErrorContains(t, err, says)
		require.NoError(t, e.Check(), "a refused erasure changes nothing")
		require.Empty(t, e.ErasedFields())
	}
	e.Body[5] ^= 1
	_, err := e.EraseFields(name)
	require.ErrorIs(t, err, record.ErrDamaged)
	require.Empty(t, record.Entry{Salt: []byte("damaged"), Body: []byte("{")}.ErasedFields())
}

// TestAnErasedFieldCannotBeGuessed has the whole stored entry and the right
// value, and looks for a salt that confirms it: it takes each sixteen bytes
// that are stored for the salt of the field, and for the salt of the record.
// The same search finds the salt before the erasure.
func TestAnErasedFieldCannotBeGuessed(t *testing.T) {
	for _, v := range vectors(t) {
		whole := v.entry(t)
		for i, name := range names(t, whole) {
			var values map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(whole.Body, &values))
			require.True(t, confirms(t, whole, whole, i, values[name]))
			e, err := whole.EraseFields(name)
			require.NoError(t, err)
			require.False(t, confirms(t, whole, e, i, values[name]), "%s %s", v.Kind, name)
			for _, other := range names(t, whole) {
				if other != name {
					next, err := e.EraseFields(other)
					require.NoError(t, err)
					require.False(t, confirms(t, whole, next, i, values[name]))
					require.False(t, bytes.Contains(slices.Concat(next.Head, next.Salt, next.Body), whole.Salt))
				}
			}
		}
	}
}

// confirms reports whether any stored bytes of e open field i of the whole
// entry to a value.
func confirms(t *testing.T, whole, e record.Entry, i int, value []byte) bool {
	t.Helper()
	digest := digestOf(t, saltedFields(t, hex.EncodeToString(whole.Salt), string(whole.Body))[i])
	opens := func(salt []byte) bool {
		sum := sha256.Sum256(slices.Concat([]byte("remit/field/v1"), salt, value))
		return bytes.Equal(digest, sum[:])
	}
	stored := slices.Concat(e.Head, e.Salt, e.Body, []byte(e.Leaf), []byte(e.Erased))
	for at := 0; at+record.SaltSize <= len(stored); at++ {
		salt := stored[at : at+record.SaltSize]
		two := sha256.Sum256(slices.Concat([]byte("remit/salts/v1"), salt, binary.BigEndian.AppendUint32(nil, uint32(i/2))))
		if opens(salt) || opens(two[:16]) || opens(two[16:]) {
			return true
		}
	}
	return false
}

// TestErasableRecordsHaveAField checks that the digest of an erased body hides
// what was in it: with no field, there would be no salt.
func TestErasableRecordsHaveAField(t *testing.T) {
	for _, kind := range record.Kinds() {
		if !kind.Erasable() {
			continue
		}
		body, err := record.NewBody(kind)
		require.NoError(t, err)
		e, err := record.Seal(record.Record{Header: record.Header{Kind: kind}, Body: body}, make([]byte, record.SaltSize))
		require.NoError(t, err)
		require.NotEmpty(t, names(t, e), kind)
	}
}

// FuzzStoredFields stores other bytes as the salt and the body of a record.
// Whatever fits the leaf has no other values than the record.
func FuzzStoredFields(f *testing.F) {
	whole := vectors(f)[0].entry(&testing.T{})
	all := names(f, whole)
	f.Add(whole.Salt, whole.Body)
	for _, gone := range [][]string{all[:1], all[1:], all} {
		e, err := whole.EraseFields(gone...)
		require.NoError(f, err)
		f.Add(e.Salt, e.Body)
	}
	var values map[string]json.RawMessage
	require.NoError(f, json.Unmarshal(whole.Body, &values))
	f.Fuzz(func(t *testing.T, salt, body []byte) {
		e := record.Entry{Pos: 7, Head: whole.Head, Salt: salt, Body: body, Leaf: whole.Leaf}
		if e.Check() != nil {
			_ = e.ErasedFields() // does not panic
			return
		}
		var left map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(body, &left))
		for name, value := range left {
			require.Equal(t, string(values[name]), string(value))
		}
		require.Len(t, e.ErasedFields(), len(values)-len(left))
	})
}

package commitment_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/commitment"
)

var salt = []byte("sixteen bytes!!!")

func TestFieldsOfABody(t *testing.T) {
	body := `{"a":"x\\\"}","b":[1,{"c":"]"},[]],"c":-1,"d":{},"e":null,"f":"\\"}`
	fields, ok := commitment.Fields(nil, salt, []byte(body))
	require.True(t, ok)
	var values []string
	for _, f := range fields {
		values = append(values, string(f.Name)+" "+string(f.Value))
	}
	require.Equal(t, []string{`a "x\\\"}"`, `b [1,{"c":"]"},[]]`, "c -1", "d {}", "e null", `f "\\"`}, values)
	for i, f := range fields {
		for _, other := range fields[:i] {
			require.NotEqual(t, other.Salt(), f.Salt())
		}
		again := []commitment.Field{commitment.NewField(string(f.Name), string(f.Value), f.Salt())}
		commitment.Hash(again)
		require.Equal(t, f.Digest, again[0].Digest)
	}
}

// TestFieldsOfOtherBytes has bodies that are not in the form of a record's.
func TestFieldsOfOtherBytes(t *testing.T) {
	for _, body := range []string{
		"", "{", "}", "[]", "null", "{}}", "{} ", " {}", `{"a"}`, `{"a":}`, `{"a":1`, `{"a":1,}`, `{"a":1}}`, `{"a":1} `, `{"a":1],"b":2}`, `{"a":[1}`,
		`{"a":"1}`, `{"a":"1\"}`, `{a:1}`, `{,"a":1}`, `{"a":1,"a":2}`, `{"b":1,"a":2}`, `{"a\"":1}`, `{"é":1}`, `{ "a":1}`, `{"a" :1}`, `{"a":`, `{"a":1, "b":2}`,
		`{"` + strings.Repeat("n", commitment.MaxName+1) + `":1}`,
	} {
		_, ok := commitment.Fields(nil, salt, []byte(body))
		require.False(t, ok, body)
	}
	_, ok := commitment.Fields(nil, salt, []byte("{}"))
	require.False(t, ok, "no digest covers this salt")
	_, ok = commitment.Fields(nil, make([]byte, commitment.SaltSize), []byte("{}"))
	require.True(t, ok)
}

// TestSaltsOfErasedFields has salts that Join never writes.
func TestSaltsOfErasedFields(t *testing.T) {
	fields, ok := commitment.Fields(nil, salt, []byte(`{"a":1,"b":2,"c":3,"d":4}`))
	require.True(t, ok)
	for _, name := range []string{"a", "c", "d"} {
		commitment.Find(fields, name).Value = nil
	}
	require.Nil(t, commitment.Find(fields, "e"))
	salts, body := commitment.Join(fields)
	require.Equal(t, `{"b":2}`, string(body))
	again, ok := commitment.Fields(nil, salts, body)
	require.True(t, ok)
	require.Equal(t, commitment.Body(fields), commitment.Body(again))

	const one = 1 + 1 + 32
	left, a, c := salts[:commitment.SaltSize], salts[16:16+one], salts[16+one:16+2*one]
	b, quote := append([]byte("\x01b"), a[2:]...), append([]byte("\x01\""), a[2:]...)
	for name, other := range map[string][]byte{
		"nothing": nil, "no erased field": bytes.Repeat(left, 2), "cut": salts[:len(salts)-1], "longer": append(bytes.Clone(salts), 0),
		"in another order": bytes.Join([][]byte{left, c, a}, nil), "twice": bytes.Join([][]byte{left, a, a}, nil), "present": bytes.Join([][]byte{left, b}, nil),
		"not a name": bytes.Join([][]byte{left, quote}, nil),
	} {
		_, ok := commitment.Fields(nil, other, body)
		require.False(t, ok, name)
	}
}

func TestDigestsAreReadAsTheyAreWritten(t *testing.T) {
	sum := commitment.Body(nil)
	text := commitment.Spell(sum)
	back, ok := commitment.ReadDigest(text)
	require.True(t, ok)
	require.Equal(t, sum, back)
	for _, other := range []string{"", "sha256:", strings.ToUpper(text), text + "0", text[7:]} {
		_, ok := commitment.ReadDigest(other)
		require.False(t, ok, other)
	}
}

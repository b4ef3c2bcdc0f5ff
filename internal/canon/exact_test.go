package canon_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
)

// FuzzNumber checks that two numbers have one canonical form only if they are
// the same number.
func FuzzNumber(f *testing.F) {
	for _, s := range [][2]string{{"1", "1.0"}, {"1e0", "10e-1"}, {"-0", "0"}, {"0.1", "1e-1"}, {"1e400", "1e401"}, {"9007199254740993", "9007199254740992"}, {"01", "1"}, {"+1", "1"}, {"1.", "1"}, {"-1", "1"}, {"1E2", "100"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, err := canon.Canonicalize([]byte(a), canon.DefaultLimits())
		if err != nil || !isNumber(a) {
			return
		}
		require.True(t, json.Valid([]byte(a)))
		require.Zero(t, exact(t, a).Cmp(exact(t, string(x))), "%s became %s", a, x)
		y, err := canon.Canonicalize([]byte(b), canon.DefaultLimits())
		if err != nil || !isNumber(b) {
			return
		}
		require.Equal(t, exact(t, a).Cmp(exact(t, b)) == 0, bytes.Equal(x, y), "%s and %s", a, b)
	})
}

// FuzzAmount compares sums with exact fractions.
func FuzzAmount(f *testing.F) {
	f.Add("0.1", "0.2")
	f.Add("1e300", "-1e-300")
	f.Add("-0", "0")
	f.Add("1e", "1")
	f.Add("9999999999999999999999999999999999999999", "1")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, err := canon.ParseAmount(a)
		if err != nil {
			return
		}
		p := exact(t, a)
		require.Equal(t, p.Sign(), x.Sign())
		require.Zero(t, exact(t, x.String()).Cmp(p))
		y, err := canon.ParseAmount(b)
		if err != nil {
			return
		}
		q := exact(t, b)
		require.Equal(t, p.Cmp(q), x.Cmp(y))
		require.Zero(t, exact(t, x.Plus(y).String()).Cmp(new(big.Rat).Add(p, q)))
		require.Zero(t, exact(t, x.Minus(y).String()).Cmp(new(big.Rat).Sub(p, q)))
		require.Zero(t, x.Plus(y).Minus(y).Cmp(x))
		require.Equal(t, x.Plus(y).String(), y.Plus(x).String())
	})
}

// FuzzDecode checks that the order of members has no effect, and that an
// unknown name, or one in another case, is rejected.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":"x","c":{"a":2},"d":[true]}`, `{"A":1}`, `{"a":1,"a":1}`, `{"a":1.0}`, `{"a":1e40}`, `{"b":null}`, `{"e":0}`, `{"c":{"e":1}}`, `{"d":null}`, `[]`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	type inner struct {
		A int `json:"a"`
	}
	type record struct {
		A int             `json:"a"`
		B string          `json:"b"`
		C *inner          `json:"c"`
		D []bool          `json:"d"`
		R json.RawMessage `json:"r"`
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r record
		if canon.Decode(data, &r) != nil {
			return
		}
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(data, &members))
		var names []string
		for name := range members {
			require.Contains(t, []string{"a", "b", "c", "d", "r"}, name)
			names = append(names, name)
		}
		slices.Sort(names)
		slices.Reverse(names)
		var turned bytes.Buffer
		turned.WriteByte('{')
		for i, name := range names {
			if i > 0 {
				turned.WriteByte(',')
			}
			turned.WriteString(`"` + name + `":` + string(members[name]))
		}
		turned.WriteByte('}')
		var again record
		require.NoError(t, canon.Decode(turned.Bytes(), &again))
		require.Equal(t, r, again)
		first, err := canon.Marshal(r)
		require.NoError(t, err)
		second, err := canon.Canonicalize(first, canon.DefaultLimits())
		require.NoError(t, err)
		require.Equal(t, string(first), string(second), "what is written is canonical")
	})
}

func isNumber(text string) bool {
	v, err := canon.Parse([]byte(text), canon.DefaultLimits())
	return err == nil && v.Kind() == canon.Number
}

func exact(t *testing.T, number string) *big.Rat {
	t.Helper()
	v, err := canon.Parse([]byte(number), canon.Limits{Bytes: 4096, Depth: 4})
	require.True(t, err != nil || v.Kind() == canon.Number)
	r, ok := new(big.Rat).SetString(string(bytes.TrimSpace([]byte(number))))
	require.True(t, ok, number)
	return r
}

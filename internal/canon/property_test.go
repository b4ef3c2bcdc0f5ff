package canon_test

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func canonical(t require.TestingT, in string) string {
	out, err := canon.Canonicalize([]byte(in), canon.DefaultLimits())
	require.NoError(t, err, in)
	return string(out)
}

// number draws a spelling of a number and its value.
func number(t *rapid.T) (string, *big.Rat) {
	spelling := rapid.StringMatching(`-?(0|[1-9][0-9]{0,19})(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number")
	value, ok := new(big.Rat).SetString(spelling)
	require.True(t, ok, spelling)
	return spelling, value
}

func TestNumbersKeepTheirExactValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spelling, want := number(t)
		out := canonical(t, spelling)
		got, ok := new(big.Rat).SetString(out)
		require.True(t, ok)
		require.Zero(t, want.Cmp(got), "%s became %s", spelling, out)
		require.Equal(t, out, canonical(t, out))
	})
}

func TestNumbersAreEqualExactlyWhenTheirTextsAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, va := number(t)
		b, vb := number(t)
		if rapid.Bool().Draw(t, "respell") {
			b, vb = respell(t, va), va
		}
		require.Equal(t, va.Cmp(vb) == 0, canonical(t, a) == canonical(t, b), "%s and %s", a, b)
	})
}

// respell writes a number in another spelling: its digits shifted against an
// exponent, with zeros that do not change the value.
func respell(t *rapid.T, value *big.Rat) string {
	shift := rapid.IntRange(0, 30).Draw(t, "shift")
	scaled := new(big.Rat).Mul(value, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(shift)), nil)))
	text := scaled.FloatString(140)
	return text + rapid.SampledFrom([]string{"", "0", "000"}).Draw(t, "zeros") + "e-" + strings.Repeat("0", shift%3) + big.NewInt(int64(shift)).String()
}

// tree draws a Go value that encodes to JSON.
func tree(depth int) *rapid.Generator[any] {
	scalars := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.String().AsAny(), rapid.Int64().AsAny(),
		rapid.Custom(func(t *rapid.T) any { s, _ := number(t); return json.Number(s) }),
	}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	return rapid.OneOf(append(scalars,
		rapid.SliceOfN(tree(depth-1), 0, 4).AsAny(),
		rapid.MapOfN(rapid.String(), tree(depth-1), 0, 5).AsAny(),
	)...)
}

func TestSpellingDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := tree(3).Draw(t, "value")
		want, err := canon.Marshal(v)
		require.NoError(t, err)
		require.Equal(t, string(want), canonical(t, spell(t, v)))
		require.Equal(t, string(want), canonical(t, string(want)))
		require.True(t, json.Valid(want))
	})
}

// TestDeeper compares the depth of a canonical text with the result of a parser
// with that limit, for strings with any content.
func TestDeeper(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := canon.Marshal(map[string]any{rapid.StringOf(rapid.RuneFrom([]rune(`[]{}"\\a`))).Draw(t, "name"): tree(3).Draw(t, "value")})
		require.NoError(t, err)
		for levels := range 6 {
			_, err := canon.Parse(text, canon.Limits{Bytes: len(text), Depth: levels})
			require.Equal(t, err != nil, canon.Deeper(text, levels), "%s in %d", text, levels)
		}
	})
}

// spell writes a value with members in any order, whitespace anywhere and any
// character escaped.
func spell(t *rapid.T, v any) string {
	gap := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n\t", "\r\n "}).Draw(t, "gap") }
	var items []string
	switch v := v.(type) {
	case string:
		return spellString(t, v)
	case []any:
		for _, e := range v {
			items = append(items, gap()+spell(t, e)+gap())
		}
		return "[" + gap() + strings.Join(items, ",") + "]"
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range rapid.Permutation(names).Draw(t, "order") {
			items = append(items, gap()+spellString(t, name)+gap()+":"+gap()+spell(t, v[name])+gap())
		}
		return "{" + gap() + strings.Join(items, ",") + "}"
	default:
		plain, err := json.Marshal(v)
		require.NoError(t, err)
		return string(plain)
	}
}

func spellString(t *rapid.T, s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r < ' ' || r == '"' || r == '\\' || rapid.Bool().Draw(t, "escape") {
			for _, unit := range utf16.Encode([]rune{r}) {
				b.WriteString(`\u`)
				b.WriteString(strings.ToUpper(string("0123456789abcdef"[unit>>12]) + string("0123456789abcdef"[unit>>8&15])))
				b.WriteString(string("0123456789abcdef"[unit>>4&15]) + string("0123456789abcdef"[unit&15]))
			}
			continue
		}
		b.WriteRune(r)
	}
	b.WriteByte('"')
	return b.String()
}

// TestMembersAreInUTF16Order compares the order with that of the UTF-16 code
// units, computed directly.
func TestMembersAreInUTF16Order(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOfN(rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune("a\ud7ff\ue000\ufffd\U00010000\U0010ffff"))), 0, 4, -1)
		m := rapid.MapOfN(name, rapid.Just(0), 0, 12).Draw(t, "members")
		v, err := canon.From(m)
		require.NoError(t, err)
		var last []uint16
		count := 0
		for name := range v.Members() {
			units := utf16.Encode([]rune(name))
			if count > 0 {
				require.Negative(t, slices.Compare(last, units))
			}
			last = units
			count++
			_, found := v.Get(name)
			require.True(t, found)
		}
		require.Equal(t, len(m), count)
	})
}

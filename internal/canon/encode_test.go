package canon_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type upperText string

func (s upperText) MarshalText() ([]byte, error) { return []byte(strings.ToUpper(string(s))), nil }

type byPointer struct{ A int }

func (b *byPointer) MarshalJSON() ([]byte, error) { return []byte(`"pointer"`), nil }

type tags struct {
	Zebra  string          `json:"zebra"`
	Alpha  string          `json:"alpha,omitempty"`
	Number int             `json:"number,omitempty"`
	Small  uint8           `json:"small"`
	Flag   bool            `json:"flag,omitempty"`
	List   []tags          `json:"list"`
	Few    []string        `json:"few,omitempty"`
	Map    map[string]any  `json:"map,omitempty"`
	Raw    json.RawMessage `json:"raw,omitempty"`
	Always json.RawMessage `json:"always"`
	Next   *tags           `json:"next,omitempty"`
	At     time.Time       `json:"at,omitempty"`
	Any    any             `json:"any"`
	Hidden string          `json:"-"`
	Plain  string
	hidden string
	Inside
	Until time.Time `json:"until,omitzero"`
}

// Inside is an embedded struct.
type Inside struct {
	Inner string `json:"inner"`
	Deeper
}

// Deeper is embedded in an embedded struct.
type Deeper struct {
	Deep int `json:"deep,omitempty"`
}

func draw(t *rapid.T, depth int) tags {
	v := tags{
		Zebra: rapid.String().Draw(t, "zebra"), Alpha: rapid.SampledFrom([]string{"", "é", "\ufffd", "a\u2028<>&", "\x00\n\"\\", "bad \xff"}).Draw(t, "alpha"),
		Number: rapid.Int().Draw(t, "number"), Small: rapid.Uint8().Draw(t, "small"), Flag: rapid.Bool().Draw(t, "flag"),
		Few: rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "few"), Any: tree(2).Draw(t, "any"), Hidden: "x", hidden: "x", Plain: "p",
		At: time.Unix(rapid.Int64Range(-1e11, 4e11).Draw(t, "at"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")).UTC(),
	}
	v.Always = rapid.SampledFrom([]json.RawMessage{
		nil, json.RawMessage("null"), json.RawMessage(` {"b":1.0,"a":[1e2,"\u00e9"]} `), json.RawMessage("{"), json.RawMessage(""), json.RawMessage(`{"a":1,"a":2}`),
	}).Draw(t, "raw")
	v.Inner, v.Deep = rapid.String().Draw(t, "inner"), rapid.IntRange(0, 2).Draw(t, "deep")
	if rapid.Bool().Draw(t, "ends") {
		v.Until = v.At
	}
	if rapid.Bool().Draw(t, "has map") {
		v.Map = rapid.MapOfN(rapid.String(), tree(1), 0, 4).Draw(t, "map")
	}
	if depth > 0 && rapid.Bool().Draw(t, "has next") {
		next := draw(t, depth-1)
		v.Next, v.List = &next, []tags{next, {}}
	}
	return v
}

// TestPlainEqualsReread compares the fast path with the one that
// defines the form, also for errors. TestNotPlain shows that the fast path takes
// values.
func TestPlainEqualsReread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := draw(t, 2)
		want, bad := canon.Reread(v)
		got, ok := canon.EncodePlain(v)
		if ok {
			require.NoError(t, bad)
			require.Equal(t, string(want), string(got))
		}
		whole, err := canon.Marshal(v)
		require.Equal(t, bad == nil, err == nil)
		require.Equal(t, string(want), string(whole))
		value, err := canon.From(v)
		require.Equal(t, bad == nil, err == nil)
		require.Equal(t, string(want), string(value.Canonical()))
	})
}

// TestLargePlain compares the two paths for values of several megabytes, with
// and without escapes, so that buffers grow and change owner.
func TestLargePlain(t *testing.T) {
	for _, unit := range []string{"0123456789abcdef", "line\n", "\x01\b\v\"\\", "\u2028\u00fc"} {
		text := strings.Repeat(unit, (1<<20)/len(unit))
		for _, v := range []any{text, []string{"a", text, "b", text}, json.RawMessage(`{"b":"x","a":"` + strings.Repeat("y", 3<<20) + `"}`)} {
			want, err := canon.Reread(v)
			require.NoError(t, err)
			got, ok := canon.EncodePlain(v)
			if _, raw := v.(json.RawMessage); !raw { // one that is not canonical has a smaller limit
				require.True(t, ok)
			}
			require.True(t, !ok || string(want) == string(got))
			again, err := canon.Marshal("later")
			require.NoError(t, err)
			require.Equal(t, `"later"`, string(again))
			require.True(t, !ok || string(want) == string(got), "the next document does not use its memory")
		}
	}
}

func TestNotPlain(t *testing.T) {
	type hidden struct{ tags }
	type pointed struct{ *Inside }
	type renamed struct {
		Inside `json:"inside"`
	}
	type covered struct {
		Inside
		Over string `json:"inner"`
	}
	type dated struct{ time.Time }
	type zero struct {
		A int `json:"a,omitzero"`
	}
	type twice struct {
		A int `json:"B"`
		B int
	}
	type quoted struct {
		A int `json:"a,string"`
	}
	type named struct {
		A int `json:"a b"`
	}
	type loop struct{ Next *loop }
	endless := &loop{}
	endless.Next = endless
	for name, v := range map[string]any{
		"floating point": 1.5, "bytes": []byte("ab"), "bytes of a named type": []upperByte{1}, "array": [2]int{1, 2},
		"marshals itself": upperText("a"), "key marshals itself": map[upperText]int{"a": 1}, "keys are numbers": map[int]int{1: 2},
		"marshals by its pointer": &byPointer{}, "would by its pointer": byPointer{}, "embedded and hidden": hidden{}, "embedded pointer": pointed{}, "embedded under a name": renamed{},
		"embedded and covered": covered{}, "embedded and marshals itself": dated{}, "zero is left out": zero{}, "one name twice": twice{},
		"quoted": quoted{}, "name for Go alone": named{}, "number": json.Number("1e2"), "bad number": json.Number("x"),
		"not UTF-8": "a\xff", "key not UTF-8": map[string]int{"\xff": 1}, "year": time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		"large": strings.Repeat("a", 9<<20), "function": func() {}, "channel": make(chan int), "endless": endless,
		"deep": json.RawMessage(strings.Repeat("[", 110) + strings.Repeat("]", 110)), "deeper": nested(110),
	} {
		t.Run(name, func(t *testing.T) {
			_, ok := canon.EncodePlain(v)
			require.False(t, ok)
			want, bad := canon.Reread(v)
			got, err := canon.Marshal(v)
			require.Equal(t, bad, err)
			require.Equal(t, string(want), string(got))
		})
	}
	for name, v := range map[string]any{
		"nil": nil, "nil pointer": (*loop)(nil), "nil map": map[string]int(nil), "nil list": []string(nil), "nil raw": json.RawMessage(nil),
		"nil pointer that marshals inside": struct{ A *int }{}, "empty": struct{}{}, "list of any": []any{nil, 1, "a", map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := canon.EncodePlain(v)
			require.True(t, ok)
			want, bad := canon.Reread(v)
			require.NoError(t, bad)
			require.Equal(t, string(want), string(got))
		})
	}
}

type upperByte uint8

func nested(n int) any {
	var v any
	for range n {
		v = []any{v}
	}
	return v
}

// TestCheckerAcceptsOnlyCanonicalForms compares the checker with parsing and
// writing.
func TestCheckerAcceptsOnlyCanonicalForms(t *testing.T) {
	for _, text := range []string{`null`, `{"a":[1,true,"x"],"b":{}}`, `"ü"`, `12`} { // it does not refuse everything
		require.True(t, canon.IsCanonical([]byte(text)), text)
	}
	rapid.Check(t, func(t *rapid.T) {
		v := tree(3).Draw(t, "value")
		text, err := canon.Marshal(v)
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "spell otherwise") {
			text = []byte(spell(t, v))
		}
		if len(text) > 0 && rapid.Bool().Draw(t, "break") {
			text[rapid.IntRange(0, len(text)-1).Draw(t, "at")] = rapid.SampledFrom([]byte(`{}[]",:\\0159-.eEntru/ \x00\xff`)).Draw(t, "byte")
		}
		if !canon.IsCanonical(text) {
			return
		}
		want, err := canon.Canonicalize(text, canon.DefaultLimits())
		require.NoError(t, err, string(text))
		require.Equal(t, string(want), string(text))
	})
}

func TestChecker(t *testing.T) {
	for text, want := range map[string]bool{
		`{"a":1,"b":[true,null,"x\n\"é"],"c":{}}`: true, `0`: true, `-1`: true, `""`: true, `[]`: true, `[1,2]`: true,
		`{"b":1,"a":1}`: false, `{"a":1,"a":1}`: false, `{"a": 1}`: false, `-0`: false, `01`: false, `1.5`: false, `1e2`: false, `""x`: false,
		`"\/"`: false, `"\u0000"`: false, "\"\n\"": false, "\"\xff\"": false, `{"a\n":1}`: false, ``: false, `[1,]`: false, `[1`: false, `{"a"}`: false,
		`{"a":1`: false, `"a`: false, `"\`: false, `nul`: false, `-`: false, `1234567890123456789`: false, `{1:2}`: false, `{"a":1,}`: false,
		strings.Repeat("[", 17) + strings.Repeat("]", 17): false, strings.Repeat(`{"a":`, 17) + "1" + strings.Repeat("}", 17): false,
		"{\"\U0001f600\":1,\"\ufb33\":2}": true, "{\"\ufb33\":2,\"\U0001f600\":1}": false,
	} {
		require.Equal(t, want, canon.IsCanonical([]byte(text)), text)
		if want {
			require.Equal(t, text, canonical(t, text))
		}
	}
}

// TestAppend checks that Append writes what Marshal returns, after what is
// already there, and that an error leaves it alone.
func TestAppend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v any = draw(t, 1)
		if rapid.Bool().Draw(t, "any") {
			v = tree(2).Draw(t, "value")
		}
		want, bad := canon.Marshal(v)
		got, err := canon.Append([]byte("before"), v)
		require.Equal(t, bad == nil, err == nil)
		require.Equal(t, "before"+string(want), string(got))
	})
	got, err := canon.Append(nil, nil)
	require.NoError(t, err)
	require.Equal(t, "null", string(got))
}

// TestSumOfAnySize compares digests below and above the size from which the
// parts are hashed one by one.
func TestSumOfAnySize(t *testing.T) {
	for n := range 1200 {
		part := bytes.Repeat([]byte{'x'}, n)
		h := sha256.New()
		for _, p := range [][]byte{[]byte("remit/test"), part, nil, []byte("end")} {
			h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
			h.Write(p)
		}
		require.Equal(t, "sha256:"+hex.EncodeToString(h.Sum(nil)), string(canon.Sum("remit/test", part, nil, []byte("end"))))
	}
}

// TestFlat compares the fast path for maps of scalars with the one that defines
// the form. A named map takes it too.
func TestFlat(t *testing.T) {
	type args map[string]any
	scalars := rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.Int(), func(n int) any { return n }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.SampledFrom([]any{nil, "bad \xff", 1.5, json.Number("1e2"), []any{}, "\u2028\x00\"", map[string]any{}}),
	)
	names := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\xff", "\ufffd", "\U0001f600", "a", "b"}))
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOfN(names, scalars, 0, 12).Draw(t, "map")
		want, bad := canon.Reread(m)
		if value, text, ok := canon.Flat(m); ok {
			require.NoError(t, bad)
			require.Equal(t, string(want), string(text))
			parsed, err := canon.Parse(want, canon.DefaultLimits())
			require.NoError(t, err)
			require.Equal(t, parsed, value, "the same value as one that was read")
		}
		for _, v := range []any{m, args(m)} {
			value, text, err := canon.FromText(v)
			require.Equal(t, bad == nil, err == nil)
			require.Equal(t, string(want), string(text))
			require.Equal(t, string(want), string(value.Canonical()))
		}
	})
	_, _, ok := canon.Flat(map[string]any{"a": "x", "b": 1, "c": true, "d": nil})
	require.True(t, ok)
	value, err := canon.From(args(nil))
	require.NoError(t, err)
	require.Equal(t, canon.Null, value.Kind())
}

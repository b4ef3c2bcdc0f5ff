package canon_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/stretchr/testify/require"
)

func parse(t *testing.T, in string) canon.Value {
	t.Helper()
	v, err := canon.Parse([]byte(in), canon.DefaultLimits())
	require.NoError(t, err)
	return v
}

func TestAccessors(t *testing.T) {
	v := parse(t, `{"b":[1.50,true,false,null,"x"],"a":{},"é":"1"}`)
	require.Equal(t, canon.Object, v.Kind())
	require.Equal(t, 3, v.Len())

	list, found := v.Get("b")
	require.True(t, found)
	var kinds []string
	var texts []string
	for i, e := range list.Elements() {
		require.Equal(t, len(kinds), i)
		kinds = append(kinds, e.Kind().String())
		texts = append(texts, e.Text())
	}
	require.Equal(t, []string{"number", "boolean", "boolean", "null", "string"}, kinds)
	require.Equal(t, []string{"1.5", "true", "false", "null", "x"}, texts)
	require.Equal(t, map[string]any{
		"a": map[string]any{}, "é": "1", "b": []any{json.Number("1.5"), true, false, nil, "x"},
	}, v.Any())

	_, found = v.Get("B")
	require.False(t, found, "names are exact")
	_, found = list.Get("0")
	require.False(t, found)
	for range v.Members() {
		break // a caller may stop early
	}
	for range list.Elements() {
		break
	}
	text, _ := v.Get("é")
	require.False(t, text.Bool())
	require.True(t, parse(t, "true").Bool())
	require.False(t, parse(t, `"true"`).Bool())
}

func TestZeroValue(t *testing.T) {
	var v canon.Value
	require.Equal(t, canon.Invalid, v.Kind())
	require.Equal(t, "invalid", v.Kind().String())
	require.Nil(t, v.Canonical())
	require.Nil(t, v.Any())
	require.Zero(t, v.Len())
	require.Empty(t, v.Text())
	_, found := v.Get("a")
	require.False(t, found)
	for range v.Members() {
		require.Fail(t, "no members")
	}
	require.ErrorIs(t, v.Decode(new(any)), canon.ErrInvalid)
	_, err := json.Marshal(v)
	require.ErrorIs(t, err, canon.ErrInvalid)
}

func TestValueSharesNothing(t *testing.T) {
	data := []byte(`{"a":"text"}`)
	v, err := canon.Parse(data, canon.DefaultLimits())
	require.NoError(t, err)
	copy(data, strings.Repeat("x", len(data)))
	mine, ok := v.Any().(map[string]any)
	require.True(t, ok)
	mine["a"] = "changed"
	out := v.Canonical()
	out[2] = 'z'
	require.Equal(t, `{"a":"text"}`, string(v.Canonical()))
}

func TestValueInARecord(t *testing.T) {
	type record struct {
		V canon.Value `json:"v"`
	}
	data, err := canon.Marshal(record{V: parse(t, `{"b":1.0,"a":2}`)})
	require.NoError(t, err)
	require.Equal(t, `{"v":{"a":2,"b":1}}`, string(data))
	var back record
	require.NoError(t, canon.Decode(data, &back))
	require.Equal(t, `{"a":2,"b":1}`, string(back.V.Canonical()))
	require.ErrorIs(t, json.Unmarshal([]byte(`{"v":{"a":1,"a":2}}`), &back), canon.ErrInvalid)
}

type everything struct {
	Time   time.Time             `json:"time"`
	Span   time.Duration         `json:"span"`
	Raw    json.RawMessage       `json:"raw"`
	Bytes  []byte                `json:"bytes"`
	Fixed  [2]byte               `json:"fixed"`
	Number json.Number           `json:"number"`
	Any    any                   `json:"any"`
	Quoted int                   `json:"quoted,string"`
	Map    map[string]int        `json:"map"`
	Ptr    *int                  `json:"ptr"`
	Nil    []string              `json:"nil"`
	Empty  string                `json:"empty,omitempty"`
	Inner  struct{ Name string } `json:"inner"`
}

func TestDecodeReadsWhatEncodingJSONWrites(t *testing.T) {
	seven := 7
	in := everything{
		Time: time.Date(2026, 9, 22, 23, 30, 0, 123456789, time.UTC), Span: 90 * time.Second, Raw: json.RawMessage(`{"b":1.0,"a":[2]}`),
		Bytes: []byte{0, 1, 255}, Fixed: [2]byte{1, 2}, Number: "12345678901234567890.5", Any: map[string]any{"n": json.Number("0.10")},
		Quoted: 5, Map: map[string]int{"x": 1}, Ptr: &seven,
	}
	in.Inner.Name = "<&>"
	data, err := canon.Marshal(in)
	require.NoError(t, err)

	var out everything
	require.NoError(t, canon.Decode(data, &out))
	in.Raw = json.RawMessage(`{"a":[2],"b":1}`) // canonical, like the rest
	in.Any = map[string]any{"n": json.Number("0.1")}
	require.Equal(t, in, out)
	again, err := canon.Marshal(out)
	require.NoError(t, err)
	require.Equal(t, string(data), string(again))
}

func TestDecodeNumbersByValue(t *testing.T) {
	var v struct {
		N int   `json:"n"`
		U uint8 `json:"u"`
	}
	require.NoError(t, canon.Decode([]byte(`{"n":1.20e3,"u":2.0}`), &v))
	require.Equal(t, 1200, v.N)
	require.EqualValues(t, 2, v.U)
}

func TestDecodeRefuses(t *testing.T) {
	type inner struct {
		Allow bool  `json:"allow"`
		Small uint8 `json:"small"`
	}
	type record struct {
		Name string       `json:"name"`
		List []inner      `json:"list"`
		When time.Time    `json:"when"`
		Data []byte       `json:"data"`
		N    json.Number  `json:"n"`
		V    *canon.Value `json:"v"`
		skip int
	}
	_ = record{}.skip
	for name, c := range map[string]struct{ in, err string }{
		"duplicate":         {`{"name":"a","name":"b"}`, `invalid JSON at "/name": this member name occurs more than once, want each name once`},
		"unknown":           {`{"nam":"a"}`, `invalid JSON at "/nam": unknown name, want one of "name", "list", "when", "data", "n", "v"`},
		"case variant":      {`{"list":[{"allow":false,"ALLOW":true}]}`, `invalid JSON at "/list/0/ALLOW": unknown name, want one of "allow", "small"`},
		"wrong type":        {`{"name":12345}`, `invalid JSON at "/name": does not fit, want a value for string`},
		"out of range":      {`{"list":[{"small":256}]}`, `invalid JSON at "/list/0/small": a number out of the range of uint8`},
		"fraction":          {`{"list":[{"small":1.5}]}`, `invalid JSON at "/list/0/small": does not fit, want a value for uint8`},
		"time":              {`{"when":"secret"}`, `invalid JSON at "/when": does not fit, want a value for time.Time`},
		"base64":            {`{"data":"*secret*"}`, `invalid JSON at "/data": does not fit, want a value for []uint8`},
		"string for number": {`{"n":"secret"}`, `invalid JSON at "/n": does not fit, want a value for json.Number`},
		"trailing":          {`{} {}`, `invalid JSON at the top (byte 3): something after the value, want exactly one JSON value`},
		"not an object":     {`[]`, `invalid JSON at the top: does not fit, want a value for canon_test.record`},
	} {
		t.Run(name, func(t *testing.T) {
			var v record
			err := canon.Decode([]byte(c.in), &v)
			require.ErrorIs(t, err, canon.ErrInvalid)
			require.EqualError(t, err, c.err)
		})
	}
	require.ErrorIs(t, canon.Decode([]byte("{\"name\":\"\xff\"}"), new(record)), canon.ErrInvalid)
	require.ErrorContains(t, canon.Decode([]byte(`{}`), record{}), "want a pointer")
	require.ErrorContains(t, canon.Decode([]byte(`{}`), nil), "want a pointer")
	require.ErrorContains(t, canon.Decode([]byte(`{"a":1}`), &struct{}{}), "want none")
}

func TestMarshal(t *testing.T) {
	got, err := canon.Marshal(map[string]any{"b": "<a>&\u2028", "a": 1.50, "c": "\ufffd"})
	require.NoError(t, err)
	require.Equal(t, "{\"a\":1.5,\"b\":\"<a>&\u2028\",\"c\":\"\ufffd\"}", string(got))

	got, err = canon.Marshal(json.RawMessage(`"\ufffd"`))
	require.NoError(t, err, "the escape alone is no reason to refuse")
	require.Equal(t, "\"\ufffd\"", string(got))

	for name, v := range map[string]any{
		"not UTF-8": "a\xff", "not UTF-8 in a name": map[string]int{"\xff": 1}, "NaN": math.NaN(), "function": func() {},
		"duplicate in raw": json.RawMessage(`{"a":1,"a":2}`), "too deep": deep(200),
	} {
		_, err := canon.Marshal(v)
		require.ErrorIs(t, err, canon.ErrInvalid, name)
	}
}

func deep(n int) any {
	var v any
	for range n {
		v = []any{v}
	}
	return v
}

func Example() {
	for _, doc := range []string{
		`{"path": "a.txt", "mode": 4.20e2}`,
		`{"mode":420.0,"p\u0061th":"a.txt"}`,
		`{"path": "a.txt", "path": "/etc/passwd"}`,
	} {
		data, err := canon.Canonicalize([]byte(doc), canon.DefaultLimits())
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(string(data), canon.Sum("example", data)[:14])
	}
	// Output:
	// {"mode":420,"path":"a.txt"} sha256:1dbce3e
	// {"mode":420,"path":"a.txt"} sha256:1dbce3e
	// invalid JSON at "/path": this member name occurs more than once, want each name once
}

package jsonfile_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/jsonfile"
)

func document(depth int) *rapid.Generator[any] {
	scalar := rapid.OneOf(rapid.Map(rapid.Int(), func(n int) any { return n }), rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Just[any](true), rapid.Just[any](nil))
	if depth == 0 {
		return scalar
	}
	inner := document(depth - 1)
	return rapid.OneOf(scalar,
		rapid.Map(rapid.SliceOfN(inner, 0, 3), func(a []any) any { return a }),
		rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-zé"\\]{1,5}`), inner, 0, 3), func(m map[string]any) any { return m }))
}

// TestPlaces checks that each place is the position of its value.
func TestPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.MarshalIndent(document(3).Draw(t, "document"), rapid.SampledFrom([]string{"", " "}).Draw(t, "prefix"), "\t")
		require.NoError(t, err)
		report := &jsonfile.Report{}
		root := jsonfile.Parse(report, "f", text)
		require.NoError(t, report.Err())
		requireNode(t, string(text), root)
	})
}

func requireNode(t *rapid.T, text string, n *jsonfile.Node) {
	place := strings.Split(n.Place(), ":")
	line, err := strconv.Atoi(place[1])
	require.NoError(t, err)
	column, err := strconv.Atoi(place[2])
	require.NoError(t, err)
	lines := strings.SplitAfter(text, "\n")
	rest := string([]rune(lines[line-1])[column-1:]) + strings.Join(lines[line:], "")
	var raw json.RawMessage
	require.NoError(t, json.NewDecoder(strings.NewReader(rest)).Decode(&raw))
	got, err := canon.Canonicalize(raw, canon.DefaultLimits())
	require.NoError(t, err)
	require.Equal(t, string(n.Value.Canonical()), string(got))
	for _, m := range append(n.Members(), n.Elements()...) {
		requireNode(t, text, m)
	}
}

func TestNodeRefusals(t *testing.T) {
	report := &jsonfile.Report{}
	n := jsonfile.Parse(report, "f", []byte(`{"a": {"b": [1, {"c": "x"}]}, "long": {}, "map": {"k": "v"}, "list": ["x"]}`))
	require.Equal(t, "f:1:17", n.Under([]string{"a", "b", "1", "d"}).Place()[:6])
	require.Equal(t, `"x"`, string(n.Under([]string{"a", "b", "1", "c"}).Value.Canonical()))
	require.Equal(t, map[string]string{"k": "v"}, n.Get("map").TextMap())
	require.Equal(t, []string{"x"}, n.Get("list").Texts())
	require.NoError(t, report.Err())
	require.Empty(t, n.Get("a").Text())
	require.False(t, n.Get("list").Closed("x"))
	require.Nil(t, n.Get("list").TextMap())
	n.Under([]string{"a", "b", "0"}).Text()
	n.Version("1")
	require.EqualError(t, report.Err(), `f:1:1: "schemaVersion" is missing
f:1:7: "a" is an object, want a string
f:1:14: the element is a number, want a string
f:1:70: "list" is an array, want an object`)
	var none *jsonfile.Node
	require.Empty(t, none.Place())
	require.Nil(t, none.Get("x").Need("y").Members())
	require.Nil(t, none.Elements())
	require.Nil(t, none.Texts())
	require.Nil(t, none.TextMap())
	require.False(t, none.Bool() || none.IsObject())
	none.Refuse("x")
	none.RefuseName("x")
}

func TestOtherResources(t *testing.T) {
	for text, want := range map[string]string{
		"{\"a\":1,\n\"a\":2,\"b\":nope}":         "f:2:11: want a JSON value: an object, an array, a string in double quotes, a number, true, false or null",
		"{\"a\":{\"b\":1,\n\"b\":2},\"a\":1}}":   "f:2:1: \"b\" occurs twice, want each name once\nf:2:8: \"a\" occurs twice, want each name once",
		"\"\\ud800\"":                            "",
		strings.Repeat("[", 65):                  "f:1:65: nested deeper than the limit of 64",
		strings.Repeat(" ", jsonfile.MaxBytes+1): "f: the document is larger than the limit of 1048576 bytes",
		`{"` + strings.Repeat("a", 99) + `":1,"` + strings.Repeat("a", 99) + `":2}`: `f:1:106: "` + strings.Repeat("a", 64) + `…" occurs twice, want each name once`,
	} {
		report := &jsonfile.Report{}
		require.Nil(t, jsonfile.Parse(report, "f", []byte(text)))
		require.ErrorContains(t, report.Err(), want, text[:min(len(text), 40)])
	}
}

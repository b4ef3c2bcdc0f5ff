package rego_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// fromJSON builds the document from JSON text, the detour that the engine
// avoids.
func fromJSON(t *testing.T, r perm.Request) ast.Value {
	t.Helper()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var x any
	require.NoError(t, dec.Decode(&x))
	v, err := ast.InterfaceToValue(x)
	require.NoError(t, err)
	return v
}

func requireSameDocument(t *testing.T, r perm.Request) {
	t.Helper()
	got, err := rego.Document(r)
	require.NoError(t, err)
	want := fromJSON(t, r)
	require.Zero(t, want.Compare(got), "want %v\ngot  %v", want, got)
	require.Equal(t, want.String(), got.String())
}

func TestDocumentIsTheJSONForm(t *testing.T) {
	requireSameDocument(t, perm.Request{})
	paths, err := filepath.Glob("../../testdata/policy/input/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var r perm.Request
		require.NoError(t, json.Unmarshal(text, &r))
		requireSameDocument(t, r)
	}
}

// TestDocumentOfRandomRequests sets fields at random. It finds a field that was
// added to Request but not to the document.
func TestDocumentOfRandomRequests(t *testing.T) {
	for seed := range uint64(300) {
		var r perm.Request
		fill(reflect.ValueOf(&r).Elem(), rand.New(rand.NewPCG(seed, 1)))
		requireSameDocument(t, r)
	}
}

func fill(v reflect.Value, rnd *rand.Rand) {
	if rnd.IntN(6) == 0 {
		return // remains zero
	}
	switch v.Interface().(type) {
	case json.RawMessage:
		texts := []string{`null`, `"a"`, `{"b":[1,2.50,{"c":null}],"a":"<&>"}`, `[]`, `12345678901234567890`, `1e2`, `true`}
		v.SetBytes([]byte(texts[rnd.IntN(len(texts))]))
		return
	case json.Number:
		v.SetString([]string{"0", "-1", "2.50", "1e3", "12345678901234567890.1"}[rnd.IntN(5)])
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(rnd.Int64N(1<<33), rnd.Int64N(1e9))))
		return
	case perm.CountsByTool:
		var counts map[string]perm.ToolCounts
		fill(reflect.ValueOf(&counts).Elem(), rnd)
		v.Set(reflect.ValueOf(perm.NewCountsByTool(counts)))
		return
	}
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), rnd)
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rnd.IntN(3), 3))
		for i := range v.Len() {
			fill(v.Index(i), rnd)
		}
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rnd.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, rnd)
			fill(value, rnd)
			v.SetMapIndex(key, value)
		}
	case v.Kind() == reflect.String:
		v.SetString([]string{"", "a", "ü\u2028<>&\"\\", "\x00", "read", "10"}[rnd.IntN(6)])
	case v.CanInt():
		v.SetInt(rnd.Int64N(1<<40) - 1000)
	case v.Kind() == reflect.Bool:
		v.SetBool(rnd.IntN(2) == 0)
	}
}

func TestDocumentRefusesWhatJSONWouldRepair(t *testing.T) {
	control := perm.Request{Call: perm.CallFacts{Args: json.RawMessage(`{}`)}}
	_, err := rego.Document(control)
	require.NoError(t, err)
	for name, edit := range map[string]func(*perm.Request){
		"text":     func(r *perm.Request) { r.Access.Resource.Path = "a\xff" },
		"list":     func(r *perm.Request) { r.Access.Resource.Segments = []string{"a", "\xff"} },
		"map key":  func(r *perm.Request) { r.Session.Tools = perm.NewCountsByTool(map[string]perm.ToolCounts{"\xff": {}}) },
		"args":     func(r *perm.Request) { r.Call.Args = json.RawMessage(`{`) },
		"two args": func(r *perm.Request) { r.Call.Args = json.RawMessage(`{} {}`) },
		"raw text": func(r *perm.Request) { r.Call.Args = json.RawMessage("\"\xff\"") },
		"output":   func(r *perm.Request) { r.Output = json.RawMessage(`nope`) },
		"year":     func(r *perm.Request) { r.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"sum": func(r *perm.Request) {
			tally := perm.Counts{Sums: map[string]json.Number{"x": "many"}}
			r.Session.Tools = perm.NewCountsByTool(map[string]perm.ToolCounts{"a": {Counts: tally}})
		},
		"quoted sum": func(r *perm.Request) {
			tally := perm.Counts{Sums: map[string]json.Number{"x": `"1"`}}
			r.Session.Tools = perm.NewCountsByTool(map[string]perm.ToolCounts{"a": {Counts: tally}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := control
			edit(&r)
			_, err := rego.Document(r)
			require.ErrorIs(t, err, rego.ErrInput)
		})
	}
}

package schema_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/stretchr/testify/require"
)

type base struct {
	Path string `json:"path" jsonschema:"file to change, below the root"`
}

type lines struct {
	From uint8 `json:"from"`
	Upto *int  `json:"upto,omitempty"`
}

type arguments struct {
	base
	Lines  []lines           `json:"lines"`
	When   time.Time         `json:"when"`
	Wait   time.Duration     `json:"wait,omitzero"`
	Data   []byte            `json:"data,omitempty"`
	Raw    json.RawMessage   `json:"raw,omitempty"`
	Exact  json.Number       `json:"exact,omitempty"`
	Big    *big.Int          `json:"big,omitempty"`
	Addr   netip.Addr        `json:"addr,omitempty"`
	Env    map[string]string `json:"env,omitempty"`
	Any    any               `json:"any,omitempty"`
	Pair   [2]float64        `json:"pair,omitempty"`
	Hidden chan int          `json:"-"`
	inside chan int
}

func TestForType(t *testing.T) {
	_ = arguments{}.inside
	doc, err := schema.ForType[*arguments]()
	require.NoError(t, err)
	require.JSONEq(t, `{
	  "type": "object", "additionalProperties": false, "required": ["path", "lines", "when"],
	  "properties": {
	    "path": {"type": "string", "description": "file to change, below the root"},
	    "lines": {"type": ["null", "array"], "items": {"type": "object", "additionalProperties": false, "required": ["from"], "properties": {
	      "from": {"type": "integer", "minimum": 0, "maximum": 255}, "upto": {"type": ["null", "integer"]}}}},
	    "when": {"type": "string", "format": "date-time"},
	    "wait": {"type": "integer"},
	    "data": {"type": "string", "contentEncoding": "base64"},
	    "raw": {"type": ["null", "boolean", "number", "string", "array", "object"]},
	    "exact": {"type": "number"},
	    "big": {"type": ["null", "integer"]},
	    "addr": {"type": "string"},
	    "env": {"type": "object", "additionalProperties": {"type": "string"}},
	    "any": true,
	    "pair": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
	  }
	}`, string(doc))
	canonical, err := canon.Canonicalize(doc, canon.DefaultLimits())
	require.NoError(t, err)
	require.Equal(t, string(canonical), string(doc))
	require.True(t, compile(t, string(doc)).Closed())
}

// TestForTypeFitsTheDecoder checks that the schema accepts the JSON of a Go
// value, and that the decoder reads it.
func TestForTypeFitsTheDecoder(t *testing.T) {
	doc, err := schema.ForType[arguments]()
	require.NoError(t, err)
	s := compile(t, string(doc))
	upto := 7
	in := arguments{
		base: base{Path: "a"}, Lines: []lines{{From: 1, Upto: &upto}, {From: 255}}, When: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Wait: time.Minute,
		Data: []byte{0, 255}, Raw: json.RawMessage(`[1]`), Exact: "1.5", Big: big.NewInt(1 << 40), Addr: netip.MustParseAddr("10.0.0.1"),
		Env: map[string]string{"A": "b"}, Any: "x", Pair: [2]float64{1, 2.5},
	}
	v, err := canon.From(in)
	require.NoError(t, err)
	require.NoError(t, s.Validate(v))
	var out arguments
	require.NoError(t, v.Decode(&out))
	require.Equal(t, in, out)

	require.EqualError(t, s.Validate(value(t, `{"path":"a","lines":[{"from":256}],"when":"x","Wait":1}`)),
		`argument "Wait" differs only in case from "wait", names are exact; argument "lines[0].from" is too large, want at most 255`)
}

func TestForTypeScalars(t *testing.T) {
	doc, err := schema.ForType[string]()
	require.NoError(t, err)
	require.Equal(t, `{"type":"string"}`, string(doc))
	type blob []byte
	doc, err = schema.ForType[map[string]blob]()
	require.NoError(t, err)
	require.Equal(t, `{"additionalProperties":{"contentEncoding":"base64","type":"string"},"type":"object"}`, string(doc))
	doc, err = schema.ForType[struct{}]()
	require.NoError(t, err)
	require.True(t, compile(t, string(doc)).Closed())
}

type itself struct {
	Next []*itself `json:"next"`
}

type half struct{}

func (half) MarshalText() ([]byte, error) { return nil, nil }

type own struct{}

func (own) MarshalJSON() ([]byte, error) { return nil, nil }

func TestForTypeRefuses(t *testing.T) {
	refused := func(_ []byte, err error) string {
		require.ErrorIs(t, err, schema.ErrSchema)
		return err.Error()
	}
	for want, got := range map[string]string{
		`invalid schema: struct { C chan int }.C is of type chan int, which has no JSON form`:                         refused(schema.ForType[struct{ C chan int }]()),
		`invalid schema: schema_test.itself.Next[] is of type schema_test.itself, which contains itself`:              refused(schema.ForType[itself]()),
		`invalid schema: map[int]string is a map with keys of type int, want string keys`:                             refused(schema.ForType[map[int]string]()),
		`invalid schema: complex128 is of type complex128, which has no JSON form`:                                    refused(schema.ForType[complex128]()),
		`invalid schema: error is an interface with methods, which nothing can be decoded into`:                       refused(schema.ForType[error]()),
		`invalid schema: schema_test.half is of type schema_test.half, which is text in one direction only`:           refused(schema.ForType[half]()),
		`invalid schema: schema_test.own is of type schema_test.own, whose JSON is its own; write its schema by hand`: refused(schema.ForType[own]()),
	} {
		require.Equal(t, want, got)
	}
	require.Contains(t, refused(schema.ForType[struct {
		A struct {
			B map[string][]func() `json:"b"`
		}
	}]()), ".A.B[][] is of type func()")
	require.Contains(t, refused(schema.ForType[struct {
		N int `json:"n,string"`
	}]()), ".N has the json option string")
	require.Contains(t, refused(schema.ForType[struct {
		A int `json:"x"`
		B int `json:"X"`
	}]()), ".B has the JSON name of another field")
	require.Contains(t, refused(schema.ForType[struct {
		base `json:"base"`
	}]()), ".base is embedded, want a struct without a json tag")
	require.Contains(t, refused(schema.ForType[struct {
		*lines
	}]()), ".lines is embedded, want a struct")
	require.Contains(t, refused(schema.ForType[struct {
		A int `jsonschema:"minimum=1"`
	}]()), "tag must not begin with 'WORD='")
}

func ExampleForType() {
	type input struct {
		Path string `json:"path" jsonschema:"file to read"`
		Max  int    `json:"max,omitempty"`
	}
	doc, err := schema.ForType[input]()
	fmt.Println(string(doc), err)
	// Output:
	// {"additionalProperties":false,"properties":{"max":{"type":"integer"},"path":{"description":"file to read","type":"string"}},"required":["path"],"type":"object"} <nil>
}

package perm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

// inputVectors returns the golden input documents by name.
func inputVectors(t *testing.T) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("../testdata/policy/input/*.json")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 5)
	vectors := map[string][]byte{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		vectors[filepath.Base(path)] = text
	}
	return vectors
}

// canonical returns JSON with sorted keys and unchanged numbers.
func canonical(t *testing.T, text []byte) string {
	t.Helper()
	out, err := json.Marshal(generic(t, text))
	require.NoError(t, err)
	return string(out)
}

func generic(t *testing.T, text []byte) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	return value
}

func inputValidator(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // loads no schema
	c.AssertFormat()
	require.NoError(t, c.AddResource("input.json", generic(t, perm.InputSchema())))
	schema, err := c.Compile("input.json")
	require.NoError(t, err)
	return schema
}

func TestInputVectors(t *testing.T) {
	schema := inputValidator(t)
	for name, text := range inputVectors(t) {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, schema.Validate(generic(t, text)))
			dec := json.NewDecoder(bytes.NewReader(text))
			dec.DisallowUnknownFields()
			var r perm.Request
			require.NoError(t, dec.Decode(&r))
			again, err := json.Marshal(r)
			require.NoError(t, err)
			require.Equal(t, canonical(t, text), canonical(t, again))
		})
	}
}

func TestZeroRequestHasEveryList(t *testing.T) {
	text, err := json.Marshal(perm.Request{Time: time.Date(2026, 1, 2, 3, 0, 0, 0, time.FixedZone("x", 3600))})
	require.NoError(t, err)
	require.NotContains(t, strings.Replace(string(text), `"args":null`, "", 1), "null")
	require.Contains(t, string(text), `"kind":"agent"`)
	require.Contains(t, string(text), `"2026-01-02T02:00:00Z"`)
}

func TestInputSchemaIsACopy(t *testing.T) {
	a := perm.InputSchema()
	a[0] = 'x'
	require.Equal(t, byte('{'), perm.InputSchema()[0])
}

func TestInputSchemaRefuses(t *testing.T) {
	schema := inputValidator(t)
	control := string(inputVectors(t)["file_read.json"])
	require.NoError(t, schema.Validate(generic(t, []byte(control))))
	for _, edit := range [][2]string{
		{`"purpose": "run"`, `"purpose": "runs"`},
		{`"effect_class": "pure"`, `"effect_class": "Pure"`},
		{`"confinement": "handles"`, `"confinement": ""`},
		{`"destination": "none"`, `"destination": "nowhere"`},
		{`"action": "read"`, `"action": "look"`},
		{`"kind": "file"`, `"kind": "files"`},
		{`"status": "done"`, `"status": "ok"`},
		{`"1m"`, `"1min"`},
		{`"run": 3`, `"rnu": 3`},
		{`"dynamic": false`, `"dynamic": 0`},
		{`"dynamic": false`, `"dynamic": false, "extra": 1`},
		{`"declared": true, `, ``},
	} {
		t.Run(edit[1], func(t *testing.T) {
			broken := strings.Replace(control, edit[0], edit[1], 1)
			require.NotEqual(t, control, broken)
			require.Error(t, schema.Validate(generic(t, []byte(broken))))
		})
	}
}

// TestInputSchemaAndStructsAgree walks the schema and the structs. Every field
// of the structs is in the schema, and required unless it is optional, and the
// reverse.
func TestInputSchemaAndStructsAgree(t *testing.T) {
	root, ok := generic(t, perm.InputSchema()).(map[string]any)
	require.True(t, ok)
	defs, ok := root["definitions"].(map[string]any)
	require.True(t, ok)
	c := agreement{t: t, defs: defs}
	c.check("input", reflect.TypeFor[perm.Request](), root)
	require.Empty(t, c.differences)
	require.Greater(t, c.fields, 60)
}

type agreement struct {
	t           *testing.T
	defs        map[string]any
	differences []string
	fields      int
}

func (c *agreement) differ(path, text string) {
	c.differences = append(c.differences, fmt.Sprintf("%s: %s", path, text))
}

func (c *agreement) check(path string, t reflect.Type, node map[string]any) {
	if ref, ok := node["$ref"].(string); ok {
		node, _ = c.defs[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		if values, isObject := node["additionalProperties"].(map[string]any); isObject && values["type"] == nil { // an object with any members
			break
		}
		if node["type"] != nil {
			c.differ(path, "free form in Go, typed in the schema")
		}
	case t == reflect.TypeFor[perm.CountsByTool]():
		c.check(path, reflect.TypeFor[map[string]perm.ToolCounts](), node)
	case t == reflect.TypeFor[time.Time]():
		c.want(path, node, "string")
	case t == reflect.TypeFor[json.Number]():
		c.want(path, node, "number")
	case t == reflect.TypeFor[*string]() && node["type"] != "string": // null in a member that is always present
		require.ElementsMatch(c.t, []any{"string", "null"}, node["type"], path)
	case t.Kind() == reflect.Pointer:
		c.check(path, t.Elem(), node)
	case t.Kind() == reflect.Struct:
		c.want(path, node, "object")
		c.object(path, t, node)
	case t.Kind() == reflect.Map:
		c.want(path, node, "object")
		c.values(path, t, node)
	case t.Kind() == reflect.Slice:
		c.want(path, node, "array")
		items, _ := node["items"].(map[string]any)
		c.check(path+"[]", t.Elem(), items)
	case t.Kind() == reflect.String:
		c.want(path, node, "string")
	case t.Kind() == reflect.Int:
		c.want(path, node, "integer")
	case t.Kind() == reflect.Bool:
		c.want(path, node, "boolean")
	default:
		c.differ(path, "unexpected Go type "+t.String())
	}
}

func (c *agreement) want(path string, node map[string]any, kind string) {
	if node["type"] != kind {
		c.differ(path, fmt.Sprintf("want type %s, schema has %v", kind, node["type"]))
	}
}

// values checks a map, whose names are free or a closed list of one shape.
func (c *agreement) values(path string, t reflect.Type, node map[string]any) {
	if values, ok := node["additionalProperties"].(map[string]any); ok {
		c.check(path+"{}", t.Elem(), values)
		return
	}
	properties, _ := node["properties"].(map[string]any)
	if node["additionalProperties"] != false || len(properties) == 0 {
		c.differ(path, "a map has to say what its values are")
	}
	for name, p := range properties {
		value, _ := p.(map[string]any)
		c.check(path+"."+name, t.Elem(), value)
	}
}

func (c *agreement) object(path string, t reflect.Type, node map[string]any) {
	if node["additionalProperties"] != false {
		c.differ(path, "not closed")
	}
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	seen := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || f.Tag.Get("json") == "-" { // no part of the document
			continue
		}
		c.fields++
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		seen[name] = true
		p, ok := properties[name].(map[string]any)
		if !ok {
			c.differ(path+"."+name, "not in the schema")
			continue
		}
		if slices.Contains(required, any(name)) == (strings.Contains(rest, "omitempty") || strings.Contains(rest, "omitzero")) {
			c.differ(path+"."+name, "required and omitempty must exclude each other")
		}
		c.check(path+"."+name, f.Type, p)
	}
	for name := range properties {
		if !seen[name] {
			c.differ(path+"."+name, "not in the struct")
		}
	}
}

// TestActionsAreTheEnum compares the only enum that Go has as a list with the
// schema.
func TestActionsAreTheEnum(t *testing.T) {
	root, _ := generic(t, perm.InputSchema()).(map[string]any)
	access, _ := root["properties"].(map[string]any)["access"].(map[string]any)
	action, _ := access["properties"].(map[string]any)["action"].(map[string]any)
	want := make([]any, 0, 8)
	for _, a := range perm.Actions() {
		want = append(want, string(a))
	}
	require.Equal(t, want, action["enum"])
}

package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
)

// maker draws schemas, and values that are likely to fit one.
type maker struct{ *rand.Rand }

func (m maker) flip() bool { return m.IntN(2) == 0 }

func (m maker) schema(depth int) map[string]any {
	n := m.IntN(9)
	if depth == 0 {
		n = m.IntN(5)
	}
	switch n {
	case 0:
		return map[string]any{"type": "string", "minLength": m.IntN(2), "description": "text"}
	case 1:
		return map[string]any{"type": "integer", "minimum": -1, "maximum": 2}
	case 2:
		return map[string]any{"type": "string", "enum": []any{"x", "y"}}
	case 3:
		return map[string]any{"const": m.scalar()}
	case 4:
		return map[string]any{"type": []any{"string", "null"}}
	case 5:
		return map[string]any{"type": "array", "items": m.schema(depth - 1), "maxItems": 2}
	case 6:
		return map[string]any{[]string{"anyOf", "oneOf", "allOf"}[m.IntN(3)]: []any{m.schema(depth - 1), m.schema(depth - 1)}}
	case 7:
		return map[string]any{"$ref": "#/$defs/d", "description": "of d"}
	default:
		return m.object(depth)
	}
}

func (m maker) object(depth int) map[string]any {
	properties, required := map[string]any{}, []any{}
	for i := range m.IntN(4) {
		name := fmt.Sprintf("p%d", i)
		properties[name] = m.schema(depth - 1)
		if m.flip() {
			required = append(required, name)
		}
	}
	out := map[string]any{"type": "object", "properties": properties, "required": required}
	if m.flip() {
		out["additionalProperties"] = false
	}
	return out
}

// document is a whole schema; a definition does not refer on, so that it ends.
func (m maker) document() map[string]any {
	root := m.schema(3)
	if m.flip() {
		root = m.object(3)
	}
	root["$defs"] = map[string]any{"d": m.schema(0)}
	return root
}

func (m maker) scalar() any {
	return []any{"", "x", "y", json.Number("0"), json.Number("1"), true, nil, json.Number("2.50")}[m.IntN(8)]
}

func members(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// value is one that a schema may accept.
func (m maker) value(root, s map[string]any) any {
	if ref, ok := s["$ref"].(string); ok && ref != "" {
		return m.value(root, members(members(root["$defs"])["d"]))
	}
	for _, word := range listOfSchemas {
		if list, ok := s[word].([]any); ok {
			return m.value(root, members(list[m.IntN(len(list))]))
		}
	}
	if c, ok := s["const"]; ok {
		return c
	}
	switch s["type"] {
	case "array":
		list := []any{}
		for range m.IntN(3) {
			list = append(list, m.value(root, members(s["items"])))
		}
		return list
	case "object":
		out := map[string]any{}
		required := fmt.Sprint(s["required"])
		properties := members(s["properties"])
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if m.flip() || len(required) > 2 && m.IntN(4) > 0 {
				out[name] = m.value(root, members(properties[name]))
			}
		}
		return out
	}
	return m.scalar()
}

// TestNoFormatRefusesWhatTheToolTakes checks that the schema for each format
// accepts each input that the tool accepts. The adapter returns the input
// unchanged.
func TestNoFormatRefusesWhatTheToolTakes(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(1, 2))} //nolint:gosec // a test draws its cases from a fixed seed
	tried, strict := 0, 0
	cases := 100
	if os.Getenv("REMIT_LONG") != "" {
		cases = 10_000
	}
	for range cases {
		doc := m.document()
		text, err := canon.Marshal(doc)
		require.NoError(t, err)
		own, err := schema.Compile(text)
		require.NoError(t, err, string(text))
		for _, f := range Formats() {
			plain, err := New(f, made(t, "x", "", string(text)))
			require.NoError(t, err, string(text))
			for _, a := range []Adapter{plain, plain.Strict()} {
				o := a.tools[0]
				written, err := schema.Compile(o.schema)
				require.NoError(t, err, "%s: %s\n%s", f, text, o.schema)
				for range 6 {
					v, err := canon.From(m.value(doc, doc))
					require.NoError(t, err)
					if own.Validate(v) != nil || o.strict && !declared(doc, v) {
						continue
					}
					wire := carry(t, o, v)
					if o.strict && formed.Match(text) && written.Validate(wire) != nil {
						continue // declared does not look into forms
					}
					require.NoError(t, written.Validate(wire), "%s: %s\nis told as %s\nvalue %s", f, text, o.schema, wire.Canonical())
					in, why, _ := o.own(wire.Canonical(), wire)
					require.Empty(t, why)
					require.Equal(t, string(v.Canonical()), string(in), "%s: %s", f, text)
					tried++
					if o.strict {
						strict++
					}
				}
			}
		}
	}
	require.Greater(t, tried, 10*cases)
	require.Greater(t, strict, cases)
	t.Logf("%d values, %d of them in strict mode", tried, strict)
}

// formed are schemas in which members lie elsewhere than right below.
var formed = regexp.MustCompile(`"(anyOf|oneOf|allOf|\$ref)"`)

// carry is what a model writes to say a value.
func carry(t *testing.T, o wireTool, v canon.Value) canon.Value {
	t.Helper()
	plain := v.Any()
	if o.nulls {
		plain = filled(o.root, plain)
	}
	if o.wrapped {
		plain = map[string]any{member: plain}
	}
	wire, err := canon.From(plain)
	require.NoError(t, err)
	return wire
}

// filled says null for each member that is absent.
func filled(s, v any) any {
	m := members(s)
	switch v := v.(type) {
	case map[string]any:
		for name, p := range members(m["properties"]) {
			value, there := v[name]
			if there {
				v[name] = filled(p, value)
			} else if nullable(p) == notNull {
				v[name] = nil
			}
		}
	case []any:
		for i := range v {
			v[i] = filled(m["items"], v[i])
		}
	}
	return v
}

// declared reports whether strict mode can say a value at all: it has no members of its own, and none that the tool lets be
// null is absent, which strict mode has no way to say.
func declared(s any, v canon.Value) bool {
	m := members(s)
	if m == nil {
		return true
	}
	properties := members(m["properties"])
	for name, p := range properties {
		inner, there := v.Get(name)
		if v.Kind() == canon.Object && (!there && nullable(p) != notNull || there && !declared(p, inner)) {
			return false
		}
	}
	for name := range v.Members() {
		if properties[name] == nil {
			return false
		}
	}
	for _, e := range v.Elements() {
		if !declared(m["items"], e) {
			return false
		}
	}
	return true
}

package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// someNames returns few names, like the functions below few texts and numbers
// near every bound. So independent random schemas and values often fit.
func someNames() []string { return []string{"a", "b", "A", "kind"} }

func scalar() *rapid.Generator[any] {
	return rapid.SampledFrom([]any{
		nil, true, false, "", "a", "A", "ab", "é", "éé", "abc", 0, 1, 2, 3, -1, json.Number("1.0"), json.Number("1e0"), json.Number("0.5"),
		json.Number("1e40"), json.Number("-1e41"), json.Number("999999999999999999"), json.Number("1000000000000000000"), json.Number("9223372036854775808"),
	})
}

func drawValue(t *rapid.T, depth int) any {
	switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
	case depth > 0 && kind == 0:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	case depth > 0 && kind <= 3:
		m := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			m[rapid.SampledFrom(someNames()).Draw(t, "name")] = drawValue(t, depth-1)
		}
		return m
	default:
		return scalar().Draw(t, "scalar")
	}
}

func drawSchema(t *rapid.T, depth int) map[string]any {
	s := map[string]any{}
	maybe := func(word string, draw func() any) {
		if rapid.IntRange(0, 3).Draw(t, word) == 0 {
			s[word] = draw()
		}
	}
	small := func() any { return rapid.IntRange(0, 3).Draw(t, "small") }
	bound := func() any {
		return rapid.SampledFrom([]any{0, 1, 2, json.Number("0.5"), json.Number("1.0"), json.Number("999999999999999999")}).Draw(t, "bound")
	}
	if rapid.IntRange(0, 3).Draw(t, "typed") > 0 {
		types := []string{"string", "number", "integer", "boolean", "null", "array", "object", "object"}
		s["type"] = rapid.SampledFrom(types).Draw(t, "type")
		if rapid.Bool().Draw(t, "two types") && s["type"] != "string" {
			s["type"] = []any{s["type"], "string"}
		}
	}
	maybe("minLength", small)
	maybe("maxLength", small)
	maybe("minItems", small)
	maybe("maxItems", small)
	maybe("minimum", bound)
	maybe("maximum", bound)
	maybe("pattern", func() any { return rapid.SampledFrom([]string{"^a", "b$", "^.$"}).Draw(t, "pattern") })
	maybe("enum", func() any { return []any{"a", "ab", scalar().Draw(t, "in enum")} })
	maybe("const", func() any { return scalar().Draw(t, "const") })
	maybe("additionalProperties", func() any { return rapid.Bool().Draw(t, "additional") })
	maybe("title", func() any { return "says nothing" })
	if depth > 0 {
		properties := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "properties") {
			properties[rapid.SampledFrom(someNames()).Draw(t, "property")] = drawSchema(t, depth-1)
		}
		s["properties"] = properties
		maybe("required", func() any { return slices.AppendSeq([]string{}, maps.Keys(properties)) })
		maybe("items", func() any { return drawSchema(t, depth-1) })
	}
	if rapid.IntRange(0, 19).Draw(t, "unknown word") == 0 {
		word := rapid.SampledFrom([]string{"not", "exclusiveMinimum", "uniqueItems", "minProperties", "propertyNames", "anyOf", "multipleOf", "contains"}).Draw(t, "word")
		s[word] = map[string]any{
			"not": map[string]any{"type": "string"}, "exclusiveMinimum": 1, "uniqueItems": true, "minProperties": 1, "multipleOf": 2,
			"propertyNames": map[string]any{"pattern": "^a$"}, "anyOf": []any{map[string]any{"type": "null"}}, "contains": map[string]any{"const": 1},
		}[word]
	}
	return s
}

// TestFastPathMatchesTheValidator compares the fast path with the whole
// validator on random schemas and values. TestFastPathSupportsUsualSchemas shows
// that it accepts values.
func TestFastPathMatchesTheValidator(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc, err := canon.Marshal(drawSchema(t, 2))
		require.NoError(t, err)
		s, err := schema.Compile(doc)
		require.NoError(t, err, string(doc))
		slow := schema.Slow(s)
		for range 40 {
			v, err := canon.From(drawValue(t, 2))
			require.NoError(t, err)
			_, yes := schema.Quick(s, v)
			want := slow.Validate(v)
			if yes {
				require.NoError(t, want, "%s for %s", v.Canonical(), doc)
			}
			got := s.Validate(v)
			require.Equal(t, want == nil, got == nil, "%s for %s", v.Canonical(), doc)
			if want != nil {
				require.EqualError(t, got, want.Error())
			}
		}
	})
}

func TestFastPathSupportsUsualSchemas(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"path":{"type":"string","minLength":1,"pattern":"^[a-z]+$"},"n":{"type":"integer","minimum":1},
		"kind":{"enum":["x","y"]},"list":{"type":"array","items":{"type":"string"},"maxItems":2}},"required":["path"],"additionalProperties":false}`)
	for in, want := range map[string]bool{
		`{"path":"a"}`: true, `{"path":"a","n":1,"kind":"x","list":["q"]}`: true, `{"path":"a","n":1.0}`: true,
		`{"path":""}`: false, `{"path":"A"}`: false, `{}`: false, `{"path":"a","n":0}`: false, `{"path":"a","n":1.5}`: false, `{"path":"a","z":1}`: false,
		`{"path":"a","kind":"z"}`: false, `{"path":"a","list":["a","b","c"]}`: false, `{"path":"a","list":[1]}`: false, `{"path":"a","Path":"a"}`: false, `[]`: false,
	} {
		known, yes := schema.Quick(s, value(t, in))
		require.True(t, known)
		require.Equal(t, want, yes, in)
		require.Equal(t, want, s.Validate(value(t, in)) == nil, in)
	}
}

func TestFastPathRejects(t *testing.T) {
	for _, doc := range []string{
		`{"not":{"type":"string"}}`, `{"anyOf":[{"type":"string"}]}`, `{"$ref":"#/$defs/a","$defs":{"a":{}}}`, `{"minimum":0.5}`,
		`{"exclusiveMinimum":1}`, `{"multipleOf":2}`, `{"uniqueItems":true}`, `{"patternProperties":{"a":{}}}`, `{"dependentRequired":{"a":["b"]}}`,
		`{"minProperties":1}`, `{"propertyNames":{"pattern":"a"}}`, `{"unevaluatedProperties":false}`, `{"prefixItems":[{}]}`, `{"contains":{}}`,
		`{"properties":{"a":{"not":{}}}}`, `{"items":{"not":{}}}`, `{"if":{},"then":{}}`, `{"additionalProperties":{"type":"string"},"minProperties":1}`, `false`,
	} {
		known, yes := schema.Quick(compile(t, doc), value(t, `{}`))
		require.False(t, known, doc)
		require.False(t, yes, doc)
	}
	s := compile(t, `{"type":"array","items":{"type":"integer"}}`)
	many := make([]int, 20_000)
	v, err := canon.From(many)
	require.NoError(t, err)
	_, yes := schema.Quick(s, v)
	require.False(t, yes, "a large value is counted by the validator")
	require.NoError(t, s.Validate(v), fmt.Sprint(len(many), " elements are not too many"))
}

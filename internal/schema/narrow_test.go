package schema_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
)

func TestNarrower(t *testing.T) {
	object := func(properties string) string {
		return `{"type":"object","properties":{` + properties + `},"required":["a"],"additionalProperties":false}`
	}
	for _, tt := range []struct{ name, was, now, refused string }{
		{"the same", `{"type":"string"}`, `{"type":"string"}`, ""},
		{"words", `{"type":"string","title":"a","examples":["b"]}`, `{"type":"string","description":"c"}`, ""},
		{"bounds", `{"minimum":1,"maximum":9,"maxLength":9}`, `{"minimum":2,"maximum":8.5,"maxLength":1,"minItems":1}`, ""},
		{"a lower minimum", `{"minimum":1}`, `{"minimum":0.999}`, "it may only become higher"},
		{"a higher maximum", `{"maxLength":1}`, `{"maxLength":2}`, "it may only become lower"},
		{"a bound that is gone", `{"maxLength":1}`, `{}`, `"maxLength" is gone`},
		{"multiples", `{"multipleOf":0.5}`, `{"multipleOf":1.5}`, ""},
		{"no multiple", `{"multipleOf":0.5}`, `{"multipleOf":0.75}`, "a multiple"},
		{"fewer values", `{"enum":["a","b",1]}`, `{"enum":["b",1.0]}`, ""},
		{"another value", `{"enum":["a","b"]}`, `{"enum":["a","c"]}`, "a value that it did not have"},
		{"no value", `{"enum":["a","b"]}`, `{"enum":[]}`, "nothing would be valid"},
		{"an enum that is new", `{"type":"string"}`, `{"type":"string","enum":["a"]}`, ""},
		{"fewer types", `{"type":["string","number"]}`, `{"type":"integer"}`, ""},
		{"another type", `{"type":["string","integer"]}`, `{"type":["string","number"]}`, "a type that it did not have"},
		{"a pattern that is new", `{}`, `{"pattern":"^a"}`, ""},
		{"another pattern", `{"pattern":"^a"}`, `{"pattern":"^ab"}`, "not be changed"},
		{"unique", `{"uniqueItems":false}`, `{"uniqueItems":true}`, ""},
		{"not unique", `{"uniqueItems":true}`, `{"uniqueItems":false}`, "may only become true"},
		{"required", object(`"a":{},"b":{}`), `{"type":"object","properties":{"a":{},"b":{}},"required":["a","b"],"additionalProperties":false}`, ""},
		{"no longer required", object(`"a":{}`), `{"type":"object","properties":{"a":{}},"required":[],"additionalProperties":false}`, "no longer is"},
		{"an optional member that is gone", object(`"a":{},"b":{}`), object(`"a":{}`), ""},
		{"a required member that is gone", object(`"a":{},"b":{}`), object(`"b":{}`), "it is gone, and required"},
		{"one with a default that is gone", object(`"a":{},"b":{"default":1}`), object(`"a":{}`), "counts on its default"},
		{"one of an open object that is gone", `{"properties":{"a":{"type":"string"}}}`, `{"properties":{}}`, "anything would do"},
		{"one that is new", object(`"a":{}`), object(`"a":{},"b":{}`), "a member that there was not"},
		{"one that is new in an open object", `{"properties":{}}`, `{"properties":{"b":{"type":"string"}}}`, ""},
		{"one that is new beside patterns", `{"patternProperties":{"b":{"type":"integer"}}}`, `{"patternProperties":{"b":{"type":"integer"}},"properties":{"b":{}}}`, "a member that there was not"},
		{"one that is new where others were bounded", `{"properties":{},"additionalProperties":{"type":"string"}}`, `{"properties":{"b":{}},"additionalProperties":{"type":"string"}}`, "a member that there was not"},
		{"closed", `{"properties":{"a":{}}}`, `{"properties":{"a":{}},"additionalProperties":false}`, ""},
		{"opened", object(`"a":{}`), `{"type":"object","properties":{"a":{}},"required":["a"]}`, `"additionalProperties" is gone`},
		{"inside", object(`"a":{"properties":{"c":{"maxLength":3}}}`), object(`"a":{"properties":{"c":{"maxLength":4}}}`), "/properties/a/properties/c/maxLength"},
		{"items", `{"items":{"maximum":5}}`, `{"items":{"maximum":4}}`, ""},
		{"items that are new", `{}`, `{"items":{"maximum":4}}`, ""},
		{"patterns of members", `{"patternProperties":{"a":{"maxLength":3}}}`, `{"patternProperties":{"a":{"maxLength":2}}}`, "cannot be shown"},
		{"one more condition", `{"allOf":[{"maxLength":3}]}`, `{"allOf":[{"maxLength":2},{"minLength":1}]}`, ""},
		{"one condition less", `{"allOf":[{"maxLength":3},{}]}`, `{"allOf":[{"maxLength":2}]}`, "a condition is gone"},
		{"fewer alternatives", `{"anyOf":[{"maxLength":3},{"type":"null"}]}`, `{"anyOf":[{"type":"null"}]}`, ""},
		{"another alternative", `{"anyOf":[{"maxLength":3}]}`, `{"anyOf":[{"maxLength":3},{"type":"null"}]}`, "/anyOf/1"},
		{"one of, changed", `{"oneOf":[{"maxLength":3},{"minLength":2}]}`, `{"oneOf":[{"maxLength":1},{"minLength":2}]}`, "not be changed"},
		{"under not", `{"not":{"maxLength":3}}`, `{"not":{"maxLength":2}}`, "not be changed"},
		{"definitions", `{"$ref":"#/$defs/a","$defs":{"a":{"maxLength":3}}}`, `{"$ref":"#/$defs/a","$defs":{"a":{"maxLength":2}}}`, "cannot be shown"},
		{"beside definitions", `{"$ref":"#/$defs/a","$defs":{"a":{"maxLength":3}}}`, `{"$ref":"#/$defs/a","$defs":{"a":{"maxLength":3}},"minLength":1}`, ""},
		{"what is referred to from elsewhere", `{"properties":{"a":{"maxLength":3},"b":{"not":{"$ref":"#/properties/a"}}}}`, `{"properties":{"a":{"maxLength":2},"b":{"not":{"$ref":"#/properties/a"}}}}`, `the schema has "$ref"`},
		{"the same behind a member named properties", `{"properties":{"properties":{"not":{"$ref":"#/properties/a"}},"a":{"maxLength":3}}}`, `{"properties":{"properties":{"not":{"$ref":"#/properties/a"}},"a":{"maxLength":2}}}`, `the schema has "$ref"`},
		{"words beside it", `{"properties":{"a":{},"b":{"$ref":"#/properties/a"}}}`, `{"properties":{"a":{"description":"x"},"b":{"$ref":"#/properties/a"}}}`, ""},
		{"beside unevaluated members", `{"unevaluatedProperties":false}`, `{"unevaluatedProperties":false,"properties":{"a":{}}}`, "a member that there was not"},
		{"a default", `{"type":"integer"}`, `{"type":"integer","default":3}`, ""},
		{"a default that is refused", `{"type":"integer"}`, `{"type":"integer","maximum":2,"default":3}`, "refuses it"},
		{"a default that is gone", `{"default":3}`, `{}`, `"default" is gone`},
		{"nothing", `{"type":"integer"}`, `false`, ""},
		{"everything", `{"type":"integer"}`, `true`, "cannot be shown"},
		{"of everything", `true`, `{"type":"integer"}`, ""},
		{"another draft", `{}`, `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, "cannot be shown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := schema.CheckNarrower(mustParse(t, tt.now), mustParse(t, tt.was))
			if tt.refused == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			require.ErrorContains(t, err, tt.refused)
		})
	}
}

func mustParse(t testing.TB, text string) canon.Value {
	t.Helper()
	v, err := canon.Parse([]byte(text), canon.DefaultLimits())
	require.NoError(t, err, text)
	return v
}

// randomSchemas makes random schemas and values with few names, so that they often
// fit.
type randomSchemas struct{ *rand.Rand }

func (c randomSchemas) of(options ...string) string { return options[c.IntN(len(options))] }

func (c randomSchemas) schema(depth int) map[string]any {
	out := map[string]any{}
	for range c.IntN(4) {
		c.keyword(out, depth)
	}
	return out
}

func (c randomSchemas) keyword(s map[string]any, depth int) {
	sub := func() any {
		if depth == 0 || c.IntN(8) == 0 {
			return c.IntN(3) > 0
		}
		return c.schema(depth - 1)
	}
	subs := func() any {
		out := []any{sub()}
		for range c.IntN(2) {
			out = append(out, sub())
		}
		return out
	}
	switch k := c.of("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "multipleOf", "enum", "type", "required", "properties",
		"additionalProperties", "items", "allOf", "anyOf", "oneOf", "not", "const", "uniqueItems", "default", "patternProperties", "unevaluatedProperties",
		"$ref", "prefixItems", "exclusiveMinimum", "description", "properties", "if", "then"); k {
	case "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "minItems", "maxItems":
		s[k] = c.IntN(4)
	case "multipleOf":
		s[k] = 1 + c.IntN(4)
	case "enum":
		s[k] = []any{c.value(1), c.value(0)}
	case "const", "default":
		s[k] = c.value(1)
	case "type":
		s[k] = []any{c.of("integer", "string", "object"), c.of("number", "array", "boolean")}
	case "required":
		s[k] = []any{c.of("a", "b")}
	case "properties":
		s[k] = map[string]any{c.of("a", "b"): sub(), c.of("a", "b"): sub()}
	case "patternProperties":
		s[k] = map[string]any{"b": sub()}
	case "additionalProperties", "unevaluatedProperties", "items", "not", "if", "then":
		s[k] = sub()
	case "allOf", "anyOf", "oneOf", "prefixItems":
		s[k] = subs()
	case "uniqueItems":
		s[k] = c.IntN(2) == 0
	case "$ref":
		if c.IntN(3) == 0 {
			s[k] = c.of("#/properties/a", "#/$defs/d")
		}
	default:
		s[k] = c.of("x", "y")
	}
}

// edited returns a copy of a schema that differs in one place.
func (c randomSchemas) edited(v any, depth int) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			out[name] = member
		}
		names := make([]string, 0, len(v))
		for _, name := range []string{"a", "b", "properties", "items", "allOf", "anyOf", "additionalProperties", "oneOf", "not", "minimum", "maximum", "maxLength", "enum", "type", "required", "$defs", "d", "patternProperties", "maxItems"} {
			if _, there := v[name]; there {
				names = append(names, name)
			}
		}
		switch {
		case len(names) > 0 && c.IntN(4) > 0:
			name := c.of(names...)
			out[name] = c.edited(v[name], depth)
		case len(names) > 0 && c.IntN(3) == 0:
			delete(out, c.of(names...))
		default:
			c.keyword(out, depth)
		}
		return out
	case []any:
		out := append([]any{}, v...)
		if len(out) > 1 && c.IntN(3) == 0 {
			return out[1:]
		}
		if len(out) > 0 {
			i := c.IntN(len(out))
			out[i] = c.edited(out[i], depth)
		}
		return out
	case int:
		return max(v+c.IntN(3)-1, 1)
	}
	return v
}

func (c randomSchemas) value(depth int) any {
	switch k := c.IntN(6); {
	case k == 0:
		return c.IntN(5)
	case k == 1:
		return c.of("", "a", "bb", "aaaa")
	case k == 2:
		return c.IntN(2) == 0
	case depth == 0:
		return nil
	case k == 3:
		list := []any{}
		for range c.IntN(4) {
			list = append(list, c.value(depth-1))
		}
		return list
	}
	out := map[string]any{}
	for range c.IntN(4) {
		out[c.of("a", "b", "c")] = c.value(depth - 1)
	}
	return out
}

// TestNarrowerIsSound checks that a schema that counts as narrower accepts no
// value that the other rejects. The pairs are schemas and edits of them, most
// of which are wider or neither.
func TestNarrowerIsSound(t *testing.T) {
	c := randomSchemas{rand.New(rand.NewPCG(7, 11))}
	attempts := 600
	if os.Getenv("REMIT_LONG") != "" {
		attempts = 100_000
	}
	pairs, proven, accepted := 0, 0, 0
	for range attempts {
		was := c.schema(3)
		if c.IntN(2) == 0 {
			was["$defs"] = map[string]any{"d": c.schema(1)}
		}
		now := c.edited(was, 1)
		for range c.IntN(2) {
			now = c.edited(now, 1)
		}
		old, err := canon.From(was)
		require.NoError(t, err)
		fresh, err := canon.From(now)
		require.NoError(t, err)
		if pairs++; schema.CheckNarrower(fresh, old) != nil {
			continue
		}
		before, err := schema.Compile(old.Canonical())
		if err != nil {
			continue
		}
		after, err := schema.Compile(fresh.Canonical())
		if err != nil {
			continue
		}
		proven++
		for range 40 {
			v, err := canon.From(c.value(3))
			require.NoError(t, err)
			if after.Validate(v) == nil {
				accepted++
				require.NoError(t, before.Validate(v), "was %s, now %s, value %s", old.Canonical(), fresh.Canonical(), v.Canonical())
			}
		}
	}
	require.Greater(t, proven, pairs/20)
	require.Greater(t, accepted, proven)
	t.Logf("proved: schema.Narrower: %d pairs of schemas, %d of them narrower, %d values, 0 violations", pairs, proven, accepted)
}

package schema_test

import (
	"strings"
	"testing"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/stretchr/testify/require"
)

// TestComplete checks that a missing member gets its default if the schema
// declares it for every value.
func TestComplete(t *testing.T) {
	for _, tt := range []struct{ name, schema, in, want string }{
		{"nothing to fill in", `{"properties":{"a":{"type":"string"}}}`, `{}`, `{}`},
		{"left out", `{"properties":{"a":{"type":"string","default":"x"}}}`, `{}`, `{"a":"x"}`},
		{"there", `{"properties":{"a":{"type":"string","default":"x"}}}`, `{"a":"y"}`, `{"a":"y"}`},
		{"there, and wrong", `{"properties":{"a":{"type":"string","default":"x"}}}`, `{"a":null}`, `{"a":null}`},
		{"required", `{"properties":{"a":{"type":"integer","default":0}},"required":["a"]}`, `{}`, `{"a":0}`},
		{"false and null", `{"properties":{"a":{"default":false},"b":{"default":null}}}`, `{}`, `{"a":false,"b":null}`},
		{"a member's member", `{"properties":{"o":{"properties":{"a":{"default":1}}}}}`, `{"o":{}}`, `{"o":{"a":1}}`},
		{"no member of its own", `{"properties":{"o":{"properties":{"a":{"default":1}}}}}`, `{}`, `{}`},
		{"elements", `{"items":{"properties":{"a":{"default":1}}}}`, `[{},{"a":2},3]`, `[{"a":1},{"a":2},3]`},
		{"first elements", `{"prefixItems":[{"properties":{"a":{"default":1}}}],"items":{"properties":{"a":{"default":2}}}}`, `[{},{}]`, `[{"a":1},{"a":2}]`},
		{"by reference", `{"$ref":"#/$defs/o","$defs":{"o":{"properties":{"a":{"default":1}}}}}`, `{}`, `{"a":1}`},
		{"included", `{"allOf":[{"properties":{"a":{"default":1}}},{"properties":{"b":{"default":2}}}]}`, `{}`, `{"a":1,"b":2}`},
		{"an alternative", `{"anyOf":[{"properties":{"a":{"default":1}}},{"properties":{"b":{"default":2}}}]}`, `{}`, `{}`},
		{"a condition", `{"if":{"required":["x"]},"then":{"properties":{"a":{"default":1}}}}`, `{"x":1}`, `{"x":1}`},
		{"in a default", `{"properties":{"o":{"default":{},"properties":{"a":{"default":1}}}}}`, `{}`, `{"o":{}}`},
		{"one that its schema refuses", `{"properties":{"a":{"type":"string","default":null},"b":{"default":1}}}`, `{}`, `{"b":1}`},
		{"without end", `{"$defs":{"o":{"properties":{"o":{"$ref":"#/$defs/o","default":{}}}}},"$ref":"#/$defs/o"}`, `{"o":{}}`, `{"o":{"o":{}}}`},
		{"of another type", `{"properties":{"a":{"default":1}}}`, `"text"`, `"text"`},
		{"numbers stay exact", `{"properties":{"a":{"default":12345678901234567890.5}}}`, `{"b":98765432109876543210.25}`, `{"a":12345678901234567890.5,"b":98765432109876543210.25}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := compile(t, tt.schema)
			in := value(t, tt.in)
			got, err := s.Complete(in)
			require.NoError(t, err)
			require.Equal(t, string(value(t, tt.want).Canonical()), string(got.Canonical()))
			require.Equal(t, string(value(t, tt.in).Canonical()), string(in.Canonical()), "the input itself stays")
			again, err := s.Complete(got)
			require.NoError(t, err)
			if tt.name != "in a default" && tt.name != "without end" {
				require.Equal(t, string(got.Canonical()), string(again.Canonical()))
			}
		})
	}
	got, err := (*schema.Schema)(nil).Complete(value(t, `{}`))
	require.NoError(t, err)
	require.Equal(t, canon.Object, got.Kind())
}

// TestCompleteIsBounded checks that a large value under many included schemas
// is rejected instead of processed forever.
func TestCompleteIsBounded(t *testing.T) {
	one := `{"items":{"properties":{"a":{"default":1}}}}`
	s := compile(t, `{"allOf":[`+strings.TrimSuffix(strings.Repeat(one+",", 900), ",")+`]}`)
	_, err := s.Complete(value(t, `[`+strings.TrimSuffix(strings.Repeat("1,", 2000), ",")+`]`))
	require.ErrorIs(t, err, schema.ErrInvalid)
	require.ErrorContains(t, err, "too large")
}

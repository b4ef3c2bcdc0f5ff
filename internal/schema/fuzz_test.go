package schema_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
)

// FuzzSchema checks that the fast path accepts only what the whole validator
// does, that a schema keeps its meaning in its canonical form, and that every
// rejection is ErrInvalid.
func FuzzSchema(f *testing.F) {
	for _, s := range [][2]string{
		{`{"type":"object","properties":{"path":{"type":"string","minLength":1}},"required":["path"],"additionalProperties":false}`, `{"path":"a"}`},
		{`{"type":"integer","minimum":0,"maximum":10}`, `1.0`},
		{`{"enum":["a","b"]}`, `"a"`},
		{`{"const":"é"}`, `"e\u0301"`},
		{`{"type":"array","items":{"type":"number"},"minItems":1,"maxItems":2}`, `[1,2,3]`},
		{`{"type":"string","pattern":"^a+$"}`, `"aab"`},
		{`{"anyOf":[{"type":"null"},{"type":"boolean"}]}`, `null`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, `1`},
		{`{"$ref":"file:///etc/passwd"}`, `1`},
		{`{"type":["string","null"],"maxLength":2}`, `"ééé"`},
		{`true`, `1`},
		{`{"minimum":1e400}`, `1e399`},
		{`{"properties":{"a":{"$ref":"#"}}}`, `{"a":{"a":{}}}`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, doc, value []byte) {
		if len(doc) > 2048 || len(value) > 2048 {
			t.Skip()
		}
		s, err := schema.Compile(doc)
		if err != nil {
			require.ErrorIs(t, err, schema.ErrSchema)
			require.Nil(t, s)
			return
		}
		again, err := schema.Compile(s.Canonical())
		require.NoError(t, err)
		require.Equal(t, string(s.Canonical()), string(again.Canonical()))
		require.Equal(t, s.Closed(), again.Closed())
		v, err := canon.Parse(value, canon.DefaultLimits())
		if err != nil {
			return
		}
		said := s.Validate(v)
		slow := schema.Slow(s).Validate(v)
		require.Equal(t, slow == nil, said == nil, "quick: %v, slow: %v", said, slow)
		if said != nil {
			require.ErrorIs(t, said, schema.ErrInvalid)
			require.Equal(t, slow.Error(), said.Error())
		}
		require.Equal(t, said == nil, again.Validate(v) == nil)
	})
}

package schema_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/stretchr/testify/require"
)

func compile(t testing.TB, doc string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile([]byte(doc))
	require.NoError(t, err)
	return s
}

func value(t testing.TB, doc string) canon.Value {
	t.Helper()
	v, err := canon.Parse([]byte(doc), canon.DefaultLimits())
	require.NoError(t, err)
	return v
}

const edit = `{
  "type": "object", "additionalProperties": false, "required": ["path", "mode"],
  "properties": {
    "path": {"type": "string", "minLength": 1, "maxLength": 10, "pattern": "^[a-z./]+$"},
    "mode": {"enum": ["read", "write", 3, null]},
    "count": {"type": "integer", "minimum": 1, "exclusiveMaximum": 10, "multipleOf": 0.5},
    "ratio": {"type": ["number", "null"], "exclusiveMinimum": 0.1, "maximum": 0.30000000000000001},
    "edits": {"type": "array", "minItems": 1, "maxItems": 2, "uniqueItems": true, "items": {"$ref": "#/$defs/edit"}},
    "kind": {"const": "file"},
    "target": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
    "what": {"oneOf": [
      {"type": "object", "properties": {"op": {"const": "add"}, "text": {"type": "string"}}, "required": ["op", "text"]},
      {"type": "object", "properties": {"op": {"const": "cut"}, "size": {"type": "integer"}}, "required": ["op", "size"]}]},
    "headers": {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}, "additionalProperties": {"type": "string"}, "minProperties": 1, "maxProperties": 2},
    "never": false,
    "not": {"not": {"type": "string"}},
    "some": {"type": "array", "contains": {"type": "string"}},
    "more": {"type": "array", "contains": {"type": "string"}, "minContains": 2, "maxContains": 3}
  },
  "dependentRequired": {"count": ["ratio"]},
  "$defs": {"edit": {"type": "object", "properties": {"text": {"type": "string"}, "line": {"type": "integer"}}, "required": ["text"], "additionalProperties": false}}
}`

// with completes the members that edit requires.
func with(members string) string { return `{"path":"a","mode":"read",` + members + `}` }

func TestValidateTexts(t *testing.T) {
	s := compile(t, edit)
	for name, c := range map[string]struct{ in, err string }{
		"fine":          {`{"path":"a","mode":null}`, ""},
		"fine, all":     {with(`"count":2.0,"ratio":0.2,"edits":[{"text":"x","line":1e2}],"kind":"file","target":null,"what":{"op":"cut","size":1},"headers":{"a":"b"},"some":[1,"a"],"more":["a","b"]`), ""},
		"not an object": {`[1]`, `the input is an array, want an object`},
		"empty":         {`{}`, `argument "mode" is missing; argument "path" is missing, want a string`},
		"wrong type":    {`{"path":12345,"mode":"read"}`, `argument "path" is a number, want a string`},
		"null":          {`{"path":null,"mode":"read"}`, `argument "path" is null, want a string`},
		"unknown, near": {
			with(`"cuont":1`),
			`argument "cuont" is not known, did you mean "count"? known: "count", "edits", "headers", "kind", "mode", "more", "never", "not", "path", "ratio", "some", "target", "what"`,
		},
		"unknown, far": {
			with(`"zzz":1`),
			`argument "zzz" is not known, known: "count", "edits", "headers", "kind", "mode", "more", "never", "not", "path", "ratio", "some", "target", "what"`,
		},
		"case":           {`{"Path":"a","path":"b","mode":"read"}`, `argument "Path" differs only in case from "path", names are exact`},
		"case alone":     {`{"PATH":"a","mode":"read"}`, `argument "PATH" differs only in case from "path", names are exact; argument "path" is missing, want a string`},
		"case, inside":   {with(`"edits":[{"text":"x","Line":1}]`), `argument "edits[0].Line" differs only in case from "line", names are exact`},
		"case, folded":   {`{"path":"a","mode":"read","\u212aind":"file"}`, `argument "` + "\u212a" + `ind" differs only in case from "kind", names are exact`},
		"enum":           {`{"path":"a","mode":"secret"}`, `argument "mode" has another value, want one of "read", "write", 3, null`},
		"const":          {with(`"kind":"secret"`), `argument "kind" has another value, want "file"`},
		"too short":      {`{"path":"","mode":"read"}`, `argument "path" does not match the pattern ^[a-z./]+$; argument "path" is too short, want at least 1 character`},
		"too long":       {`{"path":"aaaaaaaaaaa","mode":"read"}`, `argument "path" is too long, want at most 10 characters`},
		"pattern":        {`{"path":"SECRET","mode":"read"}`, `argument "path" does not match the pattern ^[a-z./]+$`},
		"fraction":       {with(`"count":1.5,"ratio":null`), `argument "count" is a number with a fraction, want an integer`},
		"too small":      {with(`"count":0,"ratio":null`), `argument "count" is too small, want at least 1`},
		"too large":      {with(`"count":10,"ratio":null`), `argument "count" is too large, want less than 10`},
		"depends":        {with(`"count":1`), `argument "ratio" is missing, want a number or null, required because "count" is there`},
		"two types":      {with(`"ratio":"secret"`), `argument "ratio" is a string, want a number or null`},
		"exact edge":     {with(`"ratio":0.30000000000000001`), ""},
		"exact, over":    {with(`"ratio":0.300000000000000010000001`), `argument "ratio" is too large, want at most 0.30000000000000001`},
		"exact, under":   {with(`"ratio":0.1`), `argument "ratio" is too small, want more than 0.1`},
		"nested":         {with(`"edits":[{"text":"x"},{"line":"secret"}]`), `argument "edits[1].line" is a string, want an integer; argument "edits[1].text" is missing, want a string`},
		"nested unknown": {with(`"edits":[{"text":"x","txet":"y"}]`), `argument "edits[0].txet" is not known, did you mean "text"? known: "line", "text"`},
		"few items":      {with(`"edits":[]`), `argument "edits" has too few items, want at least 1`},
		"many items":     {with(`"edits":[{"text":"a"},{"text":"b"},{"text":"c"}]`), `argument "edits" has too many items, want at most 2`},
		"equal items":    {with(`"edits":[{"text":"a","line":1},{"line":1.0,"text":"a"}]`), `argument "edits" has two equal items, want each once`},
		"alternatives":   {with(`"target":[1]`), `argument "target" is an array, want a string or an integer or null`},
		"fraction among": {with(`"target":1.5`), `argument "target" is a number with a fraction, want a string or an integer or null`},
		"forms":          {with(`"what":{"op":"secret"}`), `argument "what" fits none of 2 allowed forms: (1) argument "what.op" has another value, want "add", or (2) argument "what.op" has another value, want "cut"`},
		"no form":        {with(`"what":1`), `argument "what" is a number, want an object`},
		"name":           {with(`"headers":{"A b":"x"}`), `argument "headers.A b" has a name that is not allowed, it does not match the pattern ^[a-z]+$`},
		"names":          {with(`"headers":{"B":"x","A":"y"},"kind":"file"`), `argument "headers.A" has a name that is not allowed, it does not match the pattern ^[a-z]+$; argument "headers.B" has a name that is not allowed, it does not match the pattern ^[a-z]+$`},
		"value of a map": {with(`"headers":{"a":1}`), `argument "headers.a" is a number, want a string`},
		"few members":    {with(`"headers":{}`), `argument "headers" has too few members, want at least 1`},
		"many members":   {with(`"headers":{"a":"","b":"","c":""}`), `argument "headers" has too many members, want at most 2`},
		"false":          {with(`"never":"secret"`), `argument "never" is not allowed here`},
		"not":            {with(`"not":"secret"`), `argument "not" is what the schema rules out`},
		"contains":       {with(`"some":[1]`), `argument "some" has no item of the wanted form, want at least 1`},
		"few contained":  {with(`"more":["a"]`), `argument "more" has too few items of the wanted form, want at least 2`},
		"many contained": {with(`"more":["a","b","c","d"]`), `argument "more" has too many items of the wanted form, want at most 3`},
		"five at most": {
			`{"a1":1,"a2":1,"a3":1,"mode":"x","path":1,"count":"x","kind":1}`,
			`argument "a1" is not known, known: "count", "edits", "headers", "kind", "mode", "more", "never", "not", "path", "ratio", "some", "target", "what"; ` +
				`argument "a2" is not known, known: "count", "edits", "headers", "kind", "mode", "more", "never", "not", "path", "ratio", "some", "target", "what"; ` +
				`argument "a3" is not known, known: "count", "edits", "headers", "kind", "mode", "more", "never", "not", "path", "ratio", "some", "target", "what"; ` +
				`argument "count" is a string, want an integer; argument "kind" has another value, want "file"; and 3 more`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 { // the order of maps inside the validator must not show
				err := s.Validate(value(t, c.in))
				if c.err == "" {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, schema.ErrInvalid)
				require.EqualError(t, err, c.err)
				require.NotContains(t, strings.ToLower(err.Error()), "secret")
			}
		})
	}
}

func TestValidateAs(t *testing.T) {
	s := compile(t, `{"type":"object","required":["n"]}`)
	require.EqualError(t, s.ValidateAs("the output", "field", value(t, `{}`)), `field "n" is missing`)
	require.EqualError(t, s.ValidateAs("the output", "field", value(t, `1`)), `the output is a number, want an object`)
}

func TestCaseVariantsInOpenSchemas(t *testing.T) {
	for name, c := range map[string]struct{ doc, in, err string }{
		"open":              {`{"properties":{"path":{}}}`, `{"Path":1,"other":2}`, `argument "Path" differs only in case from "path", names are exact`},
		"both declared":     {`{"properties":{"path":{},"Path":{}}}`, `{"Path":1,"path":2}`, ""},
		"by reference":      {`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"path":{}}}}}`, `{"PATH":1}`, `argument "PATH" differs only in case from "path", names are exact`},
		"in an alternative": {`{"anyOf":[{"properties":{"path":{}}},true]}`, `{"pAth":1}`, `argument "pAth" differs only in case from "path", names are exact`},
		"in a map":          {`{"additionalProperties":{"properties":{"path":{}}}}`, `{"x":{"Path":1}}`, `argument "x.Path" differs only in case from "path", names are exact`},
		"below a pattern":   {`{"patternProperties":{"^x":{"properties":{"path":{}}}}}`, `{"xy":{"Path":1}}`, `argument "xy.Path" differs only in case from "path", names are exact`},
		"in a tuple":        {`{"prefixItems":[{},{"properties":{"path":{}}}]}`, `[{"Path":1},{"Path":1}]`, `argument "1.Path" differs only in case from "path", names are exact`},
		"unevaluated":       {`{"properties":{"path":{}},"unevaluatedProperties":false}`, `{"path":1,"pth":2}`, `argument "pth" is not known, did you mean "path"? known: "path"`},
		"unevaluated, case": {`{"properties":{"path":{}},"unevaluatedProperties":false}`, `{"Path":1}`, `argument "Path" differs only in case from "path", names are exact`},
		"nothing declared":  {`{"additionalProperties":false}`, `{"a":1}`, `argument "a" is not known, there are none here`},
		"recursive":         {`{"properties":{"next":{"$ref":"#"}}}`, `{"next":{"next":{"Next":1}}}`, `argument "next.next.Next" differs only in case from "next", names are exact`},
	} {
		t.Run(name, func(t *testing.T) {
			err := compile(t, c.doc).Validate(value(t, c.in))
			if c.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.err)
		})
	}
}

func TestZeroSchema(t *testing.T) {
	var none *schema.Schema
	for _, s := range []*schema.Schema{none, {}} {
		require.ErrorIs(t, s.Validate(value(t, `1`)), schema.ErrInvalid)
		require.False(t, s.Closed())
		require.Nil(t, s.Canonical())
	}
	require.ErrorIs(t, schema.FreeForm().Validate(canon.Value{}), schema.ErrInvalid)
}

func TestFreeForm(t *testing.T) {
	s := schema.FreeForm()
	require.NoError(t, s.Validate(value(t, `"any text"`)))
	require.EqualError(t, s.Validate(value(t, `{"a":1}`)), `the input is an object, want a string`)
	require.Equal(t, `{"type":"string"}`, string(s.Canonical()))
	require.False(t, s.Closed())
	s.Canonical()[0] = 'x'
	require.Equal(t, `{"type":"string"}`, string(s.Canonical()), "nobody can change it from outside")
}

func TestClosed(t *testing.T) {
	for doc, want := range map[string]bool{
		`{"additionalProperties":false}`:                                    true,
		`{"unevaluatedProperties":false}`:                                   true,
		`{"$ref":"#/$defs/a","$defs":{"a":{"additionalProperties":false}}}`: true,
		`{"allOf":[{},{"additionalProperties":false}]}`:                     true,
		`{}`: false, `true`: false,
		`{"additionalProperties":{}}`:                                  false,
		`{"additionalProperties":false,"patternProperties":{"^x":{}}}`: false,
		`{"anyOf":[{"additionalProperties":false},{}]}`:                false,
		`{"properties":{"a":{"additionalProperties":false}}}`:          false,
	} {
		require.Equal(t, want, compile(t, doc).Closed(), doc)
	}
}

func TestCompileRefuses(t *testing.T) {
	// Reading this file would show: it is not a schema, and the message would
	// say so.
	secret := filepath.Join(t.TempDir(), "secret.json")
	require.NoError(t, os.WriteFile(secret, []byte(`{"type":"strng"}`), 0o600))
	outside := func(place, target string) string {
		return `invalid schema at "` + place + `": refers to "` + target + `", which is outside the schema, want a reference inside it such as "#/$defs/name"`
	}
	for name, c := range map[string]struct{ doc, err string }{
		"not JSON":                 {`{`, `invalid schema: invalid JSON at the top (byte 1): want a member name in double quotes`},
		"duplicate":                {`{"type":"string","type":"object"}`, `invalid schema: invalid JSON at "/type": this member name occurs more than once, want each name once`},
		"not a schema":             {`[]`, `invalid schema at the top: a schema is an object or a boolean, this is an array`},
		"file":                     {`{"properties":{"a":{"$ref":"file://` + secret + `"}}}`, outside("/properties/a/$ref", "file://"+secret)},
		"file, in a list":          {`{"anyOf":[true,{"$ref":"file:///etc/passwd#/a"}]}`, outside("/anyOf/1/$ref", "file:///etc/passwd#/a")},
		"http":                     {`{"$ref":"http://127.0.0.1:1/schema.json"}`, outside("/$ref", "http://127.0.0.1:1/schema.json")},
		"https, dynamic":           {`{"items":{"$dynamicRef":"https://example.com/s#a"}}`, outside("/items/$dynamicRef", "https://example.com/s#a")},
		"relative":                 {`{"$ref":"other.json"}`, outside("/$ref", "other.json")},
		"absolute path":            {`{"$ref":"/etc/passwd"}`, outside("/$ref", "/etc/passwd")},
		"relative to $id":          {`{"$id":"file:///etc/x","$ref":"passwd"}`, outside("/$ref", "passwd")},
		"metaschema":               {`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, outside("/$ref", "https://json-schema.org/draft/2020-12/schema")},
		"in an unknown word":       {`{"x-mine":{"$ref":"file:///etc/passwd"}}`, outside("/x-mine/$ref", "file:///etc/passwd")},
		"in definitions":           {`{"definitions":{"$ref":{"$ref":"file:///a"}}}`, outside("/definitions/$ref/$ref", "file:///a")},
		"reference is data":        {`{"$ref":1}`, `invalid schema at "/$ref": is a number, want a string`},
		"not a URL":                {`{"$ref":"http://[::"}`, `invalid schema at "/$ref": not a URL`},
		"file, through data":       {`{"default":{"$ref":"file://` + secret + `"},"$ref":"#/default"}`, `invalid schema: it refers to something outside itself, by way of a default, an example or a constant`},
		"metaschema, through data": {`{"const":{"$ref":"https://json-schema.org/draft/2020-12/meta/core"},"$ref":"#/const"}`, `invalid schema: it refers to something outside itself, by way of a default, an example or a constant`},
		"older draft":              {`{"$schema":"http://json-schema.org/draft-07/schema#"}`, `invalid schema at "/$schema": another draft, want "https://json-schema.org/draft/2020-12/schema"`},
		"draft elsewhere":          {`{"$defs":{"a":{"$id":"x","$schema":"file:///etc/passwd"}}}`, `invalid schema at "/$defs/a/$schema": another draft, want "https://json-schema.org/draft/2020-12/schema"`},
		"recursive ref":            {`{"items":{"$recursiveRef":"#"}}`, `invalid schema at "/items/$recursiveRef": $recursiveRef is of another draft, use $ref or $dynamicRef`},
		"leads nowhere":            {`{"properties":{"a":{"$ref":"#/$defs/b"}}}`, `invalid schema at "/properties/a/$ref": refers to "#/$defs/b", which is not there`},
		"no such anchor":           {`{"$ref":"#b"}`, `invalid schema at "/$ref": refers to "#b", which is not there`},
		"two dynamic":              {`{"$dynamicRef":"#a","$defs":{"x":{"$dynamicAnchor":"a"},"y":{"$id":"y","$dynamicAnchor":"a"}}}`, `invalid schema at "/$dynamicRef": refers to a $dynamicAnchor that occurs more than once, want it once`},
		"itself":                   {`{"$ref":"#"}`, `invalid schema at the top: refers to itself without end`},
		"itself, roundabout":       {`{"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"anyOf":[{"$ref":"#/$defs/y"}]},"y":{"not":{"$ref":"#/$defs/x"}}}}`, `invalid schema at "/$defs/x": refers to itself without end`},
		"unknown type":             {`{"properties":{"a":{"type":"strng"}}}`, `invalid schema at "/properties/a/type": has another value, want one of "array", "boolean", "integer", "null", "number", "object", "string"`},
		"wrong type":               {`{"properties":{"a":{"minLength":"1"}}}`, `invalid schema at "/properties/a/minLength": is a string, want an integer`},
		"schema is text":           {`{"properties":{"a":"string"}}`, `invalid schema at "/properties/a": is a string, want a boolean or an object`},
		"look-ahead":               {`{"properties":{"a":{"pattern":"^(?=a)b"}}}`, `invalid schema at "/properties/a/pattern": not a regular expression that Go knows: invalid or unsupported Perl syntax`},
		"bad name pattern":         {`{"patternProperties":{"(":{}}}`, `invalid schema at "/patternProperties/(": not a regular expression that Go knows: missing closing )`},
		"too many parts":           {`{"anyOf":[` + strings.Repeat("true,", 10_000) + `true]}`, `invalid schema at the top: more than 10000 subschemas`},
		"too deep":                 {strings.Repeat(`{"not":`, 65) + `true` + strings.Repeat(`}`, 65), ``},
		"too large":                {`{"title":"` + strings.Repeat("x", 1<<20) + `"}`, `invalid schema: invalid JSON at the top: the document is larger than the limit of 1048576 bytes`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := schema.Compile([]byte(c.doc))
			require.ErrorIs(t, err, schema.ErrSchema)
			require.Nil(t, s)
			if c.err != "" {
				require.EqualError(t, err, c.err)
			}
		})
	}
}

func TestCompileAccepts(t *testing.T) {
	for name, c := range map[string]struct{ doc, good, bad string }{
		"draft named":                {`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"null"}`, `null`, `1`},
		"own $id":                    {`{"$id":"https://example.com/s","$ref":"https://example.com/s#/$defs/a","$defs":{"a":{"type":"null"}}}`, `null`, `1`},
		"bundled":                    {`{"$id":"https://example.com/s","$ref":"a","$defs":{"x":{"$id":"a","type":"null"}}}`, `null`, `1`},
		"bundled by name":            {`{"$id":"urn:example:s","$ref":"urn:example:a#in","$defs":{"x":{"$id":"urn:example:a","$defs":{"y":{"$anchor":"in","type":"null"}}}}}`, `null`, `1`},
		"anchor":                     {`{"$ref":"#a","$defs":{"x":{"$anchor":"a","type":"null"}}}`, `null`, `1`},
		"dynamic anchor":             {`{"$dynamicRef":"#a","$defs":{"x":{"$dynamicAnchor":"a","type":"null"}}}`, `null`, `1`},
		"escaped pointer":            {`{"$ref":"#/$defs/a~1b%25","$defs":{"a/b%":{"type":"null"}}}`, `null`, `1`},
		"into a list":                {`{"$ref":"#/$defs/a/anyOf/1","$defs":{"a":{"anyOf":[true,{"type":"null"}]}}}`, `null`, `1`},
		"references as data":         {`{"const":{"$ref":"file:///etc/passwd"},"examples":[{"$schema":"x"}],"default":{"$id":"::"}}`, `{"$ref":"file:///etc/passwd"}`, `1`},
		"names like keywords":        {`{"properties":{"$ref":{"type":"null"},"$schema":{"type":"null"},"$id":{}}}`, `{"$ref":null}`, `{"$ref":1}`},
		"false":                      {`{"not":true}`, ``, `1`},
		"format is not asserted":     {`{"format":"email","type":"string"}`, `"nobody"`, `1`},
		"pattern in an unknown word": {`{"x-mine":{"pattern":"(?=a)"},"type":"null"}`, `null`, `1`},
		"tree":                       {`{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}}}`, `{"kids":[{"kids":[]}]}`, `{"kids":[{"kids":[1]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := compile(t, c.doc)
			if c.good != "" {
				require.NoError(t, s.Validate(value(t, c.good)))
			}
			require.ErrorIs(t, s.Validate(value(t, c.bad)), schema.ErrInvalid)
			want, err := canon.Canonicalize([]byte(c.doc), canon.DefaultLimits())
			require.NoError(t, err)
			require.Equal(t, string(want), string(s.Canonical()))
		})
	}
}

// TestWorkIsBounded uses schemas that double the work at each step, and would
// never end.
func TestWorkIsBounded(t *testing.T) {
	var defs []string
	for i := range 60 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	wide := `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `,"d60":{"type":"null"}}}`
	names := strings.Replace(wide, `{"$ref":"#/$defs/d0"`, `{"propertyNames":{"$ref":"#/$defs/d0"}`, 1)
	deep := `{"anyOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}},{"type":"null"}]}`
	nested := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for name, c := range map[string]struct{ doc, in string }{
		"wide": {wide, `1`}, "wide, by names": {names, `{"a":1}`}, "deep": {deep, nested},
	} {
		t.Run(name, func(t *testing.T) {
			err := compile(t, c.doc).Validate(value(t, c.in))
			require.ErrorIs(t, err, schema.ErrInvalid)
			require.EqualError(t, err, `the input is too large for its schema, which would take too long to judge it`)
		})
	}
	require.NoError(t, compile(t, deep).Validate(value(t, `[[[[]]]]`)))
	require.NoError(t, compile(t, names).Validate(value(t, `{}`)))
}

// TestMessagesAreShort checks that a name in a message is cut, so that a
// document cannot fill the model's context.
func TestMessagesAreShort(t *testing.T) {
	long := strings.Repeat("n", 1<<16)
	var many []string
	for i := range 500 {
		many = append(many, fmt.Sprintf(`"name%d":{"enum":["%s","b"]}`, i, long[:1000]))
	}
	s := compile(t, `{"additionalProperties":false,"properties":{`+strings.Join(many, ",")+`}}`)
	err := s.Validate(value(t, `{"`+long+`":1,"name1":1,"name2":{"a":1},"x":1,"y":1,"z":1}`))
	require.ErrorIs(t, err, schema.ErrInvalid)
	require.Less(t, len(err.Error()), 4000)
}

func BenchmarkValidate(b *testing.B) {
	s := compile(b, edit)
	v := value(b, with(`"count":2.0,"ratio":0.2,"edits":[{"text":"x","line":1e2}],"kind":"file"`))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFreeForm(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = schema.FreeForm()
	}
}

func Example() {
	s, err := schema.Compile([]byte(`{
	  "type": "object", "additionalProperties": false, "required": ["path"],
	  "properties": {"path": {"type": "string"}, "mode": {"enum": ["read", "write"]}}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, in := range []string{`{"path":"a.txt","mode":"read"}`, `{"Path":"a.txt"}`, `{"path":1,"mod":"read"}`} {
		v, err := canon.Parse([]byte(in), canon.DefaultLimits())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s.Validate(v))
	}
	// Output:
	// <nil>
	// argument "Path" differs only in case from "path", names are exact; argument "path" is missing, want a string
	// argument "mod" is not known, did you mean "mode"? known: "mode", "path"; argument "path" is a number, want a string
}

func TestConcurrentUse(t *testing.T) {
	s := compile(t, edit)
	good, bad := value(t, with(`"edits":[{"text":"x"}]`)), value(t, with(`"headers":{"B":"x","A":"y"},"zzz":1`))
	want := s.Validate(bad).Error()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if err := s.Validate(good); err != nil {
					t.Error(err)
				}
				if err := s.Validate(bad); err == nil || err.Error() != want {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

package schema_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/schema"
)

// TestCheckPointer checks that a pointer is valid if a value can have the place,
// as far as the schema declares what it has.
func TestCheckPointer(t *testing.T) {
	s := compile(t, `{"type":"object","additionalProperties":false,"$defs":{"who":{"type":"object","properties":{"mail":{"type":"string"}}}},
		"properties":{
			"to":{"type":"array","items":{"type":"string"}},
			"who":{"$ref":"#/$defs/who"},
			"either":{"anyOf":[{"type":"string"},{"type":"object","properties":{"a":{}}}]},
			"pair":{"type":"array","prefixItems":[{"type":"object","properties":{"x":{}}}],"items":false},
			"headers":{"type":"object","additionalProperties":{"type":"string"}},
			"free":{"type":"object","properties":{"known":{}},"additionalProperties":true},
			"any":{}, "a/b~c":{"type":"integer"}}}`)
	for _, pointer := range []string{
		"", "/to", "/to/*", "/to/0", "/who/mail", "/either/a", "/pair/0/x", "/pair/*/x", "/headers/x", "/headers/*", "/free/other/y", "/any/x/*/y", "/a~1b~0c", "/*", "/*/mail",
	} {
		require.NoError(t, s.CheckPointer(pointer), pointer)
	}
	for pointer, says := range map[string]string{
		"to":          "a JSON pointer begins with a slash",
		"/tos":        `"tos" is not known, did you mean "to"? known: "a/b~c", "any"`,
		"/to/x":       `"x" is not known, there are none here`,
		"/to/*/x":     `"x" is not known, there are none here`,
		"/who/male":   `"male" is not known, did you mean "mail"?`,
		"/either/b":   `"b" is not known`,
		"/pair/1":     `"1" is not known`,
		"/headers/x/": `"" is not known`,
		"/":           `"" is not known`,
	} {
		require.ErrorContains(t, s.CheckPointer(pointer), says, pointer)
	}
	require.NoError(t, compile(t, `{"type":"object"}`).CheckPointer("/anything"))
	require.Error(t, compile(t, `{"type":"string"}`).CheckPointer("/anything"))
	var none *schema.Schema
	require.NoError(t, none.CheckPointer("/anything"))
}

// TestTagged checks that a tag is found at any depth, under the JSON names.
func TestTagged(t *testing.T) {
	type mail struct {
		place
		To    []string          `json:"to" role:"authority"`
		Parts []struct{ A int } `json:"parts" role:"content"`
		Each  map[string]*struct {
			B string `json:"b/c" role:"selector"`
		} `json:"each"`
		Hidden string `json:"-" role:"content"`
	}
	got, err := schema.Tagged(reflect.TypeFor[*mail](), "role")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"/to": "authority", "/parts": "content", "/each/*/b~1c": "selector"}, got)
	got, err = schema.Tagged(reflect.TypeFor[string](), "role")
	require.NoError(t, err)
	require.Empty(t, got)
	_, err = schema.Tagged(reflect.TypeFor[chan int](), "role")
	require.ErrorIs(t, err, schema.ErrSchema)
}

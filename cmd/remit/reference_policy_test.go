package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

// inputNode is a place of the schema of the policy input.
type inputNode struct {
	Description string                `json:"description"`
	Type        any                   `json:"type"`
	Ref         string                `json:"$ref"`
	Enum        []string              `json:"enum"`
	Required    []string              `json:"required"`
	Properties  inputFields           `json:"properties"`
	Additional  json.RawMessage       `json:"additionalProperties"`
	Items       *inputNode            `json:"items"`
	Definitions map[string]*inputNode `json:"definitions"`
}

// inputFields are the fields of an object, in the order of the schema.
type inputFields []struct {
	name string
	node *inputNode
}

// UnmarshalJSON reads an object and keeps the order of its members.
func (f *inputFields) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		node := &inputNode{}
		if err := d.Decode(node); err != nil {
			return err
		}
		*f = append(*f, struct {
			name string
			node *inputNode
		}{name.(string), node}) //nolint:errcheck // a schema names its members by texts
	}
	return nil
}

// fieldTable writes the rows of the policy input.
type fieldTable struct {
	top   inputNode
	first map[string]string // by definition: the first path that has it
	rows  strings.Builder
}

// TestReferencePolicy holds the tables of fields and sets in policy.md.
func TestReferencePolicy(t *testing.T) {
	f := fieldTable{first: map[string]string{}}
	require.NoError(t, json.Unmarshal(perm.InputSchema(), &f.top))
	f.object(t, &f.top, "input")
	holdPart(t, "policy.md", "fields", header("field", "type", "meaning")+f.rows.String())

	sets := textConstants(t, "perm/rego")
	text := header("set", "element", "effect")
	for _, name := range listOf(t, "perm/rego", "setNames") {
		element, effect, found := strings.Cut(sets[name].text, ": ")
		require.True(t, found, "the comment of %s says ELEMENT: EFFECT", name)
		text += row(code(sets[name].value), element, effect)
	}
	text += "\nA budget, an element of `limit`, is an object:\n\n" + header("member", "type", "meaning")
	for _, m := range members(t, "perm", "Limit") {
		if m.name != "at" { // the engine sets it
			require.NotEmpty(t, m.text, m.name)
			text += row(code(m.name), m.kind, m.text)
		}
	}
	holdPart(t, "policy.md", "sets", text)
}

func (f *fieldTable) object(t *testing.T, n *inputNode, path string) {
	t.Helper()
	for _, p := range n.Properties {
		f.field(t, p.node, path+"."+p.name, slices.Contains(n.Required, p.name))
	}
}

// field writes the row of a field, and those of the fields below it.
func (f *fieldTable) field(t *testing.T, n *inputNode, path string, required bool) {
	t.Helper()
	text, same := n.Description, ""
	if n.Ref != "" {
		if first, seen := f.first[n.Ref]; seen {
			same = "as " + code(first)
		}
		n = f.top.Definitions[strings.TrimPrefix(n.Ref, "#/definitions/")]
		require.NotNil(t, n, path)
		text = n.Description
	}
	require.NotEmpty(t, text, "the schema does not describe %s", path)
	elements := n.Items
	if elements == nil {
		elements = &inputNode{}
	}
	if enum := append(slices.Clone(n.Enum), elements.Enum...); len(enum) > 0 {
		text += " Values: `" + strings.Join(enum, "`, `") + "`."
	}
	kind := same
	if same == "" {
		kind = f.kind(n)
	}
	if !required {
		kind += ", optional"
	}
	f.rows.WriteString(row(code(path), kind, cell(text)))
	if same != "" {
		return
	}
	f.below(t, n, elements, path)
}

// below writes the rows of the parts of a field: members, elements, or the
// objects of a map.
func (f *fieldTable) below(t *testing.T, n, elements *inputNode, path string) {
	t.Helper()
	f.object(t, n, path)
	f.object(t, elements, path+"[]")
	var values inputNode
	if len(n.Additional) > 0 && n.Additional[0] == '{' {
		require.NoError(t, json.Unmarshal(n.Additional, &values))
		if values.Ref != "" {
			f.field(t, &values, path+".*", true)
		}
	}
	for name, def := range f.top.Definitions {
		if def == n {
			f.first["#/definitions/"+name] = path
		}
	}
}

// kind returns the type of a field in words.
func (f *fieldTable) kind(n *inputNode) string {
	switch kind := n.Type.(type) {
	case string:
		if kind == "array" {
			return "list of " + f.kind(n.Items)
		}
		if kind == "object" && len(n.Properties) == 0 {
			return "object by name"
		}
		return kind
	case []any:
		var all []string
		for _, k := range kind {
			all = append(all, k.(string)) //nolint:errcheck // a type has a name
		}
		return strings.Join(all, " or ")
	default:
		return "any"
	}
}

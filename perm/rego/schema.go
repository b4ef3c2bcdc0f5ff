package rego

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm"
)

// shape is the input schema of one place of the document. A nil shape is
// unknown.
type shape struct {
	fields map[string]*shape // fields of an object with fixed names
	values *shape            // values of an object with free names
	items  *shape            // items of a list
	enum   []string
	path   string   // below input, with [] for an element and * for any name
	types  []string // string, integer, number, boolean, array, object, null; empty: any
	open   bool     // the content is unknown
}

// closed reports whether the place has only the named fields.
func (s *shape) closed() bool { return s != nil && s.fields != nil }

func (s *shape) names() []string { return sortedKeys(s.fields) }

// schemaNode is the subset of JSON schema that the input schema uses.
type schemaNode struct {
	Type        json.RawMessage        `json:"type"`
	Ref         string                 `json:"$ref"`
	Properties  map[string]*schemaNode `json:"properties"`
	Additional  json.RawMessage        `json:"additionalProperties"`
	Items       *schemaNode            `json:"items"`
	Enum        []string               `json:"enum"`
	Definitions map[string]*schemaNode `json:"definitions"`
}

// inputShape parses the published schema, so that the checks and the published
// document cannot differ.
func inputShape() (*shape, error) {
	var root schemaNode
	if err := json.Unmarshal(perm.InputSchema(), &root); err != nil {
		return nil, fmt.Errorf("rego: the input schema: %w", err)
	}
	return root.shape(root.Definitions, "")
}

// below returns the path of a place inside another.
func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// types returns the types of a place, which are a text or a list of texts.
func (n *schemaNode) types() (types []string) {
	var one string
	if json.Unmarshal(n.Type, &one) == nil {
		return []string{one}
	}
	_ = json.Unmarshal(n.Type, &types) // empty: any
	return types
}

func (n *schemaNode) shape(defs map[string]*schemaNode, path string) (*shape, error) {
	if n.Ref != "" {
		def := defs[strings.TrimPrefix(n.Ref, "#/definitions/")]
		if def == nil {
			return nil, fmt.Errorf("rego: the input schema lacks %s", n.Ref)
		}
		return def.shape(defs, path)
	}
	s := &shape{enum: slices.Clone(n.Enum), path: path, types: n.types()}
	s.open = len(s.types) == 0
	var err error
	if n.Items != nil {
		if s.items, err = n.Items.shape(defs, path+"[]"); err != nil {
			return nil, err
		}
	}
	for name, p := range n.Properties {
		if s.fields == nil {
			s.fields = map[string]*shape{}
		}
		if s.fields[name], err = p.shape(defs, below(path, name)); err != nil {
			return nil, err
		}
	}
	if len(n.Additional) > 0 && n.Additional[0] == '{' {
		var values schemaNode
		if err = json.Unmarshal(n.Additional, &values); err != nil {
			return nil, fmt.Errorf("rego: the input schema: %w", err)
		}
		s.values, err = values.shape(defs, below(path, "*"))
	}
	return s, err
}

package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/provenance"
)

// Params are the arguments of a tool, one by one, for authors who write neither
// JSON Schema nor Go types. They become a closed schema in Spec.Input, which
// accepts no other argument. Params that are empty but not nil declare a tool
// without arguments.
type Params []Param

// Param is one argument.
type Param struct {
	Name        string // 1 to 64 characters; models expect snake_case
	Type        string // "string", "integer", "number", "boolean", "array" or "object"
	Items       string // type of the elements of an array; empty: any type
	Description string // for the model
	Required    bool
	Default     any   // value of an omitted argument; nil: none
	Enum        []any // all valid values; nil: every value of the type
	Examples    []any // for the model
	Secret      bool  // for a setting: its value is a reference such as secret://name

	Role provenance.Role // of an argument; empty: authority
}

var paramTypes = []string{"string", "integer", "number", "boolean", "array", "object"}

// schema returns the JSON Schema of the arguments.
func (all Params) schema() ([]byte, error) { return all.document(false) }

// document returns the JSON Schema of arguments, or of settings.
func (all Params) document(settings bool) ([]byte, error) {
	properties, required, names := map[string]any{}, []string{}, map[string]string{}
	for i, p := range all {
		if p.Name == "" || utf8.RuneCountInString(p.Name) > 64 || !utf8.ValidString(p.Name) {
			return nil, fmt.Errorf("parameter %d: a name has 1 to 64 characters", i+1)
		}
		like := strings.ToLower(p.Name)
		if other, taken := names[like]; taken {
			return nil, fmt.Errorf("parameters %q and %q could be taken for one another", other, p.Name)
		}
		names[like] = p.Name
		declared, err := p.schema()
		if err == nil && p.Secret {
			err = p.checkSecret(settings)
		}
		if err == nil && settings && p.Role != "" {
			err = errors.New("only an argument has a role; the values of settings are trusted")
		}
		if err != nil {
			return nil, fmt.Errorf("parameter %q: %w", p.Name, err)
		}
		properties[p.Name] = declared
		if p.Required {
			required = append(required, p.Name)
		}
	}
	doc := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		doc["required"] = required
	}
	return canon.Marshal(doc)
}

// schema returns the JSON Schema of an argument. It returns an error if the
// argument's default, enum or examples do not satisfy it.
func (p Param) schema() (map[string]any, error) {
	switch {
	case !slices.Contains(paramTypes, p.Type):
		return nil, fmt.Errorf("unknown type %q; valid are %s", p.Type, strings.Join(paramTypes, ", "))
	case p.Items != "" && p.Type != "array":
		return nil, fmt.Errorf("a parameter of type %s has no items; only an array has", p.Type)
	case p.Items != "" && !slices.Contains(paramTypes, p.Items):
		return nil, fmt.Errorf("unknown type %q of its items; valid are %s", p.Items, strings.Join(paramTypes, ", "))
	case p.Required && p.Default != nil:
		return nil, errors.New("it is required and has a default, which no call could come to")
	case p.Enum != nil && len(p.Enum) == 0:
		return nil, errors.New("its enum has no value, so that none would be valid; leave it nil where all are")
	}
	doc := map[string]any{"type": p.Type}
	if p.Items != "" {
		doc["items"] = map[string]any{"type": p.Items}
	}
	if err := satisfies(doc, "enum", p.Enum); err != nil {
		return nil, err
	}
	if p.Enum != nil {
		doc["enum"] = p.Enum
	}
	if p.Default != nil {
		if err := satisfies(doc, "default", []any{p.Default}); err != nil {
			return nil, err
		}
	}
	if err := satisfies(doc, "example", p.Examples); err != nil {
		return nil, err
	}
	if p.Description != "" {
		doc["description"] = p.Description
	}
	if p.Default != nil {
		doc["default"] = p.Default
	}
	if p.Examples != nil {
		doc["examples"] = p.Examples
	}
	return doc, nil
}

func (p Param) checkSecret(setting bool) error {
	switch {
	case !setting:
		return errors.New("only a setting is secret; name a sensitive argument in Hints.Sensitive")
	case p.Type != "string" || p.Default != nil || p.Enum != nil || p.Examples != nil:
		return errors.New("a secret setting is a string without default, enum and examples: its value is the name of a secret")
	}
	return nil
}

func compile(doc map[string]any) (*schema.Schema, error) {
	text, err := canon.Marshal(doc)
	if err != nil {
		return nil, err
	}
	return schema.Compile(text)
}

// satisfies returns an error if a value does not satisfy a parameter's own
// schema. The error does not repeat the value.
func satisfies(doc map[string]any, what string, values []any) error {
	compiled, err := compile(doc)
	if err != nil {
		return err
	}
	for i, value := range values {
		v, err := canon.From(value)
		if err == nil {
			err = compiled.ValidateAs("it", "member", v)
		}
		if err != nil {
			if len(values) > 1 || what != "default" {
				what = fmt.Sprintf("%s %d", what, i+1)
			}
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

package schema

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	jsontype "github.com/google/jsonschema-go/jsonschema"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/pointer"
)

// tags applies the tags of fields: `enum:"a,b"` lists the valid values, for an
// array those of its elements. `default:"a"` makes the member optional.
// `required:"true"` and `required:"false"` set whether it is required. Values
// of texts are written as they are, others as JSON.
func (d *deriver) tags(t reflect.Type, s *jsontype.Schema, where string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s == nil || d.known[t] != nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return d.tags(t.Elem(), s.Items, where+"[]")
	case reflect.Map:
		return d.tags(t.Elem(), s.AdditionalProperties, where+"[]")
	case reflect.Struct:
		return d.members(t, s, where)
	default:
		return nil
	}
}

func (d *deriver) members(t reflect.Type, s *jsontype.Schema, where string) error {
	for _, field := range reflect.VisibleFields(t) {
		name, used, err := d.field(field, where)
		if err != nil || !used || s.Properties[name] == nil {
			if err != nil {
				return err
			}
			continue
		}
		member := *s.Properties[name] // types may share theirs
		s.Properties[name] = &member
		at := where + "." + field.Name
		if err := d.tags(field.Type, &member, at); err != nil {
			return err
		}
		if err := d.choices(field, &member, at); err != nil {
			return err
		}
		if err := d.optional(field, s, name, at); err != nil {
			return err
		}
	}
	return nil
}

// choices reads the enum tag.
func (d *deriver) choices(field reflect.StructField, member *jsontype.Schema, where string) error {
	tag, ok := field.Tag.Lookup("enum")
	if !ok {
		return nil
	}
	t, into := field.Type, member
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if k := t.Kind(); d.known[t] == nil && (k == reflect.Slice || k == reflect.Array) {
		element := *member.Items
		t, into, member.Items = t.Elem(), &element, &element
	}
	var values []any
	for text := range strings.SplitSeq(tag, ",") {
		value, err := d.value(t, text)
		if err != nil {
			return refuse(where, "has the enum value "+text+", which is not of its type")
		}
		if !accepts(into, value) {
			return refuse(where, "has the enum value "+text+", which is not of its type")
		}
		values = append(values, value)
	}
	into.Enum = values
	return nil
}

// optional reads the tags default and required.
func (d *deriver) optional(field reflect.StructField, s *jsontype.Schema, name, where string) error {
	required := slices.Contains(s.Required, name)
	switch tag, ok := field.Tag.Lookup("required"); {
	case ok && tag != "true" && tag != "false":
		return refuse(where, "has the tag required:\""+tag+"\", want true or false")
	case ok:
		required = tag == "true"
	}
	if text, ok := field.Tag.Lookup("default"); ok {
		if field.Tag.Get("required") == "true" {
			return refuse(where, "is required and has a default, which no call could come to")
		}
		value, err := d.value(field.Type, text)
		if err != nil || !accepts(s.Properties[name], value) {
			return refuse(where, "has the default "+text+", which it does not accept itself")
		}
		if s.Properties[name].Default, err = canon.Marshal(value); err != nil {
			return refuse(where, "has the default "+text+", which has no JSON form")
		}
		required = false
	}
	s.Required = slices.DeleteFunc(slices.Clone(s.Required), func(o string) bool { return o == name })
	if required {
		s.Required = append(s.Required, name)
	}
	return nil
}

// Tagged returns the values of a tag of a type's fields, by JSON pointer of
// their members. * stands for each element or member of a list or a map.
func Tagged(t reflect.Type, tag string) (map[string]string, error) {
	d := deriver{known: knownTypes(), busy: map[reflect.Type]bool{}}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if err := d.check(t, t.String()); err != nil {
		return nil, err
	}
	all := map[string]string{}
	return all, d.tagged(t, tag, "", t.String(), all)
}

func (d *deriver) tagged(t reflect.Type, tag, at, where string, all map[string]string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch k := t.Kind(); {
	case d.known[t] != nil:
		return nil
	case k == reflect.Slice, k == reflect.Array, k == reflect.Map:
		return d.tagged(t.Elem(), tag, at+"/*", where+"[]", all)
	case k != reflect.Struct:
		return nil
	}
	for _, field := range reflect.VisibleFields(t) {
		name, used, err := d.field(field, where)
		if err != nil {
			return err
		}
		if !used {
			continue
		}
		below := pointer.Join(at, name)
		if value, is := field.Tag.Lookup(tag); is {
			all[below] = value
		}
		if err := d.tagged(field.Type, tag, below, where+"."+field.Name, all); err != nil {
			return err
		}
	}
	return nil
}

// value parses a value in a tag: for a text the text itself, otherwise JSON.
func (d *deriver) value(t reflect.Type, text string) (any, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if known := d.known[t]; t.Kind() == reflect.String && known == nil || known != nil && known.Type == "string" {
		return text, nil
	}
	v, err := canon.Parse([]byte(text), limits())
	if err != nil {
		return nil, err
	}
	return v.Any(), nil
}

// accepts reports whether a schema accepts a value.
func accepts(s *jsontype.Schema, value any) bool {
	doc, err := json.Marshal(s)
	if err != nil {
		return false
	}
	compiled, err := Compile(doc)
	if err != nil {
		return false
	}
	v, err := canon.From(value)
	return err == nil && compiled.Validate(v) == nil
}

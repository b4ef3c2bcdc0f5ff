package wire

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/tool"
)

// wireTool is one tool as a format has it.
type wireTool struct {
	tool    tool.Tool
	root    any             // the tool's own schema, of what it gets
	carried any             // the schema of what the model writes: root, or an object around it
	schema  json.RawMessage // carried, in the dialect of the format
	wrapped bool
	strict  bool
	nulls   bool   // what may be absent is null instead
	why     string // why it is not strict, where it was to be
}

// member is the name under which an input travels that is not an object.
const member = "input"

func offer(t tool.Tool, d dialect) (wireTool, error) {
	root, err := canon.Parse(t.InputSchema(), canon.DefaultLimits())
	if err != nil {
		return wireTool{}, err
	}
	o := wireTool{tool: t, root: root.Any()}
	o.carried = carried(root.Any())
	o.wrapped = !sameObject(o.root)
	o.schema, _, err = write(o.carried, d)
	return o, err
}

// harden is the tool in strict mode, or why it cannot be.
func (o wireTool) harden(d dialect) (wireTool, limitCounter, error) {
	raw, counts, err := write(o.carried, d)
	if err != nil {
		return o, counts, err
	}
	o.schema, o.strict, o.nulls, o.why = raw, true, d.required, ""
	return o, counts, nil
}

// sameObject reports whether a schema is one of objects that every format takes at the top.
func sameObject(root any) bool {
	m, ok := root.(map[string]any)
	if !ok || slices.ContainsFunc([]string{"anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "$ref", "$dynamicRef"},
		func(word string) bool { return m[word] != nil }) {
		return false
	}
	if m["type"] == nil {
		return m["properties"] != nil // a schema with properties describes an object
	}
	return m["type"] == "object"
}

// carried is the schema of the object that a model writes.
func carried(root any) map[string]any {
	m, isMap := root.(map[string]any)
	if sameObject(root) {
		m = maps.Clone(m)
		m["type"] = "object"
		if m["properties"] == nil {
			m["properties"] = map[string]any{} // which OpenAI wants
		}
		return m
	}
	out := map[string]any{"type": "object", "required": []any{member}, "additionalProperties": false}
	if isMap && m["$id"] == nil { // with one, references begin where it stands
		root = moveRefs(m)
		inner, ok := root.(map[string]any)
		if defs := inner["$defs"]; ok && defs != nil {
			delete(inner, "$defs")
			out["$defs"] = defs
		}
	}
	out["properties"] = map[string]any{member: root}
	return out
}

// moveRefs is a copy of a schema whose references lead to where things are once it lies below the top.
func moveRefs(s any) any {
	m, ok := s.(map[string]any)
	if !ok {
		return s
	}
	out := withSchemas(m, func(_ string, sub any) any { return moveRefs(sub) })
	for _, word := range []string{"$ref", "$dynamicRef"} {
		ref, ok := out[word].(string)
		if ok && (ref == "#" || strings.HasPrefix(ref, "#/")) && !strings.HasPrefix(ref, "#/$defs/") {
			out[word] = "#/properties/" + member + ref[1:]
		}
	}
	return out
}

// Where schemas lie in a schema.
var (
	oneSchema = []string{
		"additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames", "unevaluatedItems",
		"unevaluatedProperties", "contentSchema",
	}
	listOfSchemas = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	mapOfSchemas  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)

// withSchemas is a copy of a schema with others in the places of those that lie directly in it.
func withSchemas(m map[string]any, other func(word string, sub any) any) map[string]any {
	out := maps.Clone(m)
	for word, value := range out {
		switch v := value.(type) {
		case []any:
			if !slices.Contains(listOfSchemas, word) {
				continue
			}
			list := make([]any, len(v))
			for i, sub := range v {
				list[i] = other(word, sub)
			}
			out[word] = list
		case map[string]any:
			if !slices.Contains(mapOfSchemas, word) {
				if slices.Contains(oneSchema, word) {
					out[word] = other(word, v)
				}
				continue
			}
			named := map[string]any{}
			for name, sub := range v {
				named[name] = other(word, sub)
			}
			out[word] = named
		case bool:
			if slices.Contains(oneSchema, word) {
				out[word] = other(word, v)
			}
		}
	}
	return out
}

// resolve finds what a reference refers to: the top, or a place below it.
func resolve(root any, ref string) (any, error) {
	at := root
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok || rest != "" && rest[0] != '/' {
		return nil, errors.New("a reference that is not to a place in the schema")
	}
	for _, token := range strings.Split(rest, "/")[1:] {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		m, ok := at.(map[string]any)
		if !ok || m[token] == nil {
			return nil, errors.New("a reference to a place that is not there")
		}
		at = m[token]
	}
	return at, nil
}

// own is what the tool gets of the arguments that a model wrote: what the definition added is taken away again.
func (o wireTool) own(raw json.RawMessage, v canon.Value) (in json.RawMessage, why, fix string) {
	if o.wrapped {
		inner, there := v.Get(member)
		if !there || v.Len() != 1 {
			return raw, `its arguments are not of the form that the tool has, want the one argument "` + member + `"`, ""
		}
		v, raw = inner, inner.Canonical()
	}
	if !o.nulls {
		return raw, "", ""
	}
	if left, changed := withoutNulls(o.root, v); changed {
		text, err := canon.Marshal(left)
		if err != nil {
			return raw, "its arguments: " + err.Error(), ""
		}
		raw = text
	}
	return raw, "", ""
}

// withoutNulls takes the members away that are null because a strict schema could not let them be absent: those that the
// tool's schema neither requires nor lets be null.
func withoutNulls(s any, v canon.Value) (left any, changed bool) {
	m, ok := s.(map[string]any)
	switch {
	case ok && v.Kind() == canon.Object:
		properties, _ := m["properties"].(map[string]any)
		out := map[string]any{}
		for name, value := range v.Members() {
			declared, ok := properties[name]
			if ok && value.Kind() == canon.Null && !requires(m, name) && nullable(declared) == notNull {
				changed = true
				continue
			}
			var inner bool
			out[name], inner = withoutNulls(declared, value)
			changed = changed || inner
		}
		return out, changed
	case ok && v.Kind() == canon.Array:
		out := make([]any, 0, v.Len())
		for _, e := range v.Elements() {
			element, inner := withoutNulls(m["items"], e)
			out = append(out, element)
			changed = changed || inner
		}
		return out, changed
	default:
		return v, false
	}
}

func requires(m map[string]any, name string) bool {
	list, _ := m["required"].([]any)
	return slices.Contains(list, any(name))
}

// nullability is whether a schema takes null, as far as its type says.
type nullability uint8

const (
	maybeNull nullability = iota
	isNull
	notNull
)

func nullable(s any) nullability {
	m, ok := s.(map[string]any)
	if !ok {
		return maybeNull
	}
	switch t := m["type"].(type) {
	case string:
		if t != "null" {
			return notNull
		}
	case []any:
		if !slices.Contains(t, any("null")) {
			return notNull
		}
	default:
		return maybeNull
	}
	for _, word := range []string{"enum", "const", "anyOf", "oneOf", "allOf", "not", "if", "$ref"} {
		if m[word] != nil {
			return maybeNull
		}
	}
	return isNull
}

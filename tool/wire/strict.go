package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// close makes an object as strict modes want it: with no further members, and in OpenAI's with all members required. m is
// the schema as the tool has it, out as it is being written.
func (r *rewriter) close(m, out map[string]any, level int) error {
	if !r.closed {
		return nil
	}
	if r.required {
		if err := simple(out); err != nil {
			return err
		}
	}
	if err := definite(m); err != nil || !takes(m, "object") {
		return err
	}
	properties, _ := out["properties"].(map[string]any)
	switch further, said := m["additionalProperties"]; {
	case said && further != false:
		return errors.New("an object of the schema may have members that are not declared")
	case !said && len(properties) == 0 && level > 0:
		return errors.New("an object of the schema declares no members")
	}
	out["additionalProperties"] = false
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if requires(m, name) {
			continue
		}
		r.counter.optional++
		if r.required {
			declared, _ := m["properties"].(map[string]any)
			orNull, err := r.orNull(name, declared[name], properties[name])
			if err != nil {
				return err
			}
			properties[name] = orNull
		}
	}
	if r.required {
		all := []any{}
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			all = append(all, name)
		}
		out["required"] = all
	}
	return requiredAreDeclared(m, properties)
}

// simple makes a schema say one type, which it may say with null, as OpenAI's strict mode wants it: several forms stand alone,
// and a constant has its type beside it, which is added.
func simple(out map[string]any) error {
	if out["anyOf"] != nil {
		for _, word := range []string{"type", "properties", "required", "additionalProperties", "items", "enum", "const"} {
			if out[word] != nil {
				return fmt.Errorf("a part of the schema has several forms beside %q", word)
			}
		}
		return nil
	}
	kinds, ok := kindsOf(out["type"])
	values, _ := out["enum"].([]any)
	if value, is := out["const"]; is {
		values = append(slices.Clone(values), value)
	}
	for _, v := range values {
		kind := constantKind(v)
		switch {
		case kind == "":
			return errors.New("a constant of the schema is an object, a list, or a text with a quote or a line break")
		case slices.Contains(kinds, kind) || kind == "number" && slices.Contains(kinds, "integer"):
		case out["type"] != nil:
			return errors.New("a constant of the schema is not of its type")
		default:
			kinds = append(kinds, kind)
		}
	}
	several := slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return kind == "null" })
	switch {
	case !ok || len(several) > 1 || len(kinds) > 2:
		return errors.New("a part of the schema is of several types")
	case len(kinds) == 1:
		out["type"] = kinds[0]
	case len(kinds) == 2:
		out["type"] = []any{kinds[0], kinds[1]}
	}
	return nil
}

// kindsOf are the types that a schema says.
func kindsOf(said any) (kinds []string, ok bool) {
	list, is := said.([]any)
	if !is && said != nil {
		list = []any{said}
	}
	for _, each := range list {
		kind, is := each.(string)
		if !is {
			return nil, false
		}
		kinds = append(kinds, kind)
	}
	return kinds, true
}

func constantKind(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		if !strings.ContainsAny(v, "\"\n") {
			return "string"
		}
	}
	return ""
}

func requiredAreDeclared(m, properties map[string]any) error {
	list, _ := m["required"].([]any)
	for _, name := range list {
		if text, ok := name.(string); ok && properties[text] == nil {
			return errors.New("an object of the schema requires a member that it does not declare")
		}
	}
	return nil
}

// definite refuses a schema that leaves open what strict modes want said.
func definite(m map[string]any) error {
	several := m["anyOf"] != nil || m["oneOf"] != nil
	switch {
	case m["type"] == nil && m["properties"] == nil && m["enum"] == nil && m["const"] == nil && !several:
		return errors.New("a part of the schema does not say its type")
	case takes(m, "array") && m["items"] == nil:
		return errors.New("an array of the schema does not say what it holds")
	case several && m["properties"] != nil:
		return errors.New("an object of the schema has several forms beside its members")
	}
	return nil
}

func takes(m map[string]any, kind string) bool {
	if list, ok := m["type"].([]any); ok {
		return slices.Contains(list, any(kind))
	}
	return m["type"] == kind || m["type"] == nil && kind == "object" && m["properties"] != nil
}

// orNull lets a member be null instead of absent, where it can be told from the tool's own null, and taken away again.
func (r *rewriter) orNull(name string, declared, written any) (any, error) {
	switch out, _ := written.(map[string]any); {
	case nullable(declared) == isNull:
		return written, nil // null is what the tool itself takes
	case nullable(declared) == maybeNull:
		return nil, fmt.Errorf("member %q may be left out, and does not say by its type whether it may be null", name)
	case r.unsure > 0:
		return nil, fmt.Errorf("member %q may be left out, inside of one form of several", name)
	case out["enum"] == nil && out["const"] == nil && out["anyOf"] == nil && out["type"] != nil:
		out = maps.Clone(out)
		list, ok := out["type"].([]any)
		if !ok {
			list = []any{out["type"]}
		}
		out["type"] = append(slices.Clone(list), "null")
		return out, nil
	default:
		around := map[string]any{"anyOf": []any{out, map[string]any{"type": "null"}}}
		if text := out["description"]; text != nil {
			out = maps.Clone(out)
			delete(out, "description")
			around["description"], around["anyOf"] = text, []any{out, map[string]any{"type": "null"}}
		}
		return around, nil
	}
}

// count adds what one schema holds to what providers limit.
func (r *rewriter) count(out map[string]any, level int) {
	properties, _ := out["properties"].(map[string]any)
	defines, _ := out["$defs"].(map[string]any)
	values, _ := out["enum"].([]any)
	r.counter.properties += len(properties)
	r.counter.enums += len(values)
	r.counter.levels = max(r.counter.levels, level)
	for _, named := range []map[string]any{properties, defines} {
		for name := range named {
			r.counter.characters += utf8.RuneCountInString(name)
		}
	}
	here := 0
	for _, v := range append(slices.Clone(values), out["const"]) {
		if text, ok := v.(string); ok {
			here += utf8.RuneCountInString(text)
		}
	}
	r.counter.characters += here
	if len(values) > longEnum {
		r.counter.long = max(r.counter.long, here)
	}
	if _, several := out["type"].([]any); several || out["anyOf"] != nil {
		r.counter.unions++
	}
}

// checkLimits holds one schema to what a schema may have.
func (r *rewriter) checkLimits() error {
	for _, l := range []struct {
		what      string
		has, most int
	}{
		{"members", r.counter.properties, r.most.properties},
		{"levels", r.counter.levels, r.most.levels},
		{"values in enums", r.counter.enums, r.most.enums},
		{"characters in names and enums", r.counter.characters, r.most.characters},
		{"characters in one long enum", r.counter.long, r.most.long},
	} {
		if l.most > 0 && l.has > l.most {
			return fmt.Errorf("the schema has %d %s, more than %d", l.has, l.what, l.most)
		}
	}
	return nil
}

// admit adds one tool to what all strict ones of a request hold, where there is room.
func (t *limitCounter) admit(one, most limitCounter) error {
	sum := limitCounter{tools: t.tools + 1, optional: t.optional + one.optional, unions: t.unions + one.unions}
	for _, l := range []struct {
		what      string
		has, most int
	}{
		{"strict tools", sum.tools, most.tools},
		{"members that may be left out", sum.optional, most.optional},
		{"members of several types", sum.unions, most.unions},
	} {
		if l.most > 0 && l.has > l.most {
			return fmt.Errorf("the tools before it leave no room: a request may have %d %s", l.most, l.what)
		}
	}
	*t = sum
	return nil
}

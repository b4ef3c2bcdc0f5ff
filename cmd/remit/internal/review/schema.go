package review

import (
	"bytes"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
)

// deepest ends the walk through a schema; one that compiles has no more levels.
const deepest = 64

// schema looks at one schema and what is in it.
func (r *reviewer) schema(v canon.Value, path string, depth int) {
	if v.Kind() != canon.Object || depth > deepest {
		return
	}
	r.ambiguous(v, path)
	r.values(v, path)
	inside := func(names ...string) {
		at, part := path, v
		for _, name := range names {
			at += pointer(name)
			part, _ = part.Get(name)
		}
		r.schema(part, at, depth+1)
	}
	properties, _ := v.Get("properties")
	for name, p := range properties.Members() {
		r.argument(name, p, path+"/properties"+pointer(name))
		inside("properties", name)
	}
	definitions, _ := v.Get("$defs")
	for name := range definitions.Members() {
		inside("$defs", name)
	}
	for _, name := range []string{"items", "additionalProperties"} {
		inside(name)
	}
	for _, name := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		all, _ := v.Get(name)
		for i, e := range all.Elements() {
			r.schema(e, path+pointer(name)+pointer(number(i)), depth+1)
		}
	}
}

// pointer returns one token of a JSON Pointer.
func pointer(token string) string {
	return "/" + strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}

// argument looks at the name of an argument, or of a member of one, and at what is said of it.
func (r *reviewer) argument(name string, v canon.Value, path string) {
	if !snake.MatchString(name) {
		r.warn(path, "argument_name", "write it in lower case, with one underscore between words", "the argument's name is not snake_case")
	}
	description, said := v.Get("description")
	if ref, there := v.Get("$ref"); !said && there {
		description, said = r.referred(ref).Get("description")
	}
	switch text := description.Text(); {
	case !said || text == "":
		r.warn(path, "argument_description", "say what it means, and in which unit or form", "the argument has no description")
	case len([]rune(text)) > longest:
		r.warn(path, "argument_description", "keep to what a model cannot guess", "the argument's description has %d characters, more than %d", len([]rune(text)), longest)
	}
}

// referred is what a reference of the usual form stands for.
func (r *reviewer) referred(ref canon.Value) canon.Value {
	name, ok := strings.CutPrefix(ref.Text(), "#/$defs/")
	definitions, _ := r.root.Get("$defs")
	v, there := definitions.Get(name)
	if !ok || !there {
		return canon.Value{}
	}
	return v
}

// ambiguous looks for what can be read in two ways.
func (r *reviewer) ambiguous(v canon.Value, path string) {
	var named []string
	for _, name := range typesOf(v) {
		if name != "null" {
			named = append(named, name)
		}
	}
	if len(named) > 1 {
		r.warn(path+"/type", "ambiguous", "keep one of them", "it may be one of %s", strings.Join(named, ", "))
	}
	says := len(named) > 0
	for _, name := range []string{"type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"} {
		_, there := v.Get(name)
		says = says || there
	}
	if !says {
		r.warn(path, "ambiguous", `say "type"`, "it has no type, so anything is valid")
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		branches, _ := v.Get(name)
		r.overlap(branches, path+pointer(name))
	}
	if contains(named, "object") {
		r.open(v, path)
	}
}

// open: what a model makes up is taken without a word, unless the members of a map are
// what the schema is about.
func (r *reviewer) open(v canon.Value, path string) {
	_, properties := v.Get("properties")
	for _, name := range []string{"additionalProperties", "unevaluatedProperties"} {
		more, there := v.Get(name)
		if there && (more.Kind() == canon.Bool && !more.Bool() || more.Kind() == canon.Object && !properties) {
			return
		}
	}
	r.warn(path, "open", `say "additionalProperties": false`, "it takes members that it does not declare, such as misspelt ones")
}

// overlap looks for two forms that one value could have.
func (r *reviewer) overlap(branches canon.Value, path string) {
	var all []canon.Value
	for _, b := range branches.Elements() {
		if ref, there := b.Get("$ref"); there && b.Len() == 1 {
			b = r.referred(ref)
		}
		all = append(all, b)
	}
	for i, b := range all {
		for j, a := range all[:i] {
			if !apart(a, b, 0) {
				r.warn(path, "ambiguous", "give the forms different types, or a member with another constant in each", "one value can have forms %d and %d at once", j, i)
				return
			}
		}
	}
}

// apart reports whether no value fits both schemas, as far as their types, constants and
// those of required members tell.
func apart(a, b canon.Value, depth int) bool {
	if x, y := typesOf(a), typesOf(b); len(x) > 0 && len(y) > 0 && !meet(x, y) {
		return true
	}
	if x, y := constants(a), constants(b); len(x) > 0 && len(y) > 0 {
		return !meet(x, y)
	}
	if depth > 4 || !contains(typesOf(a), "object") || !contains(typesOf(b), "object") || len(typesOf(a))+len(typesOf(b)) > 2 {
		return false
	}
	return apartBy(a, b, depth) || apartBy(b, a, depth)
}

// apartBy reports whether a member that the first schema requires keeps values from the
// other: it has no such member, or only another.
func apartBy(a, b canon.Value, depth int) bool {
	required, _ := a.Get("required")
	mine, _ := a.Get("properties")
	others, _ := b.Get("properties")
	more, _ := b.Get("additionalProperties")
	_, patterns := b.Get("patternProperties")
	for _, name := range required.Elements() {
		other, there := others.Get(name.Text())
		if !there && more.Kind() == canon.Bool && !more.Bool() && !patterns {
			return true
		}
		if own, declared := mine.Get(name.Text()); there && declared && apart(own, other, depth+1) {
			return true
		}
	}
	return false
}

func typesOf(v canon.Value) (out []string) {
	t, _ := v.Get("type")
	if t.Kind() == canon.String {
		return []string{t.Text()}
	}
	for _, e := range t.Elements() {
		out = append(out, e.Text())
	}
	return out
}

// constants are the values that a schema allows, where it lists them.
func constants(v canon.Value) (out []string) {
	if c, there := v.Get("const"); there {
		return []string{string(c.Canonical())}
	}
	all, _ := v.Get("enum")
	for _, e := range all.Elements() {
		out = append(out, string(e.Canonical()))
	}
	return out
}

// meet reports whether two lists have something in common. An integer is a number.
func meet(a, b []string) bool {
	for _, x := range a {
		if contains(b, x) || x == "integer" && contains(b, "number") || x == "number" && contains(b, "integer") {
			return true
		}
	}
	return false
}

// values looks at constants and defaults.
func (r *reviewer) values(v canon.Value, path string) {
	if all, there := v.Get("enum"); there && all.Len() == 1 {
		r.warn(path+"/enum", "enum", "leave the argument out, or name the other values", "there is one value to choose from")
	}
	preset, there := v.Get("default")
	if !there {
		return
	}
	// With what it may refer to.
	var doc bytes.Buffer
	doc.WriteByte('{')
	for name, member := range v.Members() {
		if name != "$defs" {
			doc.Write(canonicalText(name))
			doc.WriteByte(':')
			doc.Write(member.Canonical())
			doc.WriteByte(',')
		}
	}
	doc.WriteString(`"$defs":`)
	if definitions, there := r.root.Get("$defs"); there {
		doc.Write(definitions.Canonical())
	} else {
		doc.WriteString("{}")
	}
	doc.WriteByte('}')
	s, err := schema.Compile(doc.Bytes())
	if err == nil && s.Validate(preset) != nil {
		r.warn(path+"/default", "default", "choose one that is valid", "the schema refuses its own default: a call that leaves the argument out is invalid")
	}
}

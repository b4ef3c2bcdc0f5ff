package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

// rewriter says a schema in a dialect. What it cannot say it tells in descriptions, so that the result takes at least what the
// schema takes; the tool's own schema is what a call is held to.
type rewriter struct {
	dialect
	root    any
	counter limitCounter
	busy    []string // references that are being replaced, or followed
	size    int
	unsure  int // above 0: below a place that withoutNulls does not look at
}

// largest is how many schemas a rewritten one may hold: references that are replaced can multiply.
const largest = 20_000

// write says a schema in a dialect.
func write(s any, d dialect) (json.RawMessage, limitCounter, error) {
	r := &rewriter{dialect: d, root: s}
	out, err := r.schema(s, 0)
	if err == nil {
		err = r.checkLimits()
	}
	if err != nil {
		return nil, r.counter, err
	}
	raw, err := canon.Marshal(out)
	return raw, r.counter, err
}

func (r *rewriter) schema(s any, level int) (any, error) {
	if r.size++; r.size > largest {
		return nil, errors.New("the schema is too large for the format")
	}
	m, ok := s.(map[string]any)
	switch {
	case !ok && r.closed:
		return nil, errors.New("a part of the schema takes anything, or nothing")
	case !ok && s == true:
		return map[string]any{}, nil // the same, for readers that know no true
	case !ok && r.every:
		return map[string]any{"not": map[string]any{}}, nil
	case !ok:
		return map[string]any{"description": "nothing is valid here"}, nil
	case r.every:
		return r.all(m, level)
	}
	if ref, ok := m["$ref"].(string); ok {
		return r.reference(m, ref, level)
	}
	return r.keywords(m, level)
}

// all keeps everything, and has no true and false but as additionalProperties and the like.
func (r *rewriter) all(m map[string]any, level int) (any, error) {
	var failed error
	out := withSchemas(m, func(word string, sub any) any {
		if isBool(sub) && slices.Contains(oneSchema, word) {
			return sub
		}
		other, err := r.schema(sub, level+1)
		failed = errors.Join(failed, err)
		return other
	})
	return out, failed
}

func (r *rewriter) keywords(m map[string]any, level int) (any, error) {
	out := map[string]any{}
	var notes []string
	for _, word := range slices.Sorted(maps.Keys(m)) {
		to, what := r.decide(word, m, level)
		switch what {
		case refused:
			return nil, fmt.Errorf("the schema has %q", word)
		case toDescription:
			notes = append(notes, note(word, m[word]))
		case dropped:
		case kept, renamed:
			value, err := r.value(to, m[word], level)
			if err != nil {
				return nil, err
			}
			out[to] = value
		}
	}
	if err := r.close(m, out, level); err != nil {
		return nil, err
	}
	r.count(out, level)
	describe(out, notes)
	return out, nil
}

// decide is the rule for one keyword with the value it has, and the keyword that says it.
func (r *rewriter) decide(word string, m map[string]any, level int) (to string, what rule) {
	what, known := r.rules[word]
	text, _ := m[word].(string)
	list, isList := m[word].([]any)
	switch {
	case word == "required" && r.inlined && isList && len(list) == 0:
		return word, dropped // it says nothing
	case word == "additionalProperties" && r.inlined && isBool(m[word]):
		return word, dropped // no model needs to read of it: a call is held to it
	case !known:
		return word, toDescription
	case what == renamed:
		return r.rename(word, m)
	case word == "format" && r.formats != nil && !r.formats[text],
		word == "pattern" && r.regular && !plainPattern.MatchString(text),
		word == "minItems" && r.fewest && m[word] != json.Number("0") && m[word] != json.Number("1"),
		word == "enum" && r.names && !onlyNames(m[word]),
		word == "required" && r.inlined && level > 0:
		return word, toDescription
	}
	return word, what
}

func isBool(v any) bool {
	_, is := v.(bool)
	return is
}

// plainPattern are regular expressions that every provider reads in the same way.
var plainPattern = regexp.MustCompile(`^(?:[^\\(]|\\[dwsDWS.\-/\\^$|?*+()\[\]{}]|\([^?]|\($)*$`)

// rename says a keyword with another one: the same, or one that takes more.
func (r *rewriter) rename(word string, m map[string]any) (to string, what rule) {
	switch {
	case word == "const" && m["enum"] == nil && (!r.names || onlyNames([]any{m[word]})):
		return "enum", renamed
	case word == "oneOf" && m["anyOf"] == nil:
		return "anyOf", renamed
	default:
		return word, toDescription
	}
}

func onlyNames(list any) bool {
	values, ok := list.([]any)
	return ok && !slices.ContainsFunc(values, func(v any) bool {
		switch v.(type) {
		case string, json.Number:
			return false
		default:
			return true
		}
	})
}

// value rewrites the schemas in the value of a keyword.
func (r *rewriter) value(word string, value any, level int) (any, error) {
	if word != "properties" && word != "items" {
		r.unsure++
		defer func() { r.unsure-- }()
	}
	var failed error
	inner := func(_ string, sub any) any {
		out, err := r.schema(sub, level+1)
		if failed == nil {
			failed = err
		}
		return out
	}
	if word == "enum" {
		if _, is := value.([]any); !is {
			return []any{value}, nil // it was a const
		}
		return value, nil
	}
	if isBool(value) && word == "additionalProperties" {
		return value, nil
	}
	return withSchemas(map[string]any{word: value}, inner)[word], failed
}

// note tells a keyword in words, as far as words are worth their length.
func note(word string, value any) string {
	text, err := canon.Marshal(value)
	if err != nil {
		return word
	}
	return word + ": " + canon.Printable(string(text), 400)
}

func describe(out map[string]any, notes []string) {
	if len(notes) == 0 {
		return
	}
	text, _ := out["description"].(string)
	out["description"] = strings.TrimSpace(text + " (" + strings.Join(notes, "; ") + ")")
}

// reference says a schema that refers to another.
func (r *rewriter) reference(m map[string]any, ref string, level int) (any, error) {
	if r.closed {
		return r.checked(m, ref)
	}
	beside := maps.Clone(m)
	delete(beside, "$ref")
	target, err := resolve(r.root, ref)
	if !r.inlined || err != nil {
		return r.besides(beside, ref, level)
	}
	if slices.Contains(r.busy, ref) {
		describe(beside, []string{"of the same form as what it is a part of"})
		return r.keywords(beside, level)
	}
	r.busy = append(r.busy, ref)
	defer func() { r.busy = r.busy[:len(r.busy)-1] }()
	if whole, ok := target.(map[string]any); ok {
		whole = maps.Clone(whole)
		maps.Copy(whole, beside)
		return r.schema(whole, level)
	}
	return r.schema(target, level)
}

// besides keeps a reference. Beside one nothing is looked at, so what stands there goes around it.
func (r *rewriter) besides(beside map[string]any, ref string, level int) (any, error) {
	if r.inlined { // it leads to a place that only the validator finds
		describe(beside, []string{"as $ref " + ref + " says"})
		return r.keywords(beside, level)
	}
	there := map[string]any{"$ref": ref}
	if len(beside) == 0 {
		return there, nil
	}
	out, err := r.keywords(beside, level)
	if around, ok := out.(map[string]any); ok {
		if around["anyOf"] == nil {
			around["anyOf"] = []any{there}
		} else {
			describe(around, []string{"and as $ref " + ref + " says"})
		}
	}
	return out, err
}

// checked keeps a reference in strict mode, where it is to a definition and has nothing beside it but words.
func (r *rewriter) checked(m map[string]any, ref string) (any, error) {
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	if (!ok || strings.Contains(name, "/")) && (ref != "#" || !r.cyclic) {
		return nil, errors.New("the schema refers to something else than one of its $defs")
	}
	for word := range m {
		if word != "$ref" && word != "description" && word != "title" {
			return nil, fmt.Errorf("the schema has %q beside a reference", word)
		}
	}
	if !r.cyclic {
		if err := r.follow(ref); err != nil {
			return nil, err
		}
	}
	there := map[string]any{"$ref": ref}
	if m["description"] == nil {
		return there, nil
	}
	return map[string]any{"description": m["description"], "anyOf": []any{there}}, nil
}

// follow refuses a reference that leads back to itself.
func (r *rewriter) follow(ref string) error {
	if slices.Contains(r.busy, ref) {
		return errors.New("the schema refers to itself")
	}
	if r.size++; r.size > largest {
		return errors.New("the schema is too large for strict mode")
	}
	target, err := resolve(r.root, ref)
	if err != nil {
		return err
	}
	r.busy = append(r.busy, ref)
	defer func() { r.busy = r.busy[:len(r.busy)-1] }()
	return r.references(target)
}

// references follows every reference in a schema.
func (r *rewriter) references(s any) error {
	m, ok := s.(map[string]any)
	if !ok {
		return nil
	}
	if ref, ok := m["$ref"].(string); ok {
		if err := r.follow(ref); err != nil {
			return err
		}
	}
	var failed error
	withSchemas(m, func(_ string, sub any) any {
		if failed == nil {
			failed = r.references(sub)
		}
		return sub
	})
	return failed
}

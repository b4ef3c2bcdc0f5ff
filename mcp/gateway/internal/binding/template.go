package binding

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

// ErrMissing says that a pointer has no value.
var ErrMissing = errors.New("nothing is there")

// FillTemplate returns the value of a template for one call. Parts holds the
// parts of the call by name: input, output, before.
//
// A template is a JSON value with references to the call. FillTemplate replaces
// {"$from": pointer} by the value at the pointer. It replaces {"$each":
// pointer, "as": template} by a list with one element for each element there,
// which is /item in the inner template. The step * of a pointer matches every
// element. An empty template gives an object without members.
func FillTemplate(template json.RawMessage, parts map[string]canon.Value) (json.RawMessage, error) {
	if len(template) == 0 {
		return json.RawMessage("{}"), nil
	}
	t, err := canon.Parse(template, canon.DefaultLimits())
	if err != nil {
		return nil, err
	}
	v, err := filled(t, parts)
	if err != nil {
		return nil, err
	}
	return canon.Marshal(v)
}

func filled(v canon.Value, parts map[string]canon.Value) (any, error) {
	switch v.Kind() {
	case canon.Object:
		return filledObject(v, parts)
	case canon.Array:
		out := make([]any, 0, v.Len())
		for _, e := range v.Elements() {
			one, err := filled(e, parts)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
		return out, nil
	default:
		return v, nil
	}
}

func filledObject(v canon.Value, parts map[string]canon.Value) (any, error) {
	if from, ok := v.Get("$from"); ok {
		return LookUp(from.Text(), parts)
	}
	if each, ok := v.Get("$each"); ok {
		as, _ := v.Get("as")
		return eachOf(each.Text(), as, parts)
	}
	out := map[string]any{}
	for name, m := range v.Members() {
		one, err := filled(m, parts)
		if err != nil {
			return nil, err
		}
		out[name] = one
	}
	return out, nil
}

func eachOf(pointer string, as canon.Value, parts map[string]canon.Value) (any, error) {
	list, err := LookUp(pointer, parts)
	if err != nil {
		return nil, err
	}
	all, err := canon.From(list)
	if err != nil || all.Kind() != canon.Array {
		return nil, fmt.Errorf("%s is no list", pointer)
	}
	out := make([]any, 0, all.Len())
	for _, e := range all.Elements() {
		inner := map[string]canon.Value{"item": e}
		for name, p := range parts {
			if name != "item" {
				inner[name] = p
			}
		}
		one, err := filled(as, inner)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// LookUp returns the value of a pointer into one of the parts.
func LookUp(pointer string, parts map[string]canon.Value) (any, error) {
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	part, ok := parts[tokens[0]]
	if !ok {
		return nil, fmt.Errorf("%s: %w", pointer, ErrMissing)
	}
	found, err := pointed(part, tokens[1:])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pointer, err)
	}
	return found, nil
}

func pointed(v canon.Value, tokens []string) (any, error) {
	if len(tokens) == 0 {
		return v, nil
	}
	token := Unescaped(tokens[0])
	switch v.Kind() {
	case canon.Object:
		m, ok := v.Get(token)
		if !ok {
			return nil, ErrMissing
		}
		return pointed(m, tokens[1:])
	case canon.Array:
		if token == "*" {
			out := make([]any, 0, v.Len())
			for _, e := range v.Elements() {
				one, err := pointed(e, tokens[1:])
				if err != nil {
					return nil, err
				}
				out = append(out, one)
			}
			return out, nil
		}
		at, err := strconv.Atoi(token)
		if err == nil && at >= 0 {
			for i, e := range v.Elements() {
				if i == at {
					return pointed(e, tokens[1:])
				}
			}
		}
	default: // it contains nothing
	}
	return nil, ErrMissing
}

// Unescaped returns the name that a step of a pointer encodes.
func Unescaped(token string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(token) }

// Pointers returns the pointers of a template.
func Pointers(template json.RawMessage) ([]string, error) {
	if len(template) == 0 {
		return nil, nil
	}
	t, err := canon.Parse(template, canon.DefaultLimits())
	return pointersIn(t), err
}

func pointersIn(v canon.Value) (all []string) {
	if from, ok := v.Get("$from"); ok {
		return []string{from.Text()}
	}
	if each, ok := v.Get("$each"); ok {
		as, _ := v.Get("as")
		return append(pointersIn(as), each.Text())
	}
	for _, m := range v.Members() {
		all = append(all, pointersIn(m)...)
	}
	for _, e := range v.Elements() {
		all = append(all, pointersIn(e)...)
	}
	return all
}

package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

// template is a JSON value with references to a call. {"$from": pointer} is
// replaced by the value at the pointer. {"$each": pointer, "as": template} is
// replaced by a list with one element for each element there, which is /item in
// the inner template. The step * of a pointer matches every element.
type template struct{ value canon.Value }

// errMissing says that a pointer has no value.
var errMissing = errors.New("nothing is there")

// fill computes the value for one call. Parts holds the parts of the call by
// name: input, output, before.
func (t template) fill(parts map[string]canon.Value) (json.RawMessage, error) {
	if t.value.Kind() == canon.Invalid {
		return json.RawMessage("{}"), nil
	}
	v, err := filled(t.value, parts)
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
		return lookUp(from.Text(), parts)
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
	list, err := lookUp(pointer, parts)
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

// lookUp returns the value of a pointer into one of the parts.
func lookUp(pointer string, parts map[string]canon.Value) (any, error) {
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	part, ok := parts[tokens[0]]
	if !ok {
		return nil, fmt.Errorf("%s: %w", pointer, errMissing)
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
	token := unescaped(tokens[0])
	switch v.Kind() {
	case canon.Object:
		m, ok := v.Get(token)
		if !ok {
			return nil, errMissing
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
	return nil, errMissing
}

// unescaped returns the name that a step of a pointer encodes.
func unescaped(token string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(token) }

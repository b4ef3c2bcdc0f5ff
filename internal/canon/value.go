package canon

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
)

// Kind says which of the six kinds of JSON value a [Value] is.
type Kind uint8

// The kinds. Invalid is the kind of the zero [Value], which is no value.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// String returns the kind in lower case, as JSON Schema names types.
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "boolean"
	case Number:
		return "number"
	case String:
		return "string"
	case Array:
		return "array"
	case Object:
		return "object"
	default:
		return "invalid"
	}
}

// Value is one parsed JSON value. It is immutable, so copies share memory and
// any number of goroutines may read it. A part of a document keeps the text of
// the whole document in memory.
//
// The zero Value is no value: its kind is [Invalid], every accessor returns its
// zero result, and [Value.Canonical] returns nil.
type Value struct {
	node *node
	// text is the content of a string and the canonical text of any other scalar.
	text string
	kind Kind
}

// node holds the fields that only arrays and objects need, to keep Value small.
type node struct {
	members  []member // in canonical order, names unique
	elements []Value
}

type member struct {
	name  string
	value Value
}

// Is reports whether v and o are one value in memory. Values that are equal can
// be two.
func (v Value) Is(o Value) bool { return v == o }

// Kind returns the kind of the value.
func (v Value) Kind() Kind { return v.kind }

// Len returns the number of members of an object or elements of an array, else 0.
func (v Value) Len() int {
	if v.node == nil {
		return 0
	}
	return len(v.node.members) + len(v.node.elements)
}

// Get returns the member of an object by its exact name. ok is false if there
// is none, or for any other kind.
func (v Value) Get(name string) (Value, bool) {
	if v.kind != Object || v.node == nil {
		return Value{}, false
	}
	i, found := slices.BinarySearchFunc(v.node.members, name, func(m member, name string) int {
		return compareNames(m.name, name)
	})
	if !found {
		return Value{}, false
	}
	return v.node.members[i].value, true
}

// Members iterates over the members of an object in canonical order. Other
// kinds have none.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.node == nil {
			return
		}
		for _, m := range v.node.members {
			if !yield(m.name, m.value) {
				return
			}
		}
	}
}

// Elements iterates over the elements of an array with their indexes, from 0.
// Other kinds have none.
func (v Value) Elements() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if v.node == nil {
			return
		}
		for i, e := range v.node.elements {
			if !yield(i, e) {
				return
			}
		}
	}
}

// Text returns the content of a string, the canonical text of a number, or
// "true", "false" or "null". It returns "" for other kinds. Check the kind
// first: the string "1" and the number 1 have the same text.
func (v Value) Text() string { return v.text }

// Bool reports whether the value is the JSON value true.
func (v Value) Bool() bool { return v.kind == Bool && v.text == "true" }

// Any returns the value as map[string]any, []any, string, [json.Number] with
// canonical text, bool or nil. Each call builds a new result, which the caller
// owns. The zero Value and null both return nil.
func (v Value) Any() any {
	switch v.kind {
	case Object:
		m := make(map[string]any, v.Len())
		for name, member := range v.Members() {
			m[name] = member.Any()
		}
		return m
	case Array:
		s := make([]any, 0, v.Len())
		for _, e := range v.Elements() {
			s = append(s, e.Any())
		}
		return s
	case String:
		return v.text
	case Number:
		return json.Number(v.text)
	case Bool:
		return v.Bool()
	default:
		return nil
	}
}

// MarshalJSON returns the canonical form, so that a Value can be a field of a record. The zero Value is an error.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.kind == Invalid {
		return nil, fmt.Errorf("%w: there is no value here", ErrInvalid)
	}
	return v.Canonical(), nil
}

// UnmarshalJSON replaces the value with the one parsed from data, with the
// default limits.
func (v *Value) UnmarshalJSON(data []byte) error {
	parsed, err := Parse(data, DefaultLimits())
	if err != nil {
		return err
	}
	*v = parsed
	return nil
}

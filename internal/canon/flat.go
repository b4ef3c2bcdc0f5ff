package canon

import (
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Most inputs of calls are flat: maps of texts, whole numbers and booleans.
// flat makes the Value of such a map without writing and reading its text.
// [From] defines the result, and a test compares both.

// flatMap returns v as a map, if it is one and does not marshal itself.
func flatMap(v any) (map[string]any, bool) {
	if m, ok := v.(map[string]any); ok {
		return m, m != nil
	}
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Map || t.Key() != textType || t.Elem() != anyType || t.NumMethod() > 0 {
		return nil, false
	}
	m, ok := reflect.ValueOf(v).Convert(documentType).Interface().(map[string]any)
	return m, ok && m != nil
}

// flat returns the Value of a map and its canonical form. ok is false if the
// map holds anything but scalars, and for texts that are not UTF-8.
func flat(m map[string]any) (v Value, text []byte, ok bool) {
	if len(m) == 0 {
		return Value{kind: Object}, []byte("{}"), true
	}
	members := make([]member, 0, len(m))
	size := 2
	for name, of := range m {
		value, ok := scalar(of)
		if !ok || !utf8.ValidString(name) {
			return Value{}, nil, false
		}
		members = append(members, member{name, value})
		size += len(name) + len(value.text) + len(`"":"",`)
	}
	if size > plainBytes {
		return Value{}, nil, false
	}
	slices.SortFunc(members, func(a, b member) int { return compareNames(a.name, b.name) })
	v = Value{kind: Object, node: &node{members: members}}
	return v, v.append(make([]byte, 0, size)), true
}

func scalar(v any) (Value, bool) {
	switch v := v.(type) {
	case string:
		return Value{kind: String, text: v}, utf8.ValidString(v)
	case bool:
		return Value{kind: Bool, text: strconv.FormatBool(v)}, true
	case int:
		return Value{kind: Number, text: strconv.Itoa(v)}, true
	case nil:
		return Value{kind: Null, text: "null"}, true
	default:
		return Value{}, false
	}
}

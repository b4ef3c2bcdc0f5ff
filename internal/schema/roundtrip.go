package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// CheckRoundTrip returns an error for a Go type whose values change in a round
// trip through JSON: it contains an interface, which loses its type, a field
// that is left out, or a kind that JSON does not have. The error names the
// field.
func CheckRoundTrip(t reflect.Type) error {
	return roundTripChecker{}.check(t, "the type "+t.String())
}

// roundTripChecker holds the types that were checked.
type roundTripChecker map[reflect.Type]bool

func (s roundTripChecker) check(t reflect.Type, where string) error {
	if s[t] {
		return nil
	}
	s[t] = true
	if own, both := marshals(t); own {
		if !both {
			return undeclared(where, "writes itself as JSON and does not read itself, or the other way round")
		}
		return nil
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return nil
	case reflect.Pointer:
		return s.check(t.Elem(), where)
	case reflect.Slice, reflect.Array:
		return s.check(t.Elem(), where+"[]")
	case reflect.Map:
		if k := t.Key().Kind(); k != reflect.String {
			return undeclared(where, fmt.Sprintf("has keys of type %s; JSON has names, so make them strings", t.Key()))
		}
		if own, _ := marshals(t.Key()); own {
			return undeclared(where, "has keys that write themselves; make them plain strings")
		}
		return s.check(t.Elem(), where+"{}")
	case reflect.Struct:
		return s.fields(t, where)
	case reflect.Interface:
		return undeclared(where, fmt.Sprintf("is the interface %s, and what it held is not told by JSON; name the type", t))
	default:
		return undeclared(where, fmt.Sprintf("is a %s, which JSON does not have", t.Kind()))
	}
}

func (s roundTripChecker) fields(t reflect.Type, where string) error {
	names := map[string]string{}
	for i := range t.NumField() {
		f := t.Field(i)
		at := where + "." + f.Name
		if strings.HasPrefix(where, "the type ") {
			at = "field " + f.Name
		}
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported():
			return undeclared(at, "is not exported, so that JSON leaves it out")
		case f.Tag.Get("json") == "-":
			return undeclared(at, "is left out of the JSON by its tag")
		case f.Anonymous && tag == "":
			return undeclared(at, "is embedded; give it a name")
		}
		if tag == "" {
			tag = f.Name
		}
		if other, twice := names[strings.ToLower(tag)]; twice {
			return undeclared(at, "has the JSON name of field "+other)
		}
		names[strings.ToLower(tag)] = f.Name
		if err := s.check(f.Type, at); err != nil {
			return err
		}
	}
	return nil
}

var (
	writer     = reflect.TypeFor[json.Marshaler]()
	reader     = reflect.TypeFor[json.Unmarshaler]()
	textWriter = reflect.TypeFor[encoding.TextMarshaler]()
	textReader = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// marshals reports whether a type has its own JSON, and whether in both
// directions.
func marshals(t reflect.Type) (own, both bool) {
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer {
		return false, false
	}
	p := reflect.PointerTo(t)
	writes, reads := t.Implements(writer), p.Implements(reader)
	if !writes && !reads {
		writes, reads = t.Implements(textWriter), p.Implements(textReader)
	}
	if !writes && (p.Implements(writer) || p.Implements(textWriter)) {
		return true, false // only if it is addressable
	}
	return writes || reads, writes && reads
}

func undeclared(where, why string) error { return fmt.Errorf("%s %s", where, why) }

package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	jsontype "github.com/google/jsonschema-go/jsonschema"
	"github.com/remit-dev/remit/internal/canon"
)

// ForType returns the schema, in canonical form, of the JSON that
// [canon.Value.Decode] reads into a T. Structs are closed objects. The json
// tags give member names and optional members (omitempty, omitzero), the
// jsonschema tags give descriptions. For the tags enum, default and required
// see [deriver.tags]. A pointer may be null, and so may a slice. Types that
// write themselves as text are strings.
//
// It rejects types without such a schema, naming the field: channels,
// functions, complex numbers, interfaces other than any, maps whose keys are
// not strings, types that refer to themselves, types with a MarshalJSON of
// their own, and tag options that change how a field is read. Errors wrap
// [ErrSchema].
func ForType[T any]() ([]byte, error) { return Of(reflect.TypeFor[T]()) }

// Of is [ForType] for a type that is only known at run time.
func Of(t reflect.Type) ([]byte, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if doc, ok := documents.Load(t); ok {
		return slices.Clone(doc.([]byte)), nil //nolint:errcheck // nothing else is stored
	}
	doc, compiled, err := derive(t)
	if err != nil {
		return nil, err
	}
	derived.Store(string(doc), compiled)
	documents.Store(t, doc)
	return slices.Clone(doc), nil
}

// What types became: documents by type, and compiled schemas by document. A program makes the same tools for each of its
// runtimes, and the document of each tool is compiled again where it is declared. The types of a program are few. Documents
// that come from elsewhere are not kept: there is no limit to them.
var documents, derived sync.Map

func derive(t reflect.Type) (doc []byte, compiled *Schema, err error) {
	d := deriver{known: knownTypes(), busy: map[reflect.Type]bool{}}
	if err := d.check(t, t.String()); err != nil {
		return nil, nil, err
	}
	s, err := jsontype.ForType(t, &jsontype.ForOptions{TypeSchemas: d.known})
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrSchema, err)
	}
	if err := d.tags(t, s, t.String()); err != nil {
		return nil, nil, err
	}
	if doc, err = canon.Marshal(s); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrSchema, err)
	}
	compiled, err = Compile(doc)
	return doc, compiled, err
}

// knownTypes returns the types whose JSON differs from that of their Go kind.
func knownTypes() map[reflect.Type]*jsontype.Schema {
	return map[reflect.Type]*jsontype.Schema{
		reflect.TypeFor[time.Time]():   {Type: "string", Format: "date-time"},
		reflect.TypeFor[[]byte]():      {Type: "string", ContentEncoding: "base64"},
		reflect.TypeFor[json.Number](): {Type: "number"},
		reflect.TypeFor[big.Int]():     {Type: "integer"},
		// All types are listed because a pointer to it would otherwise become a
		// schema of null only.
		reflect.TypeFor[json.RawMessage](): {Types: []string{"null", "boolean", "number", "string", "array", "object"}},
	}
}

// deriver checks a type before the schema is made. The library makes a schema
// of nearly everything; deriver rejects types that the decoder reads
// differently than the schema says.
type deriver struct {
	known map[reflect.Type]*jsontype.Schema
	busy  map[reflect.Type]bool
}

func refuse(where, text string) error { return fmt.Errorf("%w: %s %s", ErrSchema, where, text) }

func (d *deriver) check(t reflect.Type, where string) error {
	if d.known[t] != nil {
		return nil
	}
	if done, err := d.marshals(t, where); done || err != nil {
		return err
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return nil
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return refuse(where, "is an interface with methods, which nothing can be decoded into")
		}
		return nil
	case reflect.Pointer:
		return d.check(t.Elem(), where)
	case reflect.Array:
		return d.check(t.Elem(), where+"[]")
	case reflect.Slice:
		return d.slice(t, where)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return refuse(where, "is a map with keys of type "+t.Key().String()+", want string keys")
		}
		return d.check(t.Elem(), where+"[]")
	case reflect.Struct:
		return d.structure(t, where)
	default:
		return refuse(where, "is of type "+t.String()+", which has no JSON form")
	}
}

// marshals handles types that write themselves. As text they are strings; as
// JSON they could be anything.
func (d *deriver) marshals(t reflect.Type, where string) (done bool, err error) {
	p := reflect.PointerTo(t)
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer {
		return false, nil
	}
	if p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return false, refuse(where, "is of type "+t.String()+", whose JSON is its own; write its schema by hand")
	}
	reads, writes := p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()), p.Implements(reflect.TypeFor[encoding.TextMarshaler]())
	if reads != writes {
		return false, refuse(where, "is of type "+t.String()+", which is text in one direction only")
	}
	if reads {
		d.known[t] = &jsontype.Schema{Type: "string"}
	}
	return reads, nil
}

func (d *deriver) slice(t reflect.Type, where string) error {
	if t.Elem().Kind() == reflect.Uint8 {
		d.known[t] = d.known[reflect.TypeFor[[]byte]()]
		return nil
	}
	return d.check(t.Elem(), where+"[]")
}

func (d *deriver) structure(t reflect.Type, where string) error {
	if d.busy[t] {
		return refuse(where, "is of type "+t.String()+", which contains itself")
	}
	d.busy[t] = true
	defer delete(d.busy, t)
	names := map[string]bool{}
	for _, field := range reflect.VisibleFields(t) {
		name, used, err := d.field(field, where)
		if err != nil {
			return err
		}
		if !used {
			continue
		}
		if names[strings.ToLower(name)] {
			return refuse(where+"."+field.Name, "has the JSON name of another field, or differs from one only in case")
		}
		names[strings.ToLower(name)] = true
	}
	return nil
}

// field checks one field and returns its JSON name, and whether it has one.
func (d *deriver) field(field reflect.StructField, where string) (name string, used bool, err error) {
	where += "." + field.Name
	tag, tagged := field.Tag.Lookup("json")
	if tag == "-" {
		if field.Anonymous {
			return "", false, refuse(where, "is embedded and left out, which the schema cannot say; name the field")
		}
		return "", false, nil
	}
	if field.Anonymous {
		if tagged || field.Type.Kind() != reflect.Struct {
			return "", false, refuse(where, "is embedded, want a struct without a json tag")
		}
		_, err := d.marshals(field.Type, where)
		if err == nil && d.known[field.Type] != nil {
			err = refuse(where, "is embedded and writes itself as text")
		}
		return "", false, err
	}
	if !field.IsExported() {
		return "", false, nil
	}
	name, options, _ := strings.Cut(tag, ",")
	for option := range strings.SplitSeq(options, ",") {
		if option != "" && option != "omitempty" && option != "omitzero" {
			return "", false, refuse(where, "has the json option "+option+", which the schema cannot say")
		}
	}
	if name == "" {
		name = field.Name
	}
	return name, true, d.check(field.Type, where)
}

package schema

import (
	"errors"
	"fmt"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ErrSchema is wrapped by the errors of [Compile] and [ForType] for an unusable
// schema or type.
var ErrSchema = errors.New("invalid schema")

// ErrInvalid is returned by [Schema.Validate], with a text of its own, for a
// value that the schema rejects.
var ErrInvalid = errors.New("the value does not match its schema")

// PlaceError is wrapped by an error of [Compile] that knows the wrong place of
// the document.
type PlaceError struct {
	Path []string // member names and indexes
	Text string
	More []*PlaceError // the other wrong places, as far as they are known
}

// Error names the first place.
func (e *PlaceError) Error() string {
	return fmt.Sprintf("%v %s: %s", ErrSchema, canon.Place(e.Path), e.Text)
}

// Unwrap returns ErrSchema.
func (e *PlaceError) Unwrap() error { return ErrSchema }

// Schema is a compiled schema. It is immutable and safe for concurrent use. A
// nil or zero Schema rejects everything.
type Schema struct {
	compiled  *jsonschema.Schema
	root      *part
	quick     *fastValidator
	presets   bool // a part of it has a default
	canonical []byte
}

// limits bound a schema document: 1 MiB, 64 levels.
func limits() canon.Limits { return canon.Limits{Bytes: 1 << 20, Depth: 64} }

// Compile reads a schema document: strict JSON of at most 1 MiB, 64 levels and 10,000 subschemas, draft 2020-12 (the default
// when $schema is absent), self-contained. It reads no file and opens no connection. Errors wrap [ErrSchema] and name the
// place in the document.
func Compile(doc []byte) (*Schema, error) {
	if s, ok := derived.Load(string(doc)); ok {
		return s.(*Schema), nil //nolint:errcheck // nothing else is stored
	}
	v, err := canon.Parse(doc, limits())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchema, err)
	}
	if err := checkReach(v); err != nil {
		return nil, err
	}
	compiled, err := compile(v)
	if err != nil {
		return nil, err
	}
	root, presets, err := newGraph(compiled)
	if err != nil {
		return nil, err
	}
	return &Schema{compiled: compiled, root: root, quick: newQuick(compiled), presets: presets, canonical: v.Canonical()}, nil
}

// FreeForm returns the schema of an input that is one string.
func FreeForm() *Schema {
	s, err := Compile([]byte(`{"type":"string"}`))
	if err != nil {
		panic("schema: the free-form schema does not compile: " + err.Error()) // a constant: only a broken build can fail here
	}
	return s
}

// Canonical returns the schema document in canonical form, nil for a zero Schema. The caller owns the result.
func (s *Schema) Canonical() []byte {
	if s == nil {
		return nil
	}
	return append([]byte(nil), s.canonical...)
}

// Closed reports whether every object that the schema accepts has declared
// members only: additionalProperties or unevaluatedProperties is false, here or
// in a referenced or included schema, and no pattern declares further names.
func (s *Schema) Closed() bool { return s != nil && s.root != nil && s.root.closed() }

// Validate returns nil for a value that the schema accepts. Otherwise the error
// is [ErrInvalid] to errors.Is. Its text names up to five problems in the order
// of their places, in words for the caller of the tool:
//
//	argument "path" is missing, want a string; argument "count" is a string, want an integer
func (s *Schema) Validate(v canon.Value) error { return s.ValidateAs("the input", "argument", v) }

// ValidateAs is [Schema.Validate] with other words for the whole value and for
// its parts, such as "the output" and "field".
func (s *Schema) ValidateAs(whole, part string, v canon.Value) error {
	words := messageText{whole: whole, part: part}
	if s == nil || s.root == nil || v.Kind() == canon.Invalid {
		return &invalidError{text: whole + " cannot be judged, there is no schema or no value"}
	}
	if s.quick.accepts(v) {
		return nil
	}
	w := walk{}
	if !w.all(s.root, v) {
		return &invalidError{text: whole + " is too large for its schema, which would take too long to judge it"}
	}
	err := s.compiled.Validate(v.Any())
	if err == nil && len(w.variants) == 0 {
		return nil
	}
	return words.refuse(s.root, v, w.variants, err)
}

// invalidError has the text of a rejection without a prefix: the model reads it
// unchanged.
type invalidError struct{ text string }

func (e *invalidError) Error() string { return e.text }

func (e *invalidError) Unwrap() error { return ErrInvalid }

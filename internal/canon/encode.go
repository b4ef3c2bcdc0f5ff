package canon

import (
	"bytes"
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Most journaled values are plain: structs, lists, maps and texts. encodePlain
// writes the canonical form of such values directly, at a fifth of the cost of
// writing JSON, reading it and writing it again. It leaves other values to
// [From]: floating point, types that marshal themselves, embedded pointers,
// invalid UTF-8, very large or deep values. From also returns the errors. From
// defines the result of encodePlain, and a test compares both.

const (
	plainDepth = 100      // below the default limit of a document
	plainBytes = 8 << 20  // below the default limit for every possible spelling: at most six bytes for one
	keptBytes  = 64 << 10 // larger buffers are not used again
)

// plans holds a *plan for each reflect.Type that was encoded; they never change.
var plans sync.Map

// plan describes how values of one type are written.
type plan struct {
	write func(e *plainEncoder, v reflect.Value)
}

// plainEncoder writes one document.
type plainEncoder struct {
	dst   []byte
	depth int
	odd   bool // a value is not plain: the written bytes do not count
}

// encodePlain returns the canonical form of a plain value. ok is false for any
// other value.
func encodePlain(v any) ([]byte, bool) {
	if v == nil {
		return []byte("null"), true
	}
	e, ok := encoders.Get().(*plainEncoder)
	if !ok {
		e = &plainEncoder{}
	}
	rv := reflect.ValueOf(v)
	planOf(rv.Type()).write(e, rv)
	ok = !e.odd && len(e.dst) <= plainBytes
	out := e.dst
	if cap(out) > keptBytes {
		return out[:len(out):len(out)], ok
	}
	if ok {
		out = bytes.Clone(out)
	}
	*e = plainEncoder{dst: e.dst[:0]}
	encoders.Put(e)
	return out, ok
}

// appendPlain appends what encodePlain returns to dst. If ok is false, it
// returns dst as it was.
func appendPlain(dst []byte, v any) (out []byte, ok bool) {
	if v == nil {
		return append(dst, "null"...), true
	}
	e, ok := encoders.Get().(*plainEncoder)
	if !ok {
		e = &plainEncoder{}
	}
	own := e.dst
	e.dst = dst
	rv := reflect.ValueOf(v)
	planOf(rv.Type()).write(e, rv)
	out, ok = e.dst, !e.odd && len(e.dst)-len(dst) <= plainBytes
	*e = plainEncoder{dst: own}
	encoders.Put(e)
	if !ok {
		return dst, false
	}
	return out, true
}

// encoders reuses the buffers of earlier documents.
var encoders sync.Pool

// planOf returns the plan of a type. Types may contain themselves, so plans
// refer to plans that are not yet complete; they are shared only after all are.
func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan) //nolint:errcheck // nothing else is stored
	}
	making := map[reflect.Type]*plan{}
	p := makePlan(t, making)
	for t, p := range making {
		plans.LoadOrStore(t, p)
	}
	return p
}

func makePlan(t reflect.Type, making map[reflect.Type]*plan) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan) //nolint:errcheck // nothing else is stored
	}
	if p, ok := making[t]; ok {
		return p
	}
	p := &plan{}
	making[t] = p
	p.write = writerOf(t, making)
	return p
}

func writerOf(t reflect.Type, making map[reflect.Type]*plan) func(*plainEncoder, reflect.Value) {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return (*plainEncoder).raw
	case t == reflect.TypeFor[time.Time]():
		return (*plainEncoder).time
	case t == reflect.TypeFor[json.Number](), marshalsItself(t), t.Kind() != reflect.Pointer && marshalsItself(reflect.PointerTo(t)):
		return (*plainEncoder).odds
	}
	switch t.Kind() {
	case reflect.Bool:
		return func(e *plainEncoder, v reflect.Value) { e.dst = strconv.AppendBool(e.dst, v.Bool()) }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(e *plainEncoder, v reflect.Value) { e.dst = strconv.AppendInt(e.dst, v.Int(), 10) }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(e *plainEncoder, v reflect.Value) { e.dst = strconv.AppendUint(e.dst, v.Uint(), 10) }
	case reflect.String:
		return func(e *plainEncoder, v reflect.Value) { e.text(v.String()) }
	case reflect.Interface:
		return (*plainEncoder).dynamic
	case reflect.Pointer:
		return pointerWriter(makePlan(t.Elem(), making))
	case reflect.Slice:
		return sliceWriter(t, making)
	case reflect.Map:
		return mapWriter(t, making)
	case reflect.Struct:
		return structWriter(t, making)
	default:
		return (*plainEncoder).odds
	}
}

func marshalsItself(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

func (e *plainEncoder) odds(reflect.Value) { e.odd = true }

func (e *plainEncoder) null() { e.dst = append(e.dst, "null"...) }

// in reports whether one more level is allowed.
func (e *plainEncoder) in() bool {
	e.depth++
	e.odd = e.odd || e.depth > plainDepth || len(e.dst) > plainBytes
	return !e.odd
}

func (e *plainEncoder) text(s string) {
	e.odd = e.odd || !utf8.ValidString(s)
	e.dst = appendString(e.dst, s)
}

func (e *plainEncoder) raw(v reflect.Value) {
	if v.IsNil() {
		e.null()
		return
	}
	if text := v.Bytes(); IsCanonical(text) {
		e.dst = append(room(e.dst, len(text)), text...)
		return
	}
	value, err := Parse(v.Bytes(), Limits{Bytes: plainBytes, Depth: plainDepth - e.depth})
	if err != nil {
		e.odd = true
		return
	}
	e.dst = value.append(e.dst)
}

func (e *plainEncoder) time(v reflect.Value) {
	at, ok := v.Interface().(time.Time)
	e.dst = append(e.dst, '"')
	text, err := at.AppendText(e.dst)
	e.odd = e.odd || !ok || err != nil
	e.dst = append(text, '"')
}

func (e *plainEncoder) dynamic(v reflect.Value) {
	if v.IsNil() {
		e.null()
		return
	}
	planOf(v.Elem().Type()).write(e, v.Elem())
}

func pointerWriter(to *plan) func(*plainEncoder, reflect.Value) {
	return func(e *plainEncoder, v reflect.Value) {
		if v.IsNil() {
			e.null()
		} else if e.in() {
			to.write(e, v.Elem())
			e.depth--
		}
	}
}

func sliceWriter(t reflect.Type, making map[reflect.Type]*plan) func(*plainEncoder, reflect.Value) {
	if t.Elem().Kind() == reflect.Uint8 { // encoding/json decides by its own rules whether to write base64
		return (*plainEncoder).odds
	}
	element := makePlan(t.Elem(), making)
	return func(e *plainEncoder, v reflect.Value) {
		if v.IsNil() {
			e.null()
			return
		}
		if !e.in() {
			return
		}
		e.dst = append(e.dst, '[')
		for i := range v.Len() {
			if i > 0 {
				e.dst = append(e.dst, ',')
			}
			element.write(e, v.Index(i))
		}
		e.dst = append(e.dst, ']')
		e.depth--
	}
}

func mapWriter(t reflect.Type, making map[reflect.Type]*plan) func(*plainEncoder, reflect.Value) {
	if t.Key().Kind() != reflect.String || marshalsItself(t.Key()) {
		return (*plainEncoder).odds
	}
	if t.Key() == textType && t.Elem() == anyType {
		return func(e *plainEncoder, v reflect.Value) {
			m, _ := v.Convert(documentType).Interface().(map[string]any)
			e.document(m)
		}
	}
	element := makePlan(t.Elem(), making)
	return func(e *plainEncoder, v reflect.Value) {
		if v.IsNil() {
			e.null()
			return
		}
		if !e.in() {
			return
		}
		names := v.MapKeys()
		slices.SortFunc(names, func(a, b reflect.Value) int { return compareNames(a.String(), b.String()) })
		e.dst = append(e.dst, '{')
		for i, name := range names {
			if i > 0 {
				e.dst = append(e.dst, ',')
			}
			e.text(name.String())
			e.dst = append(e.dst, ':')
			element.write(e, v.MapIndex(name))
		}
		e.dst = append(e.dst, '}')
		e.depth--
	}
}

var (
	textType     = reflect.TypeFor[string]()
	anyType      = reflect.TypeFor[any]()
	documentType = reflect.TypeFor[map[string]any]()
)

// document writes the most frequent map, of arguments, without a copy of each
// name and value.
func (e *plainEncoder) document(m map[string]any) {
	if m == nil {
		e.null()
		return
	}
	if !e.in() {
		return
	}
	names := slices.AppendSeq(make([]string, 0, len(m)), maps.Keys(m))
	slices.SortFunc(names, compareNames[string])
	e.dst = append(e.dst, '{')
	for i, name := range names {
		if i > 0 {
			e.dst = append(e.dst, ',')
		}
		e.text(name)
		e.dst = append(e.dst, ':')
		if value := m[name]; value == nil {
			e.null()
		} else {
			planOf(reflect.TypeOf(value)).write(e, reflect.ValueOf(value))
		}
	}
	e.dst = append(e.dst, '}')
	e.depth--
}

// plainField is a written field of a struct.
type plainField struct {
	name   string
	key    string // with quotes and colon
	index  []int  // of the field, after those of its embedding structs
	plan   *plan
	absent func(reflect.Value) bool // nil: the field is always present
}

// of returns the field's value in a struct.
func (f *plainField) of(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		v = v.Field(i)
	}
	return v
}

func structWriter(t reflect.Type, making map[reflect.Type]*plan) func(*plainEncoder, reflect.Value) {
	fields, ok := plainFields(t, nil, making)
	if !ok || !distinct(fields) {
		return (*plainEncoder).odds
	}
	return func(e *plainEncoder, v reflect.Value) {
		if !e.in() {
			return
		}
		e.dst = append(e.dst, '{')
		separate := false
		for i := range fields {
			f := &fields[i]
			value := f.of(v)
			if f.absent != nil && f.absent(value) {
				continue
			}
			if separate {
				e.dst = append(e.dst, ',')
			}
			separate = true
			e.dst = append(e.dst, f.key...)
			f.plan.write(e, value)
		}
		e.dst = append(e.dst, '}')
		e.depth--
	}
}

// plainFields returns the fields of a struct, and of its embedded structs. ok
// is false if their names or tags need rules that are not implemented here.
func plainFields(t reflect.Type, at []int, making map[reflect.Type]*plan) (fields []plainField, ok bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		here := append(slices.Clip(at), i)
		if f.Anonymous {
			if !f.IsExported() || tag != "" || f.Type.Kind() != reflect.Struct || marshalsItself(reflect.PointerTo(f.Type)) {
				return nil, false
			}
			inside, ok := plainFields(f.Type, here, making)
			if !ok {
				return nil, false
			}
			fields = append(fields, inside...)
			continue
		}
		if !f.IsExported() || tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" {
			name = f.Name
		}
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			return nil, false
		}
		absent, ok := absence(options, f.Type)
		if !ok {
			return nil, false
		}
		fields = append(fields, plainField{name: name, key: `"` + name + `":`, index: here, plan: makePlan(f.Type, making), absent: absent})
	}
	return fields, true
}

// distinct sorts fields into canonical order, and reports whether each name
// occurs once. The rules that select one of several fields are not implemented
// here.
func distinct(fields []plainField) bool {
	slices.SortFunc(fields, func(a, b plainField) int { return compareNames(a.name, b.name) })
	for i := 1; i < len(fields); i++ {
		if fields[i].name == fields[i-1].name {
			return false
		}
	}
	return true
}

// absence returns the condition under which a field with these options is left
// out, or nil if it never is. ok is false for options that are not implemented
// here.
func absence(options string, t reflect.Type) (absent func(reflect.Value) bool, ok bool) {
	switch {
	case options == "":
		return nil, true
	case options == "omitempty":
		return isEmpty, true
	case options == "omitzero" && t == reflect.TypeFor[time.Time]():
		return func(v reflect.Value) bool {
			at, ok := v.Interface().(time.Time)
			return ok && at.IsZero()
		}, true
	default:
		return nil, false
	}
}

// isEmpty reports whether omitempty leaves a value out.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}

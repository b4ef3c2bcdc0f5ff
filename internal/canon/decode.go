package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// From returns the Value of a Go value as encoding/json writes it. It rejects a
// string that is not UTF-8, which encoding/json would replace silently, and
// everything that [Parse] rejects with the default limits.
func From(v any) (Value, error) {
	value, _, err := FromText(v)
	return value, err
}

// FromText is [From]. It also returns the canonical form of the value, which
// the caller owns.
func FromText(v any) (Value, []byte, error) {
	if m, ok := flatMap(v); ok {
		if value, text, ok := flat(m); ok {
			return value, text, nil
		}
	}
	if text, ok := encodePlain(v); ok {
		value, err := Parse(text, DefaultLimits())
		return value, text, err
	}
	value, err := reread(v)
	return value, value.Canonical(), err
}

// reread is From for every value: it writes JSON and reads it.
func reread(v any) (Value, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return Value{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	data := buf.Bytes()
	// encoding/json writes this escape for bytes that are not UTF-8, and a real
	// U+FFFD as itself. Marshalers may write the escape too, so it needs a
	// check, not a rejection.
	if bytes.Contains(data, []byte(`\ufffd`)) {
		if _, err := jsonv2.Marshal(v, jsonv1.DefaultOptionsV1(), jsontext.AllowInvalidUTF8(false)); err != nil {
			return Value{}, fmt.Errorf("%w: a string that is not UTF-8", ErrInvalid)
		}
	}
	return Parse(data, DefaultLimits())
}

// Marshal returns the canonical form of a Go value as encoding/json writes it; see [From].
func Marshal(v any) ([]byte, error) {
	if text, ok := encodePlain(v); ok {
		return text, nil
	}
	value, err := reread(v)
	if err != nil {
		return nil, err
	}
	return value.Canonical(), nil
}

// Append appends what [Marshal] returns to dst. After an error it returns dst as
// it was.
func Append(dst []byte, v any) ([]byte, error) {
	if out, ok := appendPlain(dst, v); ok {
		return out, nil
	}
	value, err := reread(v)
	if err != nil {
		return dst, err
	}
	return value.append(dst), nil
}

// AppendText appends the canonical form of a string. ok is false if it is not
// valid UTF-8; the result is then of no use.
func AppendText(dst []byte, text string) (_ []byte, ok bool) {
	return appendString(dst, text), utf8.ValidString(text)
}

// Decode parses data with the default limits and stores it in the Go value that into points to; see [Value.Decode].
func Decode(data []byte, into any) error {
	if IsCanonical(data) && len(data) <= DefaultLimits().Bytes {
		return decodeCanonical(data, into)
	}
	v, err := Parse(data, DefaultLimits())
	if err != nil {
		return err
	}
	return v.Decode(into)
}

// Decode stores the value in the Go value that into points to, which should be
// zero: objects are merged into the existing value. Types are read as
// encoding/json writes them ([]byte as base64, time.Duration in nanoseconds),
// with these differences: member names match exactly, an unknown one is
// rejected, and a number in an interface becomes a [json.Number]. Decode reads
// the canonical form, so 1.0 fits an int and a json.RawMessage receives
// canonical bytes. A float64 field rounds, as in Go.
//
// Errors wrap [ErrInvalid] and name the place, the type that was found and the
// wanted type.
func (v Value) Decode(into any) error {
	if v.kind == Invalid {
		return fmt.Errorf("%w: there is no value here", ErrInvalid)
	}
	return decodeCanonical(v.Canonical(), into)
}

func decodeCanonical(text []byte, into any) error {
	if target := reflect.ValueOf(into); target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("canon: Decode into %T, want a pointer that is not nil", into)
	}
	if err := jsonv2.Unmarshal(text, into, decodeOptions()); err != nil {
		return decodeError(err)
	}
	return nil
}

// decodeOptions are created once: with new options the decoder would look up
// again, for every type, how to decode it.
var decodeOptions = sync.OnceValue(func() jsonv2.Options {
	return jsonv2.JoinOptions(
		jsonv2.RejectUnknownMembers(true),
		jsonv1.FormatDurationAsNano(true),
		jsonv1.FormatByteArrayAsArray(true),
		jsonv1.StringifyWithLegacySemantics(true),
		jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
			jsonv2.UnmarshalFromFunc(anyNumber), jsonv2.UnmarshalFromFunc(exactNumber),
		)),
	)
})

// anyNumber keeps numbers in interfaces exact; the default would round them to float64.
func anyNumber(dec *jsontext.Decoder, into *any) error {
	if dec.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	token, err := dec.ReadToken()
	*into = json.Number(token.String())
	return err
}

// exactNumber reads a json.Number, which this decoder treats as a string.
func exactNumber(dec *jsontext.Decoder, into *json.Number) error {
	switch dec.PeekKind() {
	case '0':
		token, err := dec.ReadToken()
		*into = json.Number(token.String())
		return err
	case 'n':
		return errors.ErrUnsupported
	default:
		return errors.New("want a number")
	}
}

// decodeError rewrites an error of the decoder, whose text may contain values
// of the document. It keeps an error that wraps ErrInvalid: that comes from
// this package, from a Decode inside an UnmarshalJSON.
func decodeError(err error) error {
	semantic, ok := errors.AsType[*jsonv2.SemanticError](err)
	if !ok {
		return fmt.Errorf("%w: not what the Go type takes", ErrInvalid)
	}
	tokens := pointerTokens(semantic.JSONPointer)
	wanted := semantic.GoType
	for wanted != nil && wanted.Kind() == reflect.Pointer {
		wanted = wanted.Elem()
	}
	switch {
	case errors.Is(semantic.Err, jsonv2.ErrUnknownName):
		return fmt.Errorf("%w %s: unknown name, want %s", ErrInvalid, Place(tokens), knownNames(wanted))
	case errors.Is(semantic.Err, strconv.ErrRange):
		return fmt.Errorf("%w %s: a number out of the range of %s", ErrInvalid, Place(tokens), wanted)
	case errors.Is(semantic.Err, ErrInvalid):
		return fmt.Errorf("%w %s: %w", ErrInvalid, Place(tokens), semantic.Err)
	case wanted == nil:
		return fmt.Errorf("%w %s: not what the Go type takes", ErrInvalid, Place(tokens))
	default:
		return fmt.Errorf("%w %s: does not fit, want a value for %s", ErrInvalid, Place(tokens), wanted)
	}
}

func pointerTokens(p jsontext.Pointer) []string {
	var tokens []string
	for t := range p.Tokens() {
		tokens = append(tokens, t)
	}
	return tokens
}

// knownNames lists the member names of a struct type for a message.
func knownNames(t reflect.Type) string {
	if t == nil || t.Kind() != reflect.Struct {
		return "a known one"
	}
	var names []string
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || name == "-" || (field.Anonymous && name == "") {
			continue
		}
		if name == "" {
			name = field.Name
		}
		names = append(names, strconv.Quote(name))
	}
	if len(names) == 0 {
		return "none"
	}
	return "one of " + strings.Join(names, ", ")
}

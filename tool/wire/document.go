package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/remit-dev/remit/internal/canon"
)

// A turn is read level by level, and only as far down as tool calls lie: what is opaque stays unread, also where it is JSON
// that remit itself would refuse, and one bad argument does not make a whole turn unreadable. On the levels that are read,
// names match exactly and occur once.

var errNotJSON = errors.New("not JSON")

// object is one level: its members by name, without those that are null.
type object map[string]json.RawMessage

func readObject(raw []byte) (object, error) {
	o, seen := object{}, map[string]bool{}
	return o, readLevel(raw, '{', func(dec *jsontext.Decoder) error {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		if seen[name] {
			return fmt.Errorf("member %q occurs twice", canon.Printable(name, 80))
		}
		seen[name] = true
		value, err := dec.ReadValue()
		if err == nil && value.Kind() != 'n' {
			o[name] = bytes.Clone(value)
		}
		return err
	})
}

func readArray(raw []byte) (list []json.RawMessage, err error) {
	return list, readLevel(raw, '[', func(dec *jsontext.Decoder) error {
		value, err := dec.ReadValue()
		list = append(list, bytes.Clone(value))
		return err
	})
}

// readLevel reads one array or object, the whole text, and calls each for what lies in it.
func readLevel(raw []byte, open jsontext.Kind, each func(*jsontext.Decoder) error) error {
	if len(raw) > canon.DefaultLimits().Bytes {
		return errors.New("too large")
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	token, err := dec.ReadToken()
	switch {
	case err != nil:
		return errNotJSON
	case token.Kind() != open && open == '{':
		return errors.New("not an object")
	case token.Kind() != open:
		return errors.New("not an array")
	}
	for dec.PeekKind() != '}' && dec.PeekKind() != ']' {
		if err := each(dec); err != nil {
			if _, ok := errors.AsType[*jsontext.SyntacticError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
				return errNotJSON // whose text may hold some of the document
			}
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return errNotJSON
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errNotJSON
	}
	return nil
}

// text is a member that is a string; "" where there is none.
func (o object) text(name string) string {
	text, ok := textOf(o[name])
	if !ok {
		return ""
	}
	return text
}

func (o object) object(name string) (object, error) {
	in, err := readObject(o[name])
	if err != nil {
		return nil, fmt.Errorf("%q is %w", name, err)
	}
	return in, nil
}

// array is a member that is a list; it may be absent.
func (o object) array(name string) ([]json.RawMessage, error) {
	if o[name] == nil {
		return nil, nil
	}
	list, err := readArray(o[name])
	if err != nil {
		return nil, fmt.Errorf("%q is %w", name, err)
	}
	return list, nil
}

// only is the one element of a list, for responses that hold several alternatives.
func (o object) only(name string) (object, error) {
	list, err := o.array(name)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("%q has %d elements, want one: choose, and pass the turn alone", name, len(list))
	}
	in, err := readObject(list[0])
	if err != nil {
		return nil, fmt.Errorf("%q holds what is %w", name, err)
	}
	return in, nil
}

// textOf is a string.
func textOf(raw json.RawMessage) (string, bool) {
	v, err := canon.Parse(raw, canon.DefaultLimits())
	return v.Text(), err == nil && v.Kind() == canon.String
}

package record

import (
	"bytes"

	"github.com/remit-dev/remit/internal/canon"
)

// decodeHeader decodes a header. Every entry that is read passes here. The fast
// path decodes headers as this package writes them: canonical and without
// escapes. All other headers take the general path, which rejects invalid ones.
func decodeHeader(head []byte) (h Header, err error) {
	if h, ok := plainHeader(head); ok {
		return h, nil
	}
	err = canon.Decode(head, &h)
	return h, err
}

func plainHeader(head []byte) (h Header, ok bool) {
	rest, ok := bytes.CutPrefix(head, []byte(`{"at":"`))
	if !ok {
		return h, false
	}
	at, rest, ok := plainText(rest)
	if !ok || !bytes.HasSuffix(at, []byte("Z")) || bytes.ContainsRune(at, ',') || h.At.UnmarshalText(at) != nil || at[len("2006-01-02T")+1] == ':' {
		return h, false // UnmarshalText also accepts a comma and an hour of one digit
	}
	var what []byte
	for _, m := range [...]struct {
		name string
		to   *string
	}{{`,"call":"`, &h.Call}, {`,"kind":"`, nil}, {`,"session":"`, &h.Session}, {`,"txn":"`, &h.Txn}} {
		value, there := bytes.CutPrefix(rest, []byte(m.name))
		if !there {
			continue
		}
		text, after, ok := plainText(value)
		if !ok {
			return h, false
		}
		if rest = after; m.to == nil {
			what = text
		} else {
			*m.to = string(text)
		}
	}
	if string(rest) != thisVersion || what == nil {
		return h, false
	}
	h.V, h.Kind = Version, Kind(what)
	return h, true
}

// thisVersion is the end of a header with version Version.
const thisVersion = `,"v":1}`

// plainText cuts off a string whose opening quote is already removed. ok is
// false if the string has a byte that is not a plain character.
func plainText(s []byte) (text, rest []byte, ok bool) {
	for i, c := range s {
		switch {
		case c == '"':
			return s[:i], s[i+1:], true
		case c < ' ' || c == '\\' || c > '~':
			return nil, nil, false
		}
	}
	return nil, nil, false
}

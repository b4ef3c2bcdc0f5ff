package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// field is a member of a body, with its salt and digest.
type field struct {
	name   []byte
	value  []byte                         // canonical JSON; nil once erased
	tagged [len(fieldTag) + SaltSize]byte // the salt, after fieldTag
	digest [sha256.Size]byte
}

// salt returns the memory of the field's salt.
func (f *field) salt() []byte { return f.tagged[len(fieldTag):] }

// The tags begin the input of each hash. docs/reference/commitments.md has the
// formulas.
const (
	saltsTag = "remit/salts/v1"
	fieldTag = "remit/field/v1"
	bodyTag  = "remit/body/v1"
	leafTag  = "remit/leaf/v1"
)

// usualFields is a number of fields that few records exceed. Memory for so many
// is on the stack.
const usualFields = 16

// maxFieldName is the longest name in bytes: its length is one byte.
const maxFieldName = 255

// noSalt is the salt of a record without fields, which hides nothing.
var noSalt [SaltSize]byte

var errNoBody = errors.New("the body or its salt is not one of a record")

// fields appends the fields of an entry that has a body, in the order of their
// names. The erased ones are among them, with their digests.
func (e Entry) fields(to []field) ([]field, error) {
	to, ok := cutFields(to, e.Body)
	switch {
	case !ok:
		return nil, errNoBody
	case len(to) == 0 && len(e.Salt) == SaltSize && [SaltSize]byte(e.Salt) != noSalt:
		return nil, errNoBody // the leaf does not cover it
	case len(e.Salt) == SaltSize:
		deriveSalts(to, e.Salt)
	default:
		if to, ok = withErased(to, e.Salt); !ok {
			return nil, errNoBody
		}
	}
	hashFields(to)
	return to, nil
}

// deriveSalts computes the salts of fields from the salt of their record: one
// hash for two of them. A field's salt reveals neither the salt of the record
// nor the salt of another field.
func deriveSalts(fields []field, salt []byte) {
	var in [len(saltsTag) + SaltSize + 4]byte
	copy(in[copy(in[:], saltsTag):], salt)
	for i := range fields {
		if i%2 != 0 {
			continue
		}
		binary.BigEndian.PutUint32(in[len(in)-4:], uint32(i/2)) //nolint:gosec // a body has far fewer fields
		two := sha256.Sum256(in[:])
		copy(fields[i].salt(), two[:SaltSize])
		if i+1 < len(fields) {
			copy(fields[i+1].salt(), two[SaltSize:])
		}
	}
}

// hashFields computes the digests of the fields that are not erased.
func hashFields(fields []field) {
	h := sha256.New()
	for i := range fields {
		if f := &fields[i]; f.value != nil {
			h.Reset()
			_, _ = h.Write(f.tagged[:]) // a hash never returns an error
			_, _ = h.Write(f.value)
			h.Sum(f.digest[:0])
		}
	}
}

// sumFields returns the digest of the body that has these fields.
func sumFields(fields []field) [sha256.Size]byte {
	in := append(make([]byte, 0, 64*usualFields), bodyTag...)
	for i := range fields {
		f := &fields[i]
		in = append(append(in, byte(len(f.name))), f.name...) //nolint:gosec // at most maxFieldName
		in = append(in, f.digest[:]...)
	}
	return sha256.Sum256(in)
}

// cutFields appends the members of a canonical JSON object. It does not look
// into their values. It returns false for bytes that the names and values alone
// do not determine, so no two bodies have the same fields.
func cutFields(to []field, body []byte) ([]field, bool) {
	rest, ok := bytes.CutPrefix(body, []byte("{"))
	if !ok || string(rest) == "}" {
		return to, ok
	}
	var before []byte
	for first := true; len(rest) > 0 && rest[0] == '"'; first = false {
		name, after, ok := plainText(rest[1:])
		if !ok || len(name) > maxFieldName || len(after) == 0 || after[0] != ':' || !first && bytes.Compare(before, name) >= 0 {
			return nil, false
		}
		n := valueLen(after[1:])
		if n <= 0 {
			return nil, false
		}
		to = append(to, field{})
		f := &to[len(to)-1]
		f.name, f.value = name, after[1:1+n:1+n]
		copy(f.tagged[:], fieldTag)
		if rest, before = after[1+n:], name; rest[0] == '}' {
			return to, len(rest) == 1
		}
		rest = rest[1:]
	}
	return nil, false
}

// valueLen returns the length of a value up to the comma after it or the end of
// its object, or -1 if neither comes.
func valueLen(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			n := textLen(text[i:])
			if n < 0 {
				return -1
			}
			i += n - 1
		case '{', '[':
			depth++
		case ',', '}', ']':
			switch {
			case depth == 0 && c == ']':
				return -1
			case depth == 0:
				return i
			case c != ',':
				depth--
			}
		}
	}
	return -1
}

// textLen returns the length of the string that text begins with, with its
// quotes, or -1 if the string does not end.
func textLen(text []byte) int {
	for start := 1; ; {
		n := bytes.IndexByte(text[start:], '"')
		if n < 0 {
			return -1
		}
		end, escapes := start+n, 0
		for end-escapes > start && text[end-escapes-1] == '\\' {
			escapes++
		}
		if start = end + 1; escapes%2 == 0 {
			return start
		}
	}
}

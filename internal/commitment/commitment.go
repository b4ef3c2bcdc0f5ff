// Package commitment computes the leaf of a record from the fields of its body.
// docs/reference/commitments.md has the formulas.
package commitment

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// SaltSize is the length in bytes of the salt of a record, and of a field.
const SaltSize = 16

// MaxName is the length in bytes of the longest name of a field.
const MaxName = 255

// UsualFields is a number of fields that few records exceed. Memory for so many
// is on the stack.
const UsualFields = 16

// Field is a member of a body, with its salt and digest.
type Field struct {
	Name   []byte
	Value  []byte // canonical JSON; nil: hidden or erased
	Digest [sha256.Size]byte
	tagged [len(fieldTag) + SaltSize]byte // the salt, after fieldTag
}

// Salt returns the memory of the field's salt.
func (f *Field) Salt() []byte { return f.tagged[len(fieldTag):] }

// The tags begin the input of each hash.
const (
	saltsTag = "remit/salts/v1"
	fieldTag = "remit/field/v1"
	bodyTag  = "remit/body/v1"
	leafTag  = "remit/leaf/v1"
)

// noSalt is the salt of a record without fields, which hides nothing.
var noSalt [SaltSize]byte

// Fields appends the fields of a body to a list, in the order of their names,
// with their digests. Erased fields are among them. It returns false if the
// bytes are not the salt and the body of a record.
func Fields(to []Field, salt, body []byte) ([]Field, bool) {
	to, ok := cut(to, body)
	switch {
	case !ok:
		return nil, false
	case len(salt) != SaltSize:
		if to, ok = withErased(to, salt); !ok {
			return nil, false
		}
	case len(to) > 0:
		deriveSalts(to, salt)
	case [SaltSize]byte(salt) != noSalt:
		return nil, false // the leaf does not cover it
	}
	Hash(to)
	return to, true
}

// NewField returns a field that is shown. Its digest is not computed yet.
func NewField(name, value string, salt []byte) Field {
	f := Field{Name: []byte(name), Value: []byte(value)}
	copy(f.tagged[copy(f.tagged[:], fieldTag):], salt)
	return f
}

// deriveSalts computes the salts of fields from the salt of their record: one
// hash for two of them. A field's salt reveals neither the salt of the record
// nor the salt of another field.
func deriveSalts(fields []Field, salt []byte) {
	var in [len(saltsTag) + SaltSize + 4]byte
	copy(in[copy(in[:], saltsTag):], salt)
	for i := range fields {
		if i%2 != 0 {
			continue
		}
		binary.BigEndian.PutUint32(in[len(in)-4:], uint32(i/2)) //nolint:gosec // a body has far fewer fields
		two := sha256.Sum256(in[:])
		copy(fields[i].Salt(), two[:SaltSize])
		if i+1 < len(fields) {
			copy(fields[i+1].Salt(), two[SaltSize:])
		}
	}
}

// Hash computes the digests of the fields that are not erased.
func Hash(fields []Field) {
	h := sha256.New()
	for i := range fields {
		if f := &fields[i]; f.Value != nil {
			h.Reset()
			_, _ = h.Write(f.tagged[:]) // a hash never returns an error
			_, _ = h.Write(f.Value)
			h.Sum(f.Digest[:0])
		}
	}
}

// Body returns the digest of the body that has these fields.
func Body(fields []Field) [sha256.Size]byte {
	in := append(make([]byte, 0, 64*UsualFields), bodyTag...)
	for i := range fields {
		f := &fields[i]
		in = append(append(in, byte(len(f.Name))), f.Name...) //nolint:gosec // at most MaxName
		in = append(in, f.Digest[:]...)
	}
	return sha256.Sum256(in)
}

// Leaf returns the leaf of a header and the digest of a body.
func Leaf(header []byte, body [sha256.Size]byte) string {
	in := append(append(make([]byte, 0, 512), leafTag...), body[:]...)
	return Spell(sha256.Sum256(append(in, header...)))
}

const digestPrefix = "sha256:"

// Spell returns the text of a digest.
func Spell(sum [sha256.Size]byte) string {
	text := append(make([]byte, 0, len(digestPrefix)+2*sha256.Size), digestPrefix...)
	return string(hex.AppendEncode(text, sum[:]))
}

// ReadDigest returns the bytes of a digest. It returns false for any other
// spelling than that of Spell.
func ReadDigest(text string) (sum [sha256.Size]byte, ok bool) {
	if len(text) != len(digestPrefix)+2*sha256.Size {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(text[len(digestPrefix):]))
	return sum, err == nil && Spell(sum) == text
}

// Find returns the field with a name, or nil.
func Find(fields []Field, name string) *Field {
	for i := range fields {
		if string(fields[i].Name) == name {
			return &fields[i]
		}
	}
	return nil
}

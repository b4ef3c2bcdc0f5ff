package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/internal/canon"
)

// Disclosure shows some fields of one record to a reader without the journal,
// and proves that they belong to the leaf of the record. It reveals the header
// and the names of all fields. It reveals nothing about the values of the
// hidden fields: it does not confirm a guess of one, even of a short one.
type Disclosure struct {
	Header string           `json:"header"` // canonical JSON of Header
	Fields []DisclosedField `json:"fields"` // all fields of the body, in the order of their names
}

// DisclosedField is a field in a Disclosure. A shown field has Value and Salt;
// a hidden or erased one has Digest.
type DisclosedField struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`  // canonical JSON
	Salt   string `json:"salt,omitempty"`   // hexadecimal digits
	Digest string `json:"digest,omitempty"` // sha256:…
}

// Disclose shows the named fields and hides the others. It returns ErrDamaged
// if the entry does not fit its leaf, ErrErased if its body or a named field is
// erased, and an error for a field that the record does not have: every
// Disclosure of the record proves that it is absent.
func (e Entry) Disclose(names ...string) (Disclosure, error) {
	fields, err := e.checkedFields()
	if err != nil {
		return Disclosure{}, err
	}
	d := Disclosure{Header: string(e.Head), Fields: make([]DisclosedField, 0, len(fields))}
	shown := map[*field]bool{}
	for _, name := range names {
		f, err := findField(fields, name)
		if err != nil {
			return Disclosure{}, fmt.Errorf("entry %d: %w", e.Pos, err)
		}
		shown[f] = true
	}
	for i := range fields {
		f := &fields[i]
		if shown[f] {
			d.Fields = append(d.Fields, DisclosedField{Name: string(f.name), Value: string(f.value), Salt: hex.EncodeToString(f.salt())})
		} else {
			d.Fields = append(d.Fields, DisclosedField{Name: string(f.name), Digest: spell(f.digest)})
		}
	}
	return d, nil
}

// Verify returns an error unless header, names, shown values and digests are
// those of the leaf. The caller takes the leaf from a source that it trusts,
// such as a proof to a tree head. Then the record had these fields and no
// others. Verify returns the decoded header.
func (d Disclosure) Verify(leaf string) (Header, error) {
	fields := make([]field, 0, len(d.Fields))
	for i, shown := range d.Fields {
		f, err := shown.field()
		if err != nil {
			return Header{}, fmt.Errorf("disclosure: field %q: %w", shown.Name, err)
		}
		if i > 0 && bytes.Compare(fields[i-1].name, f.name) >= 0 {
			return Header{}, fmt.Errorf("disclosure: field %q: it does not follow the one before it", shown.Name)
		}
		fields = append(fields, f)
	}
	hashFields(fields)
	if leafOf([]byte(d.Header), sumFields(fields)) != leaf {
		return Header{}, errors.New("disclosure: it does not fit the leaf")
	}
	if !isCanonical(d.Header) {
		return Header{}, errors.New("disclosure: the header is not canonical JSON")
	}
	h, err := decodeHeader([]byte(d.Header))
	if err != nil {
		return Header{}, fmt.Errorf("disclosure: header: %w", err)
	}
	if h.V != Version {
		return Header{}, fmt.Errorf("disclosure: its record has version %d; this remit reads version %d: use a newer one", h.V, Version)
	}
	return h, nil
}

// field returns the field to hash, or to take the digest of.
func (d DisclosedField) field() (field, error) {
	f := field{name: []byte(d.Name)}
	if len(d.Name) > maxFieldName {
		return f, errors.New("the name is too long")
	}
	if _, rest, ok := plainText(append([]byte(d.Name), '"')); !ok || len(rest) > 0 {
		return f, errors.New("the name is not plain text")
	}
	if d.Value == "" {
		if d.Salt != "" {
			return f, errors.New("a salt without a value")
		}
		sum, ok := sumOf(d.Digest)
		if !ok {
			return f, errors.New("neither a value nor a digest")
		}
		f.digest = sum
		return f, nil
	}
	if d.Digest != "" {
		return f, errors.New("a value and a digest")
	}
	if !isCanonical(d.Value) {
		return f, errors.New("the value is not canonical JSON")
	}
	salt, err := hex.DecodeString(d.Salt)
	if err != nil || len(salt) != SaltSize || hex.EncodeToString(salt) != d.Salt {
		return f, fmt.Errorf("the salt must be %d lower case hexadecimal digits", 2*SaltSize)
	}
	f.value = []byte(d.Value)
	copy(f.tagged[copy(f.tagged[:], fieldTag):], salt)
	return f, nil
}

func isCanonical(text string) bool {
	if canon.IsCanonical([]byte(text)) {
		return true
	}
	again, err := canon.Canonicalize([]byte(text), canon.DefaultLimits())
	return err == nil && string(again) == text
}

const digestPrefix = "sha256:"

// spell returns the text of a digest.
func spell(sum [sha256.Size]byte) string {
	text := append(make([]byte, 0, len(digestPrefix)+2*sha256.Size), digestPrefix...)
	return string(hex.AppendEncode(text, sum[:]))
}

// sumOf returns the bytes of a digest. It returns false for any spelling but
// that of spell.
func sumOf(digest string) (sum [sha256.Size]byte, ok bool) {
	if !canon.Digest(digest).Valid() {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(digest[len(digestPrefix):]))
	return sum, err == nil
}

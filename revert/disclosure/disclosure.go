// Package disclosure shows fields of a record to a reader who does not have the
// journal, and proves that they belong to the leaf of the record. docs/reference/commitments.md
// has the formulas and the promises.
package disclosure

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/commitment"
	"github.com/remit-dev/remit/revert/record"
)

// Disclosure shows some fields of one record to a reader without the journal,
// and proves that they belong to the leaf of the record. It reveals the header
// and the names of all fields. It reveals nothing about the values of the
// hidden fields: it does not confirm a guess of one, even of a short one.
type Disclosure struct {
	Header string  `json:"header"` // canonical JSON of a record.Header
	Fields []Field `json:"fields"` // all fields of the body, in the order of their names
}

// Field is a field in a Disclosure. A shown field has Value and Salt;
// a hidden or erased one has Digest.
type Field struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`  // canonical JSON
	Salt   string `json:"salt,omitempty"`   // hexadecimal digits
	Digest string `json:"digest,omitempty"` // sha256:…
}

// Of shows the named fields of an entry and hides the others. It returns
// record.ErrDamaged if the entry does not fit its leaf, record.ErrErased if its
// body or a named field is erased, and an error for a field that the record
// does not have: each Disclosure of the record proves that it is absent.
func Of(e record.Entry, names ...string) (Disclosure, error) {
	if err := e.Check(); err != nil {
		return Disclosure{}, err
	}
	if e.Erased != "" {
		return Disclosure{}, fmt.Errorf("entry %d: %w", e.Pos, record.ErrErased)
	}
	fields, _ := commitment.Fields(nil, e.Salt, e.Body) // as in Check
	for _, name := range names {
		switch f := commitment.Find(fields, name); {
		case f == nil:
			return Disclosure{}, fmt.Errorf("entry %d has no field %q", e.Pos, name)
		case f.Value == nil:
			return Disclosure{}, fmt.Errorf("entry %d: field %q: %w", e.Pos, name, record.ErrErased)
		}
	}
	d := Disclosure{Header: string(e.Head), Fields: make([]Field, len(fields))}
	for i := range fields {
		f := &fields[i]
		d.Fields[i].Name = string(f.Name)
		if slices.Contains(names, d.Fields[i].Name) {
			d.Fields[i].Value, d.Fields[i].Salt = string(f.Value), hex.EncodeToString(f.Salt())
		} else {
			d.Fields[i].Digest = commitment.Spell(f.Digest)
		}
	}
	return d, nil
}

// Verify returns an error unless header, names, shown values and digests are
// those of the leaf. The caller takes the leaf from a source that it trusts,
// such as a proof to a tree head. Then the record had these fields and no
// others. Verify returns the decoded header.
func (d Disclosure) Verify(leaf string) (record.Header, error) {
	fields := make([]commitment.Field, 0, len(d.Fields))
	for i, shown := range d.Fields {
		f, err := shown.read()
		if err != nil {
			return record.Header{}, fmt.Errorf("disclosure: field %q: %w", shown.Name, err)
		}
		if i > 0 && bytes.Compare(fields[i-1].Name, f.Name) >= 0 {
			return record.Header{}, fmt.Errorf("disclosure: field %q: it does not follow the one before it", shown.Name)
		}
		fields = append(fields, f)
	}
	commitment.Hash(fields)
	if commitment.Leaf([]byte(d.Header), commitment.Body(fields)) != leaf {
		return record.Header{}, errors.New("disclosure: it does not fit the leaf")
	}
	if !isCanonical(d.Header) {
		return record.Header{}, errors.New("disclosure: the header is not canonical JSON")
	}
	var h record.Header
	if err := canon.Decode([]byte(d.Header), &h); err != nil {
		return record.Header{}, fmt.Errorf("disclosure: header: %w", err)
	}
	if h.V != record.Version {
		return record.Header{}, fmt.Errorf("disclosure: its record has version %d; this remit reads version %d: use a newer one", h.V, record.Version)
	}
	return h, nil
}

// read returns the field to hash, or with the digest of its hash.
func (f Field) read() (read commitment.Field, err error) {
	switch {
	case !commitment.PlainName([]byte(f.Name)):
		return read, errors.New("it cannot have this name")
	case f.Value == "" && f.Salt != "":
		return read, errors.New("it has a salt and no value")
	case f.Value == "":
		sum, ok := commitment.ReadDigest(f.Digest)
		if !ok {
			return read, errors.New("it has neither a value nor a digest")
		}
		return commitment.Field{Name: []byte(f.Name), Digest: sum}, nil
	case f.Digest != "":
		return read, errors.New("it has a value and a digest")
	case !isCanonical(f.Value):
		return read, errors.New("the value is not canonical JSON")
	}
	salt, err := hex.DecodeString(f.Salt)
	if err != nil || len(salt) != record.SaltSize || hex.EncodeToString(salt) != f.Salt {
		return read, fmt.Errorf("the salt is not %d lower case hexadecimal digits", 2*record.SaltSize)
	}
	return commitment.NewField(f.Name, f.Value, salt), nil
}

func isCanonical(text string) bool {
	if canon.IsCanonical([]byte(text)) {
		return true
	}
	again, err := canon.Canonicalize([]byte(text), canon.DefaultLimits())
	return err == nil && string(again) == text
}

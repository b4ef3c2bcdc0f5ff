package record

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
)

// EraseFields returns the entry without the values and salts of the named
// fields. The rest of the entry still fits its leaf, and does not confirm a
// guess of an erased value: Salt then has the salts of the remaining fields and
// the digests of the erased ones, in place of the salt of the record, from
// which every salt can be computed.
//
// EraseFields returns ErrDamaged if the entry does not fit its leaf, ErrErased
// if its body or a named field is erased already, and an error for a field that
// the record does not have. It erases fields of any kind of record, and does
// not know which fields repeat a value or have its digest. So its caller erases
// these too, and records who erased them.
func (e Entry) EraseFields(names ...string) (Entry, error) {
	fields, err := e.checkedFields()
	if err != nil {
		return Entry{}, err
	}
	if len(names) == 0 {
		return Entry{}, fmt.Errorf("entry %d: no field to erase is named", e.Pos)
	}
	for _, name := range names {
		f, err := findField(fields, name)
		if err != nil {
			return Entry{}, fmt.Errorf("entry %d: %w", e.Pos, err)
		}
		f.value = nil
	}
	e.Body, e.Salt = joinFields(fields), joinSalts(fields)
	return e.Checked()
}

// ErasedFields returns the names of the fields that EraseFields removed. It
// returns none for an entry without a body.
func (e Entry) ErasedFields() (names []string) {
	if e.Erased != "" || len(e.Salt) == SaltSize {
		return nil
	}
	fields, err := e.fields(nil)
	if err != nil {
		return nil
	}
	for _, f := range fields {
		if f.value == nil {
			names = append(names, string(f.name))
		}
	}
	return names
}

// checkedFields returns the fields of an entry that fits its leaf and has a
// body.
func (e Entry) checkedFields() ([]field, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	if e.Erased != "" {
		return nil, fmt.Errorf("entry %d: %w", e.Pos, ErrErased)
	}
	return e.fields(nil)
}

// findField returns the named field, which must not be erased.
func findField(fields []field, name string) (*field, error) {
	i := slices.IndexFunc(fields, func(f field) bool { return string(f.name) == name })
	switch {
	case i < 0:
		return nil, fmt.Errorf("the record has no field %q", name)
	case fields[i].value == nil:
		return nil, fmt.Errorf("field %q: %w", name, ErrErased)
	}
	return &fields[i], nil
}

// joinFields returns the object of the fields that are not erased.
func joinFields(fields []field) []byte {
	body := []byte{'{'}
	for _, f := range fields {
		if f.value == nil {
			continue
		}
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(append(append(body, '"'), f.name...), `":`...)
		body = append(body, f.value...)
	}
	return append(body, '}')
}

// joinSalts returns the salt of an entry with erased fields: the salts of the
// remaining fields, then of each erased one the length of its name in one byte,
// the name and the digest. It is longer than the salt of a record.
func joinSalts(fields []field) (salts []byte) {
	for _, f := range fields {
		if f.value != nil {
			salts = append(salts, f.salt()...)
		}
	}
	for _, f := range fields {
		if f.value == nil {
			salts = append(append(salts, byte(len(f.name))), f.name...) //nolint:gosec // at most maxFieldName
			salts = append(salts, f.digest[:]...)
		}
	}
	return salts
}

// withErased reads what joinSalts wrote: it sets the salts of the remaining
// fields, and returns them with the erased ones at their places.
func withErased(left []field, salts []byte) ([]field, bool) {
	if len(salts) <= len(left)*SaltSize {
		return nil, false
	}
	for i := range left {
		salts = salts[copy(left[i].salt(), salts):]
	}
	all, ends := slices.Clone(left), []byte(nil)
	for first := true; len(salts) > 0; first = false {
		n := int(salts[0])
		if len(salts) < 1+n+sha256.Size {
			return nil, false
		}
		f := field{name: salts[1 : 1+n]}
		salts = salts[1+n:]
		salts = salts[copy(f.digest[:], salts):]
		at, there := slices.BinarySearchFunc(left, f.name, func(of field, name []byte) int { return bytes.Compare(of.name, name) })
		if there || !first && bytes.Compare(ends, f.name) >= 0 {
			return nil, false
		}
		all, ends = slices.Insert(all, at+len(all)-len(left), f), f.name
	}
	return all, true
}

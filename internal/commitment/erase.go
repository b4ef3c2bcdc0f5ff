package commitment

import (
	"bytes"
	"crypto/sha256"
	"slices"
)

// Join returns the salt and the body of a record with erased fields: those
// without a value.
func Join(fields []Field) (salt, body []byte) { return joinSalts(fields), joinValues(fields) }

// joinValues returns the object of the fields that are not erased.
func joinValues(fields []Field) []byte {
	body := []byte{'{'}
	for _, f := range fields {
		if f.Value == nil {
			continue
		}
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(append(append(body, '"'), f.Name...), `":`...)
		body = append(body, f.Value...)
	}
	return append(body, '}')
}

// joinSalts returns the salt of an entry with erased fields: the salts of the
// remaining fields, then of each erased one the length of its name in one byte,
// the name and the digest. It is longer than the salt of a record.
func joinSalts(fields []Field) (salts []byte) {
	for _, f := range fields {
		if f.Value != nil {
			salts = append(salts, f.Salt()...)
		}
	}
	for _, f := range fields {
		if f.Value == nil {
			salts = append(append(salts, byte(len(f.Name))), f.Name...) //nolint:gosec // at most MaxName
			salts = append(salts, f.Digest[:]...)
		}
	}
	return salts
}

// withErased reads what joinSalts wrote: it sets the salts of the remaining
// fields, and returns them with the erased ones at their places.
func withErased(left []Field, salts []byte) ([]Field, bool) {
	if len(salts) <= len(left)*SaltSize {
		return nil, false
	}
	for i := range left {
		salts = salts[copy(left[i].Salt(), salts):]
	}
	all, ends := slices.Clone(left), []byte(nil)
	for first := true; len(salts) > 0; first = false {
		n := int(salts[0])
		if len(salts) < 1+n+sha256.Size {
			return nil, false
		}
		f := Field{Name: salts[1 : 1+n]}
		salts = salts[1+n:]
		salts = salts[copy(f.Digest[:], salts):]
		at, there := slices.BinarySearchFunc(left, f.Name, func(of Field, name []byte) int { return bytes.Compare(of.Name, name) })
		if !PlainName(f.Name) || there || !first && bytes.Compare(ends, f.Name) >= 0 {
			return nil, false
		}
		all, ends = slices.Insert(all, at+len(all)-len(left), f), f.Name
	}
	return all, true
}

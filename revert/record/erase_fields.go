package record

import (
	"fmt"

	"github.com/remit-dev/remit/internal/commitment"
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
	if err := e.Check(); err != nil {
		return Entry{}, err
	}
	if e.Erased != "" {
		return Entry{}, fmt.Errorf("entry %d: %w", e.Pos, ErrErased)
	}
	if len(names) == 0 {
		return Entry{}, fmt.Errorf("entry %d: no field to erase is named", e.Pos)
	}
	fields, _ := commitment.Fields(nil, e.Salt, e.Body) // as in Check
	for _, name := range names {
		switch f := commitment.Find(fields, name); {
		case f == nil:
			return Entry{}, fmt.Errorf("entry %d has no field %q", e.Pos, name)
		case f.Value == nil:
			return Entry{}, fmt.Errorf("entry %d: field %q: %w", e.Pos, name, ErrErased)
		default:
			f.Value = nil
		}
	}
	e.Salt, e.Body = commitment.Join(fields)
	return e.Checked()
}

// ErasedFields returns the names of the fields that EraseFields removed. It
// returns none for an entry without a body, and does not check the entry.
func (e Entry) ErasedFields() (names []string) {
	if e.Erased != "" || len(e.Salt) == SaltSize {
		return nil
	}
	fields, _ := commitment.Fields(nil, e.Salt, e.Body)
	for _, f := range fields {
		if f.Value == nil {
			names = append(names, string(f.Name))
		}
	}
	return names
}

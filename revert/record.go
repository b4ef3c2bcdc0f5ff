package revert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/remit-dev/remit/internal/canon"
)

// RecordVersion is the version written into each record. A reader refuses
// versions it does not know: a newer remit wrote them.
const RecordVersion = 1

// SaltSize is the length in bytes of an entry's salt.
const SaltSize = 16

// Header is the part of a record that is never erased.
type Header struct {
	V       int       `json:"v"`
	Kind    Kind      `json:"kind"`
	Session string    `json:"session,omitempty"`
	Txn     string    `json:"txn,omitempty"`
	Call    string    `json:"call,omitempty"`
	At      time.Time `json:"at"` // UTC
}

// Record is one line of the journal: a header and the body of its kind.
type Record struct {
	Header
	Body Body
}

// Entry is a record as a journal stores it. The leaf covers the header and,
// through the salt, the body: a body can be erased together with its salt, and
// the log stays checkable.
type Entry struct {
	Pos    int64  // given by the journal, from 1
	Header Header // as in Head
	Head   []byte // canonical JSON of Header
	Salt   []byte // SaltSize random bytes; nil once erased
	Body   []byte // canonical JSON; nil once erased
	Leaf   string // sha256:…, see Seal
}

// Seal turns a record into an entry. Salt must be SaltSize fresh random bytes.
// Texts for people are made fit to be written: in place, so that what is shown is
// what was recorded.
//
//	body digest = Sum("remit/body/v1", salt, body)
//	leaf        = Sum("remit/leaf/v1", head, body digest)
func Seal(r Record, salt []byte) (Entry, error) {
	if len(salt) != SaltSize {
		return Entry{}, fmt.Errorf("seal %s: salt of %d bytes, want %d", r.Kind, len(salt), SaltSize)
	}
	if r.Body == nil || r.Body.kind() != r.Kind {
		return Entry{}, fmt.Errorf("seal: the body does not belong to a record of kind %q", r.Kind)
	}
	r.V, r.At = RecordVersion, r.At.UTC()
	head, err := canon.Marshal(r.Header)
	if err != nil {
		return Entry{}, fmt.Errorf("seal %s: header: %w", r.Kind, err)
	}
	readable(r.Body)
	body, err := canon.Marshal(r.Body)
	if err != nil {
		return Entry{}, fmt.Errorf("seal %s: body: %w", r.Kind, err)
	}
	e := Entry{Header: r.Header, Head: head, Salt: bytes.Clone(salt), Body: body}
	e.Leaf = leafOf(head, bodyDigest(salt, body))
	return e, nil
}

// Check reports ErrDamaged unless header, salt and body are those that the leaf
// was made of. An erased entry cannot be checked beyond its leaf's form: pass
// the body digest that the erasure left behind to CheckErased.
func (e Entry) Check() error {
	if e.Salt == nil && e.Body == nil {
		return fmt.Errorf("%w: entry %d is erased and has no body to check", ErrDamaged, e.Pos)
	}
	return e.CheckErased(bodyDigest(e.Salt, e.Body))
}

// CheckErased checks an entry against the digest of its erased body.
func (e Entry) CheckErased(body string) error {
	if leafOf(e.Head, body) != e.Leaf {
		return fmt.Errorf("%w: entry %d does not fit its leaf", ErrDamaged, e.Pos)
	}
	var h Header
	if err := canon.Decode(e.Head, &h); err != nil {
		return fmt.Errorf("%w: entry %d: header: %w", ErrDamaged, e.Pos, err)
	}
	return nil
}

// BodyDigest returns what CheckErased needs once the body is gone.
func (e Entry) BodyDigest() string { return bodyDigest(e.Salt, e.Body) }

// Unseal checks an entry and decodes it.
func Unseal(e Entry) (Record, error) {
	if err := e.Check(); err != nil {
		return Record{}, err
	}
	var h Header
	if err := canon.Decode(e.Head, &h); err != nil {
		return Record{}, fmt.Errorf("%w: entry %d: header: %w", ErrDamaged, e.Pos, err)
	}
	if h.V != RecordVersion {
		return Record{}, fmt.Errorf("entry %d has version %d; this remit reads version %d: use a newer one", e.Pos, h.V, RecordVersion)
	}
	body, err := newBody(h.Kind)
	if err != nil {
		return Record{}, fmt.Errorf("entry %d: %w", e.Pos, err)
	}
	if err := canon.Decode(e.Body, body); err != nil {
		return Record{}, fmt.Errorf("%w: entry %d: body of kind %s: %w", ErrDamaged, e.Pos, h.Kind, err)
	}
	return Record{Header: h, Body: body}, nil
}

// MarshalJSON writes the record as people and programs read it: the header's
// fields and the body under its own name.
func (r Record) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Header
		Body Body `json:"body"`
	}{r.Header, r.Body})
}

func bodyDigest(salt, body []byte) string {
	return string(canon.Sum("remit/body/v1", salt, body))
}

func leafOf(head []byte, body string) string {
	return string(canon.Sum("remit/leaf/v1", head, []byte(body)))
}

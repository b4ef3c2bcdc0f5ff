package record

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/remit-dev/remit/internal/canon"
)

// Version is the version written into each record. A reader rejects versions
// that it does not know: a newer remit wrote them.
const Version = 1

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

// Record is one record of the journal: a header and the body of its kind.
type Record struct {
	Header
	Body Body `json:"body"`
}

// Entry is a record as a journal stores it. The leaf covers the header and,
// through the salt, the body. So a body can be erased together with its salt,
// and the log can still be checked.
type Entry struct {
	Pos    int64  // set by the journal, from 1
	Header Header // as in Head
	Head   []byte // canonical JSON of Header
	Salt   []byte // SaltSize random bytes; nil once erased
	Body   []byte // canonical JSON; nil once erased
	Leaf   string // sha256:…, see Seal
	Erased string // digest of the erased body; empty: not erased

	checked bool     // the entry fits its leaf, and Header is decoded from Head
	reading *reading // caches the decoded body; nil: no cache
}

// reading is shared by the copies of an entry that a journal keeps in memory
// and reads often. A reader must not change the body.
type reading struct{ body atomic.Pointer[Body] }

// Seal turns a record into an entry. Salt must be SaltSize fresh random bytes.
// Seal cleans texts for people in place, so that the runtime shows the texts
// that it recorded.
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
	r.V, r.At = Version, r.At.UTC()
	readable(r.Body)
	e := Entry{Header: r.Header, checked: true}
	if err := e.encode(r.Body, salt); err != nil {
		return Entry{}, fmt.Errorf("seal %s: %w", r.Kind, err)
	}
	var text [80]byte // on the stack
	e.Leaf = string(canon.Sum(leafDomain, e.Head, canon.AppendSum(text[:0], bodyDomain, e.Salt, e.Body)))
	return e, nil
}

// Check returns ErrDamaged unless the leaf fits the header, salt and body, or
// the digest that an erasure left instead of salt and body.
func (e Entry) Check() error {
	gone := e.Salt == nil && e.Body == nil
	switch {
	case gone && e.Erased == "":
		return fmt.Errorf("%w: entry %d has no body, and no digest of one", ErrDamaged, e.Pos)
	case !gone && e.Erased != "":
		return fmt.Errorf("%w: entry %d is erased, and has a body", ErrDamaged, e.Pos)
	case leafOf(e.Head, e.BodyDigest()) != e.Leaf:
		return fmt.Errorf("%w: entry %d does not fit its leaf", ErrDamaged, e.Pos)
	}
	return nil
}

// Checked is Check for a Journal that returns an entry. The result has a
// decoded header, and Unseal neither checks nor decodes it again.
func (e Entry) Checked() (Entry, error) {
	//mutant:check
	if err := e.Check(); err != nil {
		return Entry{Pos: e.Pos}, err
	}
	var err error
	if e.Header, err = decodeHeader(e.Head); err != nil {
		return Entry{Pos: e.Pos}, fmt.Errorf("%w: entry %d: header: %w", ErrDamaged, e.Pos, err)
	}
	e.checked, e.reading = true, nil
	return e, nil
}

// Kept is Checked for a Journal that keeps the result in memory and returns
// copies of it. The copies share the decoded body, so callers must not change
// it. For an entry that was erased since, use Checked.
func (e Entry) Kept() (Entry, error) {
	e, err := e.Checked()
	if err == nil && e.Erased == "" {
		e.reading = new(reading)
	}
	return e, err
}

// BodyDigest returns the digest of the body, also of an erased one.
func (e Entry) BodyDigest() string {
	if e.Erased != "" {
		return e.Erased
	}
	return bodyDigest(e.Salt, e.Body)
}

// ErrDamaged is returned if stored bytes are not the bytes that were written.
var ErrDamaged = errors.New("journal is damaged")

// ErrErased is returned for reading an erased body, and for reverting a call
// whose inverse was erased.
var ErrErased = errors.New("erased")

// Unseal checks an entry and decodes it. It returns ErrErased for the body of
// an erased entry.
func Unseal(e Entry) (Record, error) {
	if !e.checked {
		var err error
		if e, err = e.Checked(); err != nil {
			return Record{}, err
		}
	}
	h := e.Header
	if e.Erased != "" {
		return Record{}, fmt.Errorf("entry %d: %w", e.Pos, ErrErased)
	}
	if h.V != Version {
		return Record{}, fmt.Errorf("entry %d has version %d; this remit reads version %d: use a newer one", e.Pos, h.V, Version)
	}
	if e.reading != nil {
		if body := e.reading.body.Load(); body != nil {
			return Record{Header: h, Body: *body}, nil
		}
	}
	body, err := newBody(h.Kind)
	if err != nil {
		return Record{}, fmt.Errorf("entry %d: %w", e.Pos, err)
	}
	if err := canon.Decode(e.Body, body); err != nil {
		return Record{}, fmt.Errorf("%w: entry %d: body of kind %s: %w", ErrDamaged, e.Pos, h.Kind, err)
	}
	if e.reading != nil {
		e.reading.body.Store(&body)
	}
	return Record{Header: h, Body: body}, nil
}

// The domains of the digests of a body and of a leaf.
const (
	bodyDomain = "remit/body/v1"
	leafDomain = "remit/leaf/v1"
)

func bodyDigest(salt, body []byte) string {
	return string(canon.Sum(bodyDomain, salt, body))
}

func leafOf(head []byte, body string) string {
	return string(canon.Sum(leafDomain, head, []byte(body)))
}

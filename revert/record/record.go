package record

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/commitment"
)

// Version is the version written into each record. A reader rejects versions
// that it does not know: a newer remit wrote them.
const Version = 1

// SaltSize is the length in bytes of an entry's salt.
const SaltSize = commitment.SaltSize

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

// Entry is a record as a journal stores it. The leaf covers the header and, by a
// salted digest each, the fields of the body: its members. So a body can be
// erased together with its salt, or some fields of it, and the log can still be
// checked.
type Entry struct {
	Pos    int64  // set by the journal, from 1
	Header Header // as in Head
	Head   []byte // canonical JSON of Header
	Salt   []byte // SaltSize random bytes; more once fields are erased, see EraseFields; nil once erased
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
// A record without fields does not use them: its salt is zeros. Seal cleans
// texts for people in place, so that the runtime shows the texts that it
// recorded. docs/reference/commitments.md has the formulas of the leaf.
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
	if string(e.Body) == "{}" {
		clear(e.Salt)
	}
	sum, ok := e.bodySum()
	if !ok {
		return Entry{}, fmt.Errorf("seal %s: a field has a name that it cannot have", r.Kind)
	}
	e.Leaf = commitment.Leaf(e.Head, sum)
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
	}
	if sum, ok := e.bodySum(); !ok || commitment.Leaf(e.Head, sum) != e.Leaf {
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

// BodyDigest returns the digest of the body, also of an erased one. It returns
// "" if the bytes are not those of a body.
func (e Entry) BodyDigest() string {
	if e.Erased != "" {
		return e.Erased
	}
	sum, ok := e.bodySum()
	if !ok {
		return ""
	}
	return commitment.Spell(sum)
}

// bodySum returns the bytes of the body's digest.
func (e Entry) bodySum() (sum [sha256.Size]byte, ok bool) {
	if e.Erased != "" {
		return commitment.ReadDigest(e.Erased)
	}
	fields, ok := commitment.Fields(make([]commitment.Field, 0, commitment.UsualFields), e.Salt, e.Body)
	if !ok {
		return sum, false
	}
	return commitment.Body(fields), true
}

// ErrDamaged is returned if stored bytes are not the bytes that were written.
var ErrDamaged = errors.New("journal is damaged")

// ErrErased is returned for reading an erased body or field, and for reverting
// a call whose inverse was erased.
var ErrErased = errors.New("erased")

// Unseal checks an entry and decodes it. It returns ErrErased for the body of
// an erased entry. If only fields are erased, it returns ErrErased and the
// record without them: a caller must not take an erased field for an absent
// one.
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
	body, err := e.decodeBody()
	if err != nil {
		return Record{}, err
	}
	if names := e.ErasedFields(); len(names) > 0 {
		err = fmt.Errorf("entry %d: fields %s: %w", e.Pos, strings.Join(names, ", "), ErrErased)
	}
	return Record{Header: h, Body: body}, err
}

func (e Entry) decodeBody() (Body, error) {
	if e.reading != nil {
		if body := e.reading.body.Load(); body != nil {
			return *body, nil
		}
	}
	body, err := newBody(e.Header.Kind)
	if err != nil {
		return nil, fmt.Errorf("entry %d: %w", e.Pos, err)
	}
	if err := canon.Decode(e.Body, body); err != nil {
		return nil, fmt.Errorf("%w: entry %d: body of kind %s: %w", ErrDamaged, e.Pos, e.Header.Kind, err)
	}
	if e.reading != nil {
		e.reading.body.Store(&body)
	}
	return body, nil
}

package revert

import "encoding/json"

// EffectClass says what can be done about an effect once it happened. The zero
// class counts as Pivot.
type EffectClass string

// The effect classes.
const (
	Pure        EffectClass = "pure"        // no effect
	Reversible  EffectClass = "reversible"  // an exact pre-image is taken first
	Compensable EffectClass = "compensable" // a semantic inverse exists; traces remain
	Deferrable  EffectClass = "deferrable"  // can wait until its transaction commits
	Pivot       EffectClass = "pivot"       // no way back
)

// EffectClasses lists the classes, mildest first.
func EffectClasses() []EffectClass {
	return []EffectClass{Pure, Reversible, Compensable, Deferrable, Pivot}
}

// Valid reports whether c is one of the classes; the empty class is not.
func (c EffectClass) Valid() bool {
	switch c {
	case Pure, Reversible, Compensable, Deferrable, Pivot:
		return true
	default:
		return false
	}
}

// OrPivot returns c, or Pivot where nothing valid was declared.
func (c EffectClass) OrPivot() EffectClass {
	if c.Valid() {
		return c
	}
	return Pivot
}

// Token is the version of a resource, as its scheme writes it. Equal tokens mean
// equal in everything that an undo restores. The empty token is "not known",
// which equals nothing.
type Token string

// Absent is the token of a resource that does not exist.
const Absent Token = "absent"

// Known reports whether t names a version at all.
func (t Token) Known() bool { return t != "" }

// Same reports whether both tokens are known and equal.
func (t Token) Same(u Token) bool { return t.Known() && t == u }

// Change is one effect on one resource, as data. It is durable before its
// effect; Pre and Post are both known then, so that a look at the resource tells
// after a crash whether the effect happened.
type Change struct {
	N        int             `json:"n"`                 // number within its call, from 1
	Scheme   string          `json:"scheme"`            // who can read Inverse
	Resource string          `json:"resource"`          // canonical text
	Kind     string          `json:"kind"`              // create, write, delete, mkdir, ...
	Pre      Token           `json:"pre"`               // version before
	Post     Token           `json:"post,omitempty"`    // version after; empty: known only from the world
	Inverse  json.RawMessage `json:"inverse,omitempty"` // what the scheme needs to go back
	Blobs    []BlobRef       `json:"blobs,omitempty"`   // content that Inverse points at
}

// BlobRef points at content kept with the journal.
type BlobRef struct {
	Digest string `json:"digest"` // sha256:… of the bytes
	Size   int64  `json:"size"`   // bytes
}

// InlineMax is the size in bytes up to which a blob is stored in the same
// durable step as the records that name it. Larger ones are files of their own,
// durable before those records.
const InlineMax = 64 << 10

// Blob is content that a journal has taken in but that no record names yet.
type Blob struct {
	ref    BlobRef
	inline []byte
}

// InlineBlob is a blob whose bytes travel in the batch that names it; at most
// InlineMax bytes, which the caller must not change any more.
func InlineBlob(digest string, data []byte) Blob {
	return Blob{ref: BlobRef{Digest: digest, Size: int64(len(data))}, inline: data}
}

// StoredBlob is a blob that a journal already holds durably.
func StoredBlob(ref BlobRef) Blob { return Blob{ref: ref} }

// Ref names the content.
func (b Blob) Ref() BlobRef { return b.ref }

// Inline returns the bytes of a blob that travels in its batch.
func (b Blob) Inline() ([]byte, bool) { return b.inline, b.inline != nil }

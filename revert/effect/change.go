package effect

import (
	"encoding/json"
	"fmt"

	"github.com/remit-dev/remit/internal/canon"
)

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

// Check reports whether a reference has the one form that Keep gives it. A
// digest names a file in some stores, so nothing else may reach them.
func (r BlobRef) Check() error {
	if !canon.Digest(r.Digest).Valid() {
		return fmt.Errorf("%q is not the digest of a blob", r.Digest)
	}
	if r.Size < 0 {
		return fmt.Errorf("blob %s has the size %d", r.Digest, r.Size)
	}
	return nil
}

package effect

import (
	"encoding/json"
	"fmt"

	"github.com/remit-dev/remit/internal/canon"
)

// Token identifies one version of a resource, in the format of its scheme. Two
// equal tokens mean that a revert needs to restore nothing. The empty token
// means "not known" and equals no token.
type Token string

// Absent is the token of a resource that does not exist.
const Absent Token = "absent"

// Known reports whether t names a version at all.
func (t Token) Known() bool { return t != "" }

// Same reports whether both tokens are known and equal.
func (t Token) Same(u Token) bool { return t.Known() && t == u }

// Change is one effect on one resource, as data. It is durable before its
// effect. Pre and Post are then both known, so after a crash the current
// version of the resource tells whether the effect happened.
type Change struct {
	N        int             `json:"n"`                 // number within the call, from 1
	Scheme   string          `json:"scheme"`            // scheme that reads Inverse
	Resource string          `json:"resource"`          // canonical text
	Kind     string          `json:"kind"`              // create, write, delete, mkdir, ...
	Pre      Token           `json:"pre"`               // version before
	Post     Token           `json:"post,omitempty"`    // version after; empty: only the resource tells it
	Inverse  json.RawMessage `json:"inverse,omitempty"` // data that the scheme needs to restore Pre
	Blobs    []BlobRef       `json:"blobs,omitempty"`   // content that Inverse refers to
}

// BlobRef refers to content that the journal stores.
type BlobRef struct {
	Digest string `json:"digest"` // sha256:… of the bytes
	Size   int64  `json:"size"`   // bytes
}

// Check returns an error unless the reference has the form that StoreContent
// writes. Some stores use a digest as a file name, so no other text may reach
// them.
func (r BlobRef) Check() error {
	if !canon.Digest(r.Digest).Valid() {
		return fmt.Errorf("%q is not the digest of a blob", r.Digest)
	}
	if r.Size < 0 {
		return fmt.Errorf("blob %s has the size %d", r.Digest, r.Size)
	}
	return nil
}

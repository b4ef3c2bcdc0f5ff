package record

import (
	"encoding/json"
	"time"

	"github.com/remit-dev/remit/provenance"
)

// Session opens a session.
type Session struct {
	Principal json.RawMessage `json:"principal"`
	Roots     []Root          `json:"roots"`
	Policy    string          `json:"policy"`           // revision
	Grant     json.RawMessage `json:"grant,omitempty"`  // what the session holds
	Token     string          `json:"token,omitempty"`  // digest of what resumes it
	Parent    string          `json:"parent,omitempty"` // the session that handed the grant on
	Expires   time.Time       `json:"expires,omitzero"` // of the grant
	Uses      int             `json:"uses,omitempty"`   // calls that may start under the grant; 0: any number
	Client    json.RawMessage `json:"client,omitempty"` // who its tools and results are shown to
	State     Root            `json:"state,omitzero"`   // state folder that the record was written in
}

// Handed says that a session handed some of its grant on.
type Handed struct {
	To string `json:"to"` // the session that holds it
}

// Revoked takes a grant away.
type Revoked struct {
	Grant string `json:"grant"` // a session, or an approval that was remembered
	By    string `json:"by"`
	Why   string `json:"why,omitempty"`
}

// Root is a named folder that calls may be granted parts of.
type Root struct {
	Name     string          `json:"name"`
	Path     string          `json:"path"`               // absolute, of this machine
	Identity json.RawMessage `json:"identity,omitempty"` // tells a folder from one that took its place
}

// Remembered is an approval that also holds for calls to come: of the same tool,
// for the same principal, asked about for reasons that were shown, with no access
// beyond these.
type Remembered struct {
	ID          string    `json:"id"`
	Tool        ToolRef   `json:"tool"`
	Principal   string    `json:"principal"`
	Chain       []string  `json:"chain,omitempty"` // of the principal
	Access      []Access  `json:"access"`
	InputDigest string    `json:"input_digest,omitempty"` // set: only with this input
	Reasons     []string  `json:"reasons"`                // why somebody was asked
	Always      bool      `json:"always"`                 // false: only in the session of the record
	Expires     time.Time `json:"expires"`                // UTC
	By          string    `json:"by"`
	Why         string    `json:"why,omitempty"`
	From        CallRef   `json:"from"` // the call that was asked about
}

// Labelled gives a session labels, which policies read and which are never
// taken away.
type Labelled struct {
	Labels   []string `json:"labels"`
	Requires []string `json:"requires,omitempty"` // what each call must have from then on, as in a policy's require
	By       CallRef  `json:"by"`                 // the call that earned them; none: the session that it was handed on from had them
}

// Given says which URLs whoever is behind a session named, each by its digests: of all of it,
// and of what a permission would be about. The URLs themselves are nowhere.
type Given struct {
	URLs []string `json:"urls"`
}

// Feedback is what somebody thinks of a call. It says nothing about what became of
// it, and may come at any time, also when the transaction has ended.
type Feedback struct {
	provenance.Feedback
}

// Accepted says that a person went on with a journal that lacks entries which were
// promised, or what would show that it does not.
type Accepted struct {
	By       string `json:"by"`
	Promised string `json:"promised,omitempty"` // the head that the head file had, as SIZE:ROOT; empty: there was none to be read
	Found    string `json:"found"`              // the head of what was there
	Missing  int64  `json:"missing,omitempty"`  // entries
}

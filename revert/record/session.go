package record

import (
	"encoding/json"
	"time"

	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
)

// Session opens a session.
type Session struct {
	Principal json.RawMessage `json:"principal"`
	Roots     []Root          `json:"roots"`
	Policy    string          `json:"policy"`           // policy revision
	Grant     json.RawMessage `json:"grant,omitempty"`  // the grant of the session; missing: it is content
	Token     string          `json:"token,omitempty"`  // digest of the session token
	Parent    string          `json:"parent,omitempty"` // the session that delegated the grant
	Expires   time.Time       `json:"expires,omitzero"` // end of the grant
	Uses      int             `json:"uses,omitempty"`   // calls that may start under the grant; 0: any number
	Client    json.RawMessage `json:"client,omitempty"` // the client that gets its tools and results
	Data      json.RawMessage `json:"data,omitempty"`   // facts about the task, which policies read
	State     Root            `json:"state,omitzero"`   // state folder of the journal at that time

	GrantContent *effect.BlobRef `json:"grant_content,omitempty"` // a large grant: canonical JSON that other sessions share
}

// Delegated says that a session delegated part of its grant.
type Delegated struct {
	To string `json:"to"` // the session that received it
}

// Revoked revokes a grant.
type Revoked struct {
	Grant string `json:"grant"` // a session, or a remembered approval
	By    string `json:"by"`
	Why   string `json:"why,omitempty"`
}

// Root is a named folder. A grant can cover parts of it.
type Root struct {
	Name     string          `json:"name"`
	Path     string          `json:"path"`               // absolute, on this machine
	Identity json.RawMessage `json:"identity,omitempty"` // distinguishes the folder from a later one at the same path
	Node     string          `json:"node,omitempty"`     // the node that has the folder; empty: the journal is on the same machine
}

// Remembered is an approval that also covers later calls: of the same tool, for
// the same principal, for the reasons that were shown, with no access beyond
// these.
type Remembered struct {
	ID          string    `json:"id"`
	Tool        ToolRef   `json:"tool"`
	Principal   string    `json:"principal"`
	Chain       []string  `json:"chain,omitempty"` // delegation chain of the principal
	Access      []Access  `json:"access"`
	InputDigest string    `json:"input_digest,omitempty"` // set: only with this input
	Reasons     []string  `json:"reasons"`                // why the policy asked
	Keys        []string  `json:"keys,omitempty"`         // set: only calls that the policy asks about with no other keys; sorted
	Always      bool      `json:"always"`                 // false: only in the session of the record
	Expires     time.Time `json:"expires"`                // UTC
	By          string    `json:"by"`
	Why         string    `json:"why,omitempty"`
	From        CallRef   `json:"from"` // the call that asked
}

// Labelled adds labels to a session. Policies read them, and the runtime never
// removes them.
type Labelled struct {
	Labels   []string `json:"labels"`
	Requires []string `json:"requires,omitempty"` // conditions of each later call, as in a policy's require
	By       CallRef  `json:"by"`                 // the call that caused them; empty: inherited from the delegating session
}

// Heard is what a person said in a session: the digests of the URLs and of the
// words. The record does not contain the texts.
type Heard struct {
	URLs     []string `json:"urls,omitempty"`     // two digests of each: of the whole URL, and of the part that a permission covers
	Texts    [][]byte `json:"texts,omitempty"`    // digests of 16 bytes of the words of each sentence, in order
	Accounts []byte   `json:"accounts,omitempty"` // digests of the numbers of accounts that the texts have in groups
}

// Feedback is a person's opinion of a call. It does not change the outcome of
// the call. A person can add it at any time, also after the transaction ended.
type Feedback struct {
	provenance.Feedback
}

// Accepted says that a person accepted a journal that lacks promised entries,
// or whose completeness cannot be checked.
type Accepted struct {
	By       string `json:"by"`
	Promised string `json:"promised,omitempty"` // the head that the head file had, as SIZE:ROOT; empty: no readable head file
	Found    string `json:"found"`              // the head of the accepted journal
	Missing  int64  `json:"missing,omitempty"`  // number of missing entries
}

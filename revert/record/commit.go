package record

import (
	"encoding/json"
	"time"
)

// CommitDecided is a decision about the commit of a transaction, with what the
// policy saw. Its header names the decision itself, and no call: it can repeat
// what a call contains, so it is erased with the first erased call. An Answered
// with the same name in its header answers it. One that
// permits the commit is in the same batch as Committing or Committed, and one
// that denies it in the same batch as Aborting.
type CommitDecided struct {
	Effect   string          `json:"effect"` // allow, ask, deny: of the policy
	Decision json.RawMessage `json:"decision"`
	Digest   string          `json:"digest"` // of all that the commit makes permanent and releases; an answer names it
	Txn      json.RawMessage `json:"txn"`    // input.txn
	Facts    *Facts          `json:"facts"`  // absent labels and counts are those of the session at that time
	// Answer is the answer to an ask. If it is absent, the commit waits for
	// one until Expires.
	Answer    *Answered         `json:"answer,omitempty"`
	Expires   time.Time         `json:"expires,omitzero"`
	Processes []json.RawMessage `json:"askers,omitempty"` // as in Asked
}

// Permits reports whether the transaction may commit.
func (d *CommitDecided) Permits() bool {
	return d.Effect == "allow" || d.Effect == "ask" && d.Answer != nil && d.Answer.Approved
}

// Waits reports whether the commit waits for an answer.
func (d *CommitDecided) Waits() bool { return d.Effect == "ask" && d.Answer == nil }

package record

import (
	"encoding/json"
	"time"
)

// The effects of a decision about a commit.
const (
	CommitAllow = "allow"
	CommitAsk   = "ask"
	CommitDeny  = "deny"
)

// CommitDecided is a decision about the commit of a transaction, with what the
// policy saw. Its header names the decision itself, and no call: it can repeat
// what a call contains, so it is erased with the first erased call. One that
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
	Answer    *CommitAnswered   `json:"answer,omitempty"`
	Expires   time.Time         `json:"expires,omitzero"`
	Processes []json.RawMessage `json:"askers,omitempty"` // as in Asked
}

// Permits reports whether the transaction may commit.
func (d *CommitDecided) Permits() bool {
	return d.Effect == CommitAllow || d.Effect == CommitAsk && d.Answer != nil && d.Answer.Approved
}

// Waits reports whether the commit waits for an answer.
func (d *CommitDecided) Waits() bool { return d.Effect == CommitAsk && d.Answer == nil }

// CommitAnswered is an approver's answer to a commit that waits. Any process can
// write it, so it decides nothing by itself: the next commit checks it. Its
// header names the decision that it answers.
type CommitAnswered struct {
	Approved bool   `json:"approved"`
	By       string `json:"by"`
	Why      string `json:"why,omitempty"`
	Digest   string `json:"digest"` // of the decision
}

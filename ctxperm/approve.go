package ctxperm

import (
	"context"
	"encoding/json"
	"time"

	"github.com/remit-dev/remit/perm"
)

// ApprovalRequest is a suspended decision: what somebody is asked to allow. It is complete:
// nothing that will run is left out or shortened.
type ApprovalRequest struct {
	Call       string
	Txn        string
	Session    string
	Tool       string
	ToolDigest string
	Settings   string // digest of what the tool is configured with; empty: it has no settings
	Principal  perm.Principal
	Input      json.RawMessage // canonical
	Accesses   []perm.ResourceAccess
	Reasons    []perm.Reason // why the policy asks
	Preview    string        // what a program that has run wants to change, as a diff; empty: nothing has run yet
	Running    bool          // the call runs, and waits for the answer; its own time stands still meanwhile
	Earlier    string        // says that the call was approved before, and for what; empty: it asks for the first time
	Revision   string        // of the policy
	Digest     string        // over all of this; an answer is bound to it
	InPlace    time.Duration // how long the call waits in its process at most, and goes on by itself once answered; 0: it ends pending
	Expires    time.Time     // of a call that waits on the journal: later answers do not count; zero: it waits for this answer
}

// Answer is what an approver said. The zero Answer refuses.
type Answer struct {
	approved bool
	by, why  string
	remember *RememberScope
}

// Approve allows the call once. By names who answered; an empty name refuses.
func Approve(by string) Answer { return Answer{approved: by != "", by: by} }

// RememberScope says for which calls to come an approval holds, too: of the same tool,
// for the same principal, asked about for no other reason, with accesses that were
// asked about. The zero Remember is for the session and a day.
type RememberScope struct {
	Always    bool                  // in every session of the principal, not only in the one that asks
	For       time.Duration         // how long; 0: a day
	Accesses  []perm.ResourceAccess // fewer than were asked about; empty: these
	SameInput bool                  // only with the same input; always so for a call without an access of its own
}

// ApproveAndRemember allows the call, and calls to come as r says. It is narrowed to what
// was asked about, expires, and can be revoked; where it cannot be written down it
// allows the call alone.
func ApproveAndRemember(by string, r RememberScope) Answer {
	a := Approve(by)
	a.remember = &r
	return a
}

// Remembered returns for which calls to come the answer holds.
func (a Answer) Remembered() (r RememberScope, ok bool) {
	if a.remember == nil || !a.approved {
		return RememberScope{}, false
	}
	return *a.remember, true
}

// Deny says no, and why.
func Deny(by, why string) Answer { return Answer{by: by, why: why} }

// Approved reports whether the answer allows the call.
func (a Answer) Approved() bool { return a.approved }

// By names who answered.
func (a Answer) By() string { return a.by }

// Why is the reason of a refusal.
func (a Answer) Why() string { return a.why }

// Approver answers asks. It may take its time within ctx; an error, or no answer
// in time, refuses. The requesting principal's own id is not accepted as the
// one who answers. Implementations are safe for concurrent use.
type Approver interface {
	Approve(ctx context.Context, a ApprovalRequest) (Answer, error)
}

// ApproverFunc is a function as an Approver; a nil one refuses.
type ApproverFunc func(ctx context.Context, a ApprovalRequest) (Answer, error)

// Approve calls f.
func (f ApproverFunc) Approve(ctx context.Context, a ApprovalRequest) (Answer, error) {
	if f == nil {
		return Answer{}, nil
	}
	return f(ctx, a)
}

package ctxperm

import (
	"context"
	"encoding/json"
	"time"

	"github.com/samber/mo"

	"github.com/remit-dev/remit/perm"
)

// ApprovalRequest is a suspended decision that an approver answers. It is
// complete: it omits and shortens nothing that will run. With Purpose
// perm.PurposeCommit it is about the commit of a transaction: Call and Tool are
// empty, Preview has the difference of the transaction, shortened if it is long,
// and Input has what the policy saw of its effects.
type ApprovalRequest struct {
	Purpose    perm.Purpose // commit; empty: a call
	Call       string
	Txn        string
	Session    string
	Tool       string
	ToolDigest string
	Settings   string // digest of the tool's configuration; empty: no settings
	Principal  perm.Principal
	Labels     []string        // of the session, for a commit
	Input      json.RawMessage // canonical JSON
	Accesses   []perm.ResourceAccess
	Reasons    []perm.Reason // why the policy asks
	Preview    string        // the changes that a finished program proposes, as a diff; empty: nothing has run yet
	Running    bool          // the call runs while it waits for the answer; its own timeout is paused
	Earlier    string        // states an earlier approval of the call and its accesses; empty: the first request
	Remember   perm.Remember // what an approval covers beside the call
	Revision   string        // policy revision
	Digest     string        // digest over all of this; an answer is bound to it
	InPlace    time.Duration // how long the call waits in its process at most, and continues when answered; 0: the call ends pending
	Expires    time.Time     // for a call that waits on the journal: later answers do not count; zero: the call waits for this answer
}

// Answer is the answer of an approver. The zero Answer denies the call.
type Answer struct {
	approved bool
	by, why  string
	remember *RememberScope
}

// Approve allows the call once. The argument by names the approver; an empty
// name denies the call.
func Approve(by string) Answer { return Answer{approved: by != "", by: by} }

// RememberScope selects the later calls that an approval also covers. It covers
// only calls of the same tool by the same principal. The policy must ask for no
// other reason and about no other access. The zero RememberScope covers the
// session for one day.
type RememberScope struct {
	Always    bool          // in every session of the principal, not only in this one
	For       time.Duration // duration; 0: one day
	SameInput bool          // only with the same input; always so for a call without an access of its own
}

// ApproveAndRemember allows the call and the later calls in r, with the
// requested accesses and no others. A remembered approval expires and can be
// revoked. If the runtime cannot record it, the answer allows only this call.
func ApproveAndRemember(by string, r RememberScope) Answer {
	a := Approve(by)
	a.remember = &r
	return a
}

// Remembered returns which later calls the answer covers, if it covers any.
func (a Answer) Remembered() mo.Option[RememberScope] {
	if !a.approved {
		return mo.None[RememberScope]()
	}
	return mo.PointerToOption(a.remember)
}

// Deny denies the call with a reason.
func Deny(by, why string) Answer { return Answer{by: by, why: why} }

// Approved reports whether the answer allows the call.
func (a Answer) Approved() bool { return a.approved }

// By returns the name of the approver.
func (a Answer) By() string { return a.by }

// Why returns the reason of a denial.
func (a Answer) Why() string { return a.why }

// Approver answers approval requests. It can block until ctx ends. An error, or
// no answer in time, denies the call. The runtime does not accept the ID of the
// requesting principal as the approver. Implementations must be safe for
// concurrent use.
type Approver interface {
	Approve(ctx context.Context, a ApprovalRequest) (Answer, error)
}

// ApproverFunc adapts a function to Approver. A nil ApproverFunc denies.
type ApproverFunc func(ctx context.Context, a ApprovalRequest) (Answer, error)

// Approve calls f.
func (f ApproverFunc) Approve(ctx context.Context, a ApprovalRequest) (Answer, error) {
	if f == nil {
		return Answer{}, nil
	}
	return f(ctx, a)
}

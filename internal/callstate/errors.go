package callstate

import (
	"errors"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/record"
)

// The errors that the public packages re-export.
var (
	// ErrDenied: a grant, the policy or an approver denied an access.
	ErrDenied = errors.New("denied")
	// ErrClosed: the call has ended, or never began.
	ErrClosed = errors.New("the call has ended; its context and permits reach nothing any more")
	// ErrInFlight: the call ended while one of its operations was in flight.
	ErrInFlight = errors.New("an operation was in flight when the call ended")
	// ErrOutcomeUnknown: a handle was making its effects final, and their
	// outcome is unknown. They may still happen.
	ErrOutcomeUnknown = errors.New("the outcome of the effects is unknown")
	// ErrWaits: the call ends without effect, and waits for an approval.
	ErrWaits = errors.New("the call waits for approval")
	// ErrInvalid: refused before any decision.
	ErrInvalid = errors.New("invalid")
)

// DeniedError states which access was denied, at which stage, and why.
type DeniedError struct {
	Access       perm.ResourceAccess
	Stage        string // grant, policy, approver
	Decision     perm.Decision
	Why          string
	PolicyFailed bool // the engine returned an error: no rule is the reason
	Timeout      bool // the engine exceeded its time; no rule denied the access
	// Unanswered: the approval request got no answer. This ends the call, even
	// if the access only reads.
	Unanswered bool
	Around     string       // how the caller can avoid the access; empty: unknown
	Purpose    perm.Purpose // apply for changes that are known and not yet made; empty otherwise
	// Question is the recorded approval request that the call waited with, if
	// no approval of this access answers it; nil: Decision is the decision
	// about the access. Otherwise Decision is that of the request.
	Question *record.Asked
}

// Error returns the reason. It contains no value of an argument except the
// resource.
func (e *DeniedError) Error() string { return "denied by " + e.Stage + ": " + e.Why }

// Unwrap makes errors.Is(err, ErrDenied) true. After a timeout of the engine it
// also makes errors.Is(err, perm.ErrTimeout) true.
func (e *DeniedError) Unwrap() []error {
	if e.Timeout {
		return []error{ErrDenied, perm.ErrTimeout}
	}
	return []error{ErrDenied}
}

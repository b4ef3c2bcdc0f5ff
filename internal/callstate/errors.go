package callstate

import (
	"errors"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/record"
)

// The conditions that the public packages re-export.
var (
	// ErrDenied: a grant, the policy or an approver said no.
	ErrDenied = errors.New("denied")
	// ErrClosed: the call has ended, or never began.
	ErrClosed = errors.New("the call has ended; its context and permits reach nothing any more")
	// ErrInFlight: the call ended while an operation of it was still going on.
	ErrInFlight = errors.New("an operation was still going on when the call had to end")
	// ErrOutcomeUnknown: a handle was making its effects final, and nobody can tell
	// yet whether they are. They may still come.
	ErrOutcomeUnknown = errors.New("it cannot be told whether the effects became final")
	// ErrWaits: the call ends for now, without effect, until somebody has approved it.
	ErrWaits = errors.New("the call waits for approval")
	// ErrInvalid: refused before anybody was asked.
	ErrInvalid = errors.New("invalid")
)

// DeniedError says which access was refused, at which stage, and why.
type DeniedError struct {
	Access   perm.ResourceAccess
	Stage    string // grant, policy, approver
	Decision perm.Decision
	Why      string
	Broken   bool // the engine returned an error: no rule is the reason
	Timeout  bool // the engine did not answer in time; the access is denied, and was not refused
	// Unanswered: a person was to approve it, and nobody answered. It ends the call,
	// also if the access would only have looked.
	Unanswered bool
	Around     string       // says how the caller can do without the access; empty: the operation does not know
	Purpose    perm.Purpose // apply: of changes that were known and not made yet; empty: of anything else
	// Question is the one on record that the call waited with, and that no approval of this answers; nil: Decision says
	// what was decided. Else the decision is that of the question.
	Question *record.Asked
}

// Error gives the reason, never an argument's value beyond the resource.
func (e *DeniedError) Error() string { return "denied by " + e.Stage + ": " + e.Why }

// Unwrap makes errors.Is(err, ErrDenied) true, and errors.Is(err, perm.ErrTimeout)
// if nothing was decided in time.
func (e *DeniedError) Unwrap() []error {
	if e.Timeout {
		return []error{ErrDenied, perm.ErrTimeout}
	}
	return []error{ErrDenied}
}

package line

import (
	"errors"

	"github.com/remit-dev/remit/perm"
)

// The conditions that the public packages re-export.
var (
	// ErrDenied: a grant, the policy or an approver said no.
	ErrDenied = errors.New("denied")
	// ErrClosed: the call has ended, or never began.
	ErrClosed = errors.New("the call has ended; its context and permits reach nothing any more")
	// ErrInFlight: the call ended while an operation of it was still going on.
	ErrInFlight = errors.New("an operation was still going on when the call had to end")
	// ErrUndetermined: a handle was making its effects final, and nobody can tell
	// yet whether they are. They may still come.
	ErrUndetermined = errors.New("it cannot be told whether the effects became final")
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
	Broken   bool         // the engine returned an error: no rule is the reason
	Purpose  perm.Purpose // apply: of changes that were known and not made yet; empty: of anything else
}

// Error gives the reason, never an argument's value beyond the resource.
func (e *DeniedError) Error() string { return "denied by " + e.Stage + ": " + e.Why }

// Unwrap makes errors.Is(err, ErrDenied) true.
func (e *DeniedError) Unwrap() error { return ErrDenied }

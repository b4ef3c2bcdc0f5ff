package tool

import (
	"errors"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
)

// Sentinel errors of the outcomes, for errors.Is. A call that did not end done
// or held always returns one of them.
var (
	// ErrDenied says that a grant, the policy, an approver, a filter or the
	// tool refused the call.
	ErrDenied = ctxperm.ErrDenied
	// ErrInvalid says that the call was refused before the policy decided: an
	// unknown tool, bad arguments, a limit, a closed runtime.
	ErrInvalid = ctxperm.ErrInvalid
	// ErrPending says that the call waits for approval.
	ErrPending = errors.New("waits for approval")
	// ErrFailed says that the call failed, and that it has no effect.
	ErrFailed = errors.New("failed without effect")
	// ErrVerifyFailed says that the call ran and that its effect or its result
	// is not as required. Outcome.Reverted tells how far it was reverted.
	ErrVerifyFailed = errors.New("did not verify")
	// ErrCancelled says that the caller cancelled the call, and that it has no
	// effect.
	ErrCancelled = errors.New("cancelled")
	// ErrTimeout says that the timeout of the call expired, and that the call
	// has no effect.
	ErrTimeout = errors.New("timed out")
	// ErrUnknown says that the runtime cannot tell whether the call had an
	// effect.
	ErrUnknown = errors.New("the effect cannot be told")
)

// CallError is the error of a call that did not end done or held.
type CallError struct {
	Status Status
	Call   string // call ID, for display
	Tool   string
	Why    string
	Err    error // why the call did not begin; nil if it began
}

// Error names the tool, the outcome and the reason.
func (e *CallError) Error() string {
	text := e.Tool + ": " + string(e.Status) + ": " + e.Why
	if e.Call == "" {
		return text
	}
	return text + " (call " + e.Call + ")"
}

// Unwrap returns why a call did not begin, or nil if it began.
func (e *CallError) Unwrap() error { return e.Err }

// Is reports whether target is the sentinel of the status.
func (e *CallError) Is(target error) bool { return sentinel(e.Status) == target }

func sentinel(s Status) error {
	switch s {
	case StatusDenied:
		return ErrDenied
	case StatusInvalid:
		return ErrInvalid
	case StatusPending:
		return ErrPending
	case StatusFailed:
		return ErrFailed
	case StatusVerifyFailed:
		return ErrVerifyFailed
	case StatusCancelled:
		return ErrCancelled
	case StatusTimeout:
		return ErrTimeout
	case StatusDone, StatusHeld:
		return nil
	case StatusUnknown:
		return ErrUnknown
	default:
		return ErrUnknown
	}
}

// NoEffect marks an error with the tool's proof that the call had no effect.
// The call then ends failed and not unknown. NoEffect of a nil error is nil.
func NoEffect(err error) error {
	if err == nil {
		return nil
	}
	return &callstate.NoEffectError{Err: err}
}

// Blocked returns an error with which a tool itself refuses a call, before any
// effect. The call ends denied.
func Blocked(why string) error { return &callstate.BlockedError{Why: why} }

package tool

import (
	"errors"

	"github.com/remit-dev/remit/ctxperm"
)

// The outcomes that errors.Is tells apart. A call that did not end done or held
// always returns one of them.
var (
	ErrDenied       = ctxperm.ErrDenied
	ErrInvalid      = ctxperm.ErrInvalid
	ErrPending      = errors.New("waits for approval")
	ErrFailed       = errors.New("failed without effect")
	ErrVerifyFailed = errors.New("did not verify")
	ErrCancelled    = errors.New("cancelled")
	ErrTimeout      = errors.New("timed out")
	ErrUnknown      = errors.New("the effect cannot be told")
)

// CallError is the error of a call that did not end done or held.
type CallError struct {
	Status Status
	Call   string // id, for show
	Tool   string
	Why    string
}

// Error names the tool, the outcome and the reason.
func (e *CallError) Error() string {
	return e.Tool + ": " + string(e.Status) + ": " + e.Why + " (call " + e.Call + ")"
}

// Is maps the status to the sentinel of the same meaning.
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

type noEffectError struct{ err error }

func (e *noEffectError) Error() string { return e.err.Error() }
func (e *noEffectError) Unwrap() error { return e.err }

// NoEffect marks an error with the tool's proof that the call had no effect, so
// that it ends failed and not unknown. A nil error stays nil.
func NoEffect(err error) error {
	if err == nil {
		return nil
	}
	return &noEffectError{err}
}

type blockedError struct{ why string }

func (e *blockedError) Error() string { return e.why }

// Is makes errors.Is(err, ErrDenied) true.
func (e *blockedError) Is(target error) bool { return target == ErrDenied }

// Blocked is the error with which a tool refuses a call itself, before any
// effect. The call ends denied.
func Blocked(why string) error { return &blockedError{why} }

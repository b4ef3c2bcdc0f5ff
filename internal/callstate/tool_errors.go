package callstate

import "fmt"

// NoEffectError is an error with the tool's proof that its call had no effect.
type NoEffectError struct{ Err error }

func (e *NoEffectError) Error() string { return e.Err.Error() }

// Unwrap returns the error that the tool gave.
func (e *NoEffectError) Unwrap() error { return e.Err }

// BlockedError is the error of a tool that itself refused a call.
type BlockedError struct{ Why string }

func (e *BlockedError) Error() string { return e.Why }

// Is reports whether target is ErrDenied.
func (e *BlockedError) Is(target error) bool { return target == ErrDenied }

// PanicError is a panic of a tool's code. Its text leaves out the value, which
// can hold an argument.
type PanicError struct{ Value any }

func (e *PanicError) Error() string { return fmt.Sprintf("the tool panicked (%T)", e.Value) }

package cli

import (
	"errors"
	"io/fs"
)

// Problem is an error in the four lines that users get: what, why, how to fix
// it, and the ID for show.
type Problem struct { //nolint:errname // what the person reads of an error
	Code           ExitCode
	What, Why, Fix string
	ID             string
	Denied         bool // Fix says how to allow the call
}

// Error returns What and Why on one line.
func (p *Problem) Error() string {
	if p.Why == "" {
		return p.What
	}
	return p.What + ": " + p.Why
}

// UsageProblem returns the error of an invalid command line.
func UsageProblem(what string) *Problem { return &Problem{Code: ExitUsage, What: what} }

// WithPlace appends the position of a rule, if it is known.
func WithPlace(text, at string) string {
	if at == "" {
		return text
	}
	return text + " (" + at + ")"
}

// PlainError returns the text of an error without its path, because the message
// already names the path.
func PlainError(err error) string {
	var pathed *fs.PathError
	if errors.As(err, &pathed) {
		return pathed.Err.Error()
	}
	return err.Error()
}

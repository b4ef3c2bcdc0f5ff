package rego

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm"
)

// The ways in which a decision fails. All of them deny.
var (
	// ErrSteps means that the rules needed more than Options.Steps, on whatever machine.
	ErrSteps = errors.New("rego: the policy needs more evaluation steps than a decision may take")
	// ErrTimeout means that the decision took longer than Options.Timeout. It wraps
	// perm.ErrTimeout: the machine was busy, or a built-in had too much to do.
	ErrTimeout = fmt.Errorf("rego: %w", perm.ErrTimeout)
	// ErrEvaluation means that a rule failed: a built-in got a value that it
	// cannot work with, rules contradicted each other, or a reason was not a text.
	ErrEvaluation = errors.New("rego: the policy could not be evaluated")
	// ErrInput means that the request has no faithful form as an input document.
	ErrInput = errors.New("rego: the request is not a valid input document")
)

// Problem is one thing that is wrong with a policy.
type Problem struct {
	At   string `json:"at,omitempty"` // file:line:column, "" when it is about the policy as a whole
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"` // what to write instead
}

// String returns the problem on one line.
func (p Problem) String() string {
	s := p.Text
	if p.At != "" {
		s = p.At + ": " + s
	}
	if p.Fix != "" {
		s += " (fix: " + p.Fix + ")"
	}
	return s
}

// LoadError says why a policy was not loaded. It lists everything that one
// stage of loading found, so that an author does not mend one line at a time.
type LoadError struct {
	Problems []Problem
}

// Error lists the problems, one a line.
func (e *LoadError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	if len(lines) == 1 {
		return "rego: " + lines[0]
	}
	return fmt.Sprintf("rego: %d problems\n%s", len(lines), strings.Join(lines, "\n"))
}

// UncheckedRef is a place in a policy that the checks of New cannot see through.
type UncheckedRef struct {
	At   string `json:"at"` // file:line
	Text string `json:"text"`
}

// problems collects what one stage of loading found.
type problems []Problem

func (p *problems) add(at, fix, text string, args ...any) {
	*p = append(*p, Problem{At: at, Text: fmt.Sprintf(text, args...), Fix: fix})
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &LoadError{Problems: slices.Compact(p)} // the compiler writes one condition as several
}

package rego

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm"
)

// The errors of a decision. Each of them denies.
var (
	// ErrSteps states that the rules exceeded Options.Steps. It does not depend
	// on the machine.
	ErrSteps = errors.New("rego: the policy needs more evaluation steps than a decision may take")
	// errTimeout states that the decision took longer than Options.Timeout. It
	// wraps perm.ErrTimeout. The machine was busy, or a built-in had too much
	// to do.
	errTimeout = fmt.Errorf("rego: %w", perm.ErrTimeout)
	// ErrEvaluation states that a rule failed. A built-in got an unsupported
	// value, rules contradicted each other, or a reason was not text.
	ErrEvaluation = errors.New("rego: the policy could not be evaluated")
	// ErrInput states that the request has no faithful form as an input
	// document.
	ErrInput = errors.New("rego: the request is not a valid input document")
)

// Problem is one error or warning about a policy.
type Problem struct {
	At   string `json:"at,omitempty"` // file:line:column; "": the whole policy
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"` // suggested replacement
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

// LoadError states why a policy was not loaded. It lists the problems of all
// rules, so that an author can fix them at once. A rule with a problem can have
// another one that only shows once the first is fixed.
type LoadError struct {
	Problems []Problem
}

// Error returns the problems, one per line.
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

// UncheckedRef is a position in a policy that the checks of New cannot analyze.
type UncheckedRef struct {
	At   string `json:"at"` // file:line
	Text string `json:"text"`
}

// problems collects the findings of one stage of loading.
type problems []Problem

func (p *problems) add(at, fix, text string, args ...any) {
	*p = append(*p, Problem{At: at, Text: fmt.Sprintf(text, args...), Fix: fix})
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	once := map[Problem]bool{} // the compiler writes one condition as several
	return &LoadError{Problems: slices.DeleteFunc(slices.Clone(p), func(one Problem) bool {
		again := once[one]
		once[one] = true
		return again
	})}
}

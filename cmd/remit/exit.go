package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

// exitCode is the exit code of the command.
type exitCode int

// The exit codes. docs/reference/outcomes.md has the table.
const (
	exitOK       exitCode = 0
	exitInternal exitCode = 1
	exitUsage    exitCode = 2
	exitDenied   exitCode = 3
	exitPending  exitCode = 4
	exitFailed   exitCode = 5
	exitPartial  exitCode = 6
	exitUnknown  exitCode = 7
)

// severity lists the codes, the most serious first.
func severity() []exitCode {
	return []exitCode{exitInternal, exitUsage, exitUnknown, exitPartial, exitFailed, exitPending, exitDenied}
}

// worst returns the more serious of two codes. A code that is not in the table
// is an internal error.
func worst(a, b exitCode) exitCode {
	order := append(severity(), exitOK)
	i, j := slices.Index(order, a), slices.Index(order, b)
	if i < 0 || j < 0 {
		return exitInternal
	}
	return order[min(i, j)]
}

// problem is an error in the four lines that users get: what, why, how to fix
// it, and the ID for show.
type problem struct {
	code           exitCode
	what, why, fix string
	id             string
	denied         bool // fix says how to allow it
}

// Error returns what and why on one line.
func (p *problem) Error() string {
	if p.why == "" {
		return p.what
	}
	return p.what + ": " + p.why
}

// usage returns the error of an invalid command line.
func usage(what string) *problem { return &problem{code: exitUsage, what: what} }

// complain reports the error that ended the command, and returns its code.
func (a *app) complain(cmd *cobra.Command, err error) exitCode {
	p := problemOf(err, placeOf(cmd))
	if p.code == exitUsage && p.fix == "" && cmd != nil {
		p.fix = "see " + cmd.CommandPath() + " --help"
	}
	a.paintErr().problem(a.err, "remit: ", p)
	return p.code
}

// placeOf returns the workspace that the flags of a command name, for hints. A
// command that ends early has not resolved it.
func placeOf(cmd *cobra.Command) *workspaceState {
	p := &workspaceState{}
	if cmd == nil {
		return p
	}
	for _, name := range []string{"state", "workspace"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && len(p.given) == 0 {
			p.given = []string{"--" + name, f.Value.String()}
		}
	}
	return p
}

// problemOf returns the code and the message of an error. Its hints refer to
// at.
func problemOf(err error, at *workspaceState) *problem {
	var known *problem
	var policy *rego.LoadError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &policy):
		return policyProblem(policy)
	case errors.Is(err, revert.ErrBusy):
		return &problem{code: exitPartial, what: "nothing was taken back", why: err.Error()}
	case errors.Is(err, revert.ErrNotEnded):
		return &problem{code: exitUsage, what: "nothing was erased", why: err.Error(), fix: at.hint("log") + " shows how it stands; " + at.hint("settle", "CALL", "applied|absent", "--why", "TEXT") + " says what became of a call"}
	case errors.Is(err, revert.ErrIsRevertTxn):
		return &problem{code: exitUsage, what: "nothing was done", why: err.Error()}
	case errors.Is(err, record.ErrErased):
		return &problem{code: exitPartial, what: "nothing was taken back", why: err.Error()}
	case errors.Is(err, journal.ErrNotFound):
		return &problem{code: exitUsage, what: err.Error(), fix: at.hint("log") + " lists what is recorded there; --workspace and --state name other places"}
	case errors.Is(err, sqlite.ErrIncomplete):
		return &problem{code: exitInternal, what: err.Error(), fix: putBack(at)}
	case errors.Is(err, record.ErrDamaged):
		return &problem{code: exitInternal, what: err.Error(), fix: "copy the folder before anything else opens it; " + at.hint("fsck") + " lists what is wrong"}
	default:
		return &problem{code: exitInternal, what: err.Error()}
	}
}

// putBack returns the hint for an incomplete journal.
func putBack(at *workspaceState) string {
	return "put journal.db, journal.db-wal and journal.head back as they were together; " + at.hint("fsck", "--accept-head") + " goes on without what is missing"
}

// policyProblem reports the first error of a policy, and the number of further
// ones.
func policyProblem(e *rego.LoadError) *problem {
	p := &problem{code: exitUsage, what: "the policy cannot be used"}
	if len(e.Problems) == 0 {
		return p
	}
	first := e.Problems[0]
	p.why, p.fix = withPlace(first.Text, first.At), first.Fix
	if more := len(e.Problems) - 1; more > 0 {
		p.why += fmt.Sprintf("; and %d more: remit policy check lists them", more)
	}
	return p
}

// callCode returns the exit code of one call.
func callCode(o tool.Outcome) exitCode { return exitCode(o.ExitCode()) }

// withPlace appends the position of a rule, if it is known.
func withPlace(text, at string) string {
	if at == "" {
		return text
	}
	return text + " (" + at + ")"
}

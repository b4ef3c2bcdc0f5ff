package cli

import (
	"slices"

	"github.com/remit-dev/remit/tool"
)

// ExitCode is the exit code of the command.
type ExitCode int

// The exit codes. docs/reference/outcomes.md has the table.
const (
	ExitOK       ExitCode = 0
	ExitInternal ExitCode = 1
	ExitUsage    ExitCode = 2
	ExitDenied   ExitCode = 3
	ExitPending  ExitCode = 4
	ExitFailed   ExitCode = 5
	ExitPartial  ExitCode = 6
	ExitUnknown  ExitCode = 7
)

// Severity lists the codes, the most serious first.
func Severity() []ExitCode {
	return []ExitCode{ExitInternal, ExitUsage, ExitUnknown, ExitPartial, ExitFailed, ExitPending, ExitDenied}
}

// Worst returns the more serious of two codes. A code that is not in the table
// is an internal error.
func Worst(a, b ExitCode) ExitCode {
	order := append(Severity(), ExitOK)
	i, j := slices.Index(order, a), slices.Index(order, b)
	if i < 0 || j < 0 {
		return ExitInternal
	}
	return order[min(i, j)]
}

// CallCode returns the exit code of one call.
func CallCode(o tool.Outcome) ExitCode { return ExitCode(o.ExitCode()) }

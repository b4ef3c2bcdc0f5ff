package state

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// ProblemOf returns the code and the message of an error. Its hints refer to
// at.
func ProblemOf(err error, at *Workspace) *cli.Problem {
	var known *cli.Problem
	var policy *rego.LoadError
	var node *agent.NodeError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &node):
		return at.NodeProblem("the files are not on this node", node)
	case errors.As(err, &policy):
		return policyProblem(policy)
	case errors.Is(err, revert.ErrBusy):
		return &cli.Problem{Code: cli.ExitPartial, What: "nothing was reverted", Why: err.Error()}
	case errors.Is(err, revert.ErrNotEnded):
		return &cli.Problem{Code: cli.ExitUsage, What: "nothing was erased", Why: strings.TrimSuffix(err.Error(), ": "+revert.ErrNotEnded.Error()), Fix: at.Hint("log") + " shows how it stands; " + at.Hint("resolve", "CALL", "applied|absent", "--why", "TEXT") + " says what became of a call"}
	case errors.Is(err, revert.ErrIsRevertTxn):
		return &cli.Problem{Code: cli.ExitUsage, What: "nothing was done", Why: err.Error()}
	case errors.Is(err, record.ErrErased):
		return &cli.Problem{Code: cli.ExitPartial, What: "nothing was reverted", Why: err.Error()}
	case errors.Is(err, journal.ErrNotFound):
		return &cli.Problem{Code: cli.ExitUsage, What: err.Error(), Fix: at.Hint("log") + " lists what is recorded there; --workspace and --state name other places"}
	case errors.Is(err, sqlite.ErrIncomplete):
		return &cli.Problem{Code: cli.ExitInternal, What: err.Error(), Fix: RestoreHint(at)}
	case errors.Is(err, record.ErrDamaged):
		return &cli.Problem{Code: cli.ExitInternal, What: err.Error(), Fix: "copy the folder before anything else opens it; " + at.Hint("fsck") + " lists what is wrong"}
	default:
		return &cli.Problem{Code: cli.ExitInternal, What: err.Error()}
	}
}

// PlaceOf returns the workspace that the flags of a command name, for hints. A
// command that ends early has not resolved it.
func PlaceOf(cmd *cobra.Command) *Workspace {
	p := &Workspace{}
	if cmd == nil {
		return p
	}
	for _, name := range []string{"state", "workspace"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && len(p.HintFlags) == 0 {
			p.HintFlags = []string{"--" + name, f.Value.String()}
		}
	}
	if f := cmd.Flags().Lookup("journal"); f != nil && f.Changed {
		named := &Workspace{Journal: f.Value.String()}
		if named.FindJournal(func(string) string { return "" }) == nil { // it holds no password
			p.HintFlags = append(p.HintFlags, named.JournalFlags()...)
		}
	}
	return p
}

// RestoreHint returns the hint for an incomplete journal.
func RestoreHint(at *Workspace) string {
	return "put journal.db, journal.db-wal and journal.head back as they were together; " + at.Hint("fsck", "--accept-head") + " goes on without what is missing"
}

// policyProblem reports the first error of a policy, and the number of further
// ones.
func policyProblem(e *rego.LoadError) *cli.Problem {
	p := &cli.Problem{Code: cli.ExitUsage, What: "the policy cannot be used"}
	if len(e.Problems) == 0 {
		return p
	}
	first := e.Problems[0]
	p.Why, p.Fix = cli.WithPlace(first.Text, first.At), first.Fix
	if more := len(e.Problems) - 1; more > 0 {
		p.Why += fmt.Sprintf("; and %d more: remit policy check lists them", more)
	}
	return p
}

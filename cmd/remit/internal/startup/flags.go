package startup

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
)

// Flags are the flags of a command that opens a runtime.
type Flags struct {
	state.Workspace
	Roots, Policies, Roles []string
	As, OnAsk, AtEnd       string
	Atomic, KeepGoing      bool
	JSON                   bool
	ClaimTimeout           time.Duration
	SessionFile            string // file of the session token
	Data                   Data   // data of a new session
	AsSet                  bool
	Notify                 string // program that is notified of pending calls
	Limits                 Limits
	UserTexts              []string           // texts of the user, whose URLs and values are user-provided
	Recovers               bool               // recover the calls that dead processes left in flight, at the start
	Retain                 *revert.Retention  // retention while the runtime is open; nil: none
	RestCommand            func(n int) string // command that runs the script from a line on; nil: there is none
}

// Check rejects invalid values.
func (f Flags) Check() error {
	if !slices.Contains([]string{"commit", "revert", "leave-open"}, f.AtEnd) {
		return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("--at-end %q is not an end", f.AtEnd), Fix: "valid are commit, revert, leave-open"}
	}
	if f.Atomic && f.KeepGoing {
		return cli.UsageProblem("--atomic ends at the first line that is not done, and --keep-going does not: use one of them")
	}
	if f.ClaimTimeout < 0 {
		return cli.UsageProblem(fmt.Sprintf("--claim-timeout %s is less than no time; 0 fails at once", f.ClaimTimeout))
	}
	if f.As == "" {
		return cli.UsageProblem("--principal is empty: name the agent or person that makes the calls")
	}
	if slices.Contains(f.Roles, "") {
		return cli.UsageProblem("--role is empty; is a variable not set?")
	}
	if err := f.Data.Check(); err != nil {
		return err
	}
	return f.Limits.Check()
}

// rootWords returns the roots of a run as NAME=DIR: the workspace, and the
// others.
func (f *Flags) rootWords() []string {
	if f.Dir == "" && state.NamesWorkspace(f.Roots) {
		return f.Roots
	}
	return append([]string{state.WorkspaceRoot + "=" + f.Folder()}, f.Roots...)
}

// RootOptions returns the options of the workspace and the other roots, and
// their folders.
func (f *Flags) RootOptions() (opts []agent.Option, folders []string, err error) {
	for _, r := range f.rootWords() {
		name, dir, err := state.ParseRoot(r)
		if err != nil {
			return nil, nil, err
		}
		opts, folders = append(opts, agent.Root(name, dir)), append(folders, dir)
	}
	return opts, folders, nil
}

// AddResumeFlags adds the flags of a command that resumes a call, except those
// of its journal and its end.
func AddResumeFlags(cmd *cobra.Command, f *Flags) {
	state.AddRootFlag(cmd, &f.Workspace)
	state.AddDatabaseFlag(cmd, &f.Workspace)
	AddSandboxFlag(cmd, &f.Workspace)
	state.AddDeclarationFlags(cmd, &f.Declared)
	AddLimitFlags(cmd, &f.Limits)
	cmd.Flags().StringArrayVar(&f.Policies, "policy", nil, "policy `PATH`, the same as for the run (default: the workspace policy)")
	f.As = "agent" // not used: the record has the principal
}

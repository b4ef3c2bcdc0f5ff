package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/version"
)

// Command returns remit doctor.
func Command(a *cli.App) *cobra.Command {
	var f startup.Flags
	cmd := &cobra.Command{
		Use: "doctor", Short: "Report what this machine, the roots, the state folder and the policy support",
		Long: "Tests what remit relies on, in each root and in the state folder. It reports what is weaker here and what fails, each\n" +
			"with a remedy. In a writable root, it creates a folder and removes it again. It does not create or change a journal.\n\n" +
			"Exit codes: 1 something fails; 0 also if something is weaker.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), a, &f) },
	}
	state.AddFlags(cmd, &f.Workspace)
	cmd.Flags().StringArrayVar(&f.Roots, "root", nil, "another root to test, as `NAME=DIR`")
	cmd.Flags().StringArrayVar(&f.Policies, "policy", nil, "policy `PATH` to load (default: the workspace policy)")
	cmd.Flags().BoolVar(&f.JSON, "json", false, "write one JSON object per line: each finding, then the summary")
	return cmd
}

func runDoctor(ctx context.Context, a *cli.App, f *startup.Flags) error {
	var sum Diagnosis
	tell := func(found Finding) {
		sum.Checks++
		switch found.Is {
		case Healthy:
		case Weaker:
			sum.Weaker++
		default:
			sum.Failed++
		}
		if f.JSON {
			a.WriteJSON(found)
		} else {
			writeFinding(a.Style(), a.Out, found)
		}
	}
	if err := Diagnose(ctx, a, f, tell); err != nil {
		return err
	}
	if f.JSON {
		a.WriteJSON(sum)
	} else {
		_, _ = fmt.Fprintf(a.Out, "\n%s: %d weaker here, %d failed\n", cli.Count(sum.Checks, "check"), sum.Weaker, sum.Failed)
	}
	if sum.Failed > 0 {
		a.ExitWith(cli.ExitInternal)
	}
	return nil
}

// Diagnose runs all checks, even if some fail.
func Diagnose(ctx context.Context, a *cli.App, f *startup.Flags, tell func(Finding)) error {
	_, folders, err := f.RootOptions()
	if err != nil {
		return err
	}
	checkSystem(a, tell)
	ways := checkSandbox(ctx, a, f, folders, tell)
	for i, folder := range folders {
		name := "workspace"
		if i > 0 {
			name, _, _ = strings.Cut(f.Roots[i-1], "=")
		}
		checkRoot(a, "root "+name, folder, tell)
		if ways[i] != nil {
			tell(writeModeFinding("root "+name, *ways[i]))
		}
	}
	checkState(ctx, a, f, folders, tell)
	checkPolicy(f.Policies, tell)
	checkAgents(a, folders[0], tell)
	return nil
}

// checkSystem checks what does not depend on a folder.
func checkSystem(a *cli.App, tell func(Finding)) {
	v := version.Read()
	tell(Finding{Where: "system", Check: "version", Is: Healthy, What: v.String()})
	name, err := a.Username()
	if err != nil {
		tell(Finding{
			Where: "system", Check: "approver", Is: Weaker, What: "the operating system does not say who runs this: " + err.Error(),
			Fix: "approve calls as a user whom the system knows: an approval is recorded with its name",
		})
		return
	}
	tell(Finding{Where: "system", Check: "approver", Is: Healthy, What: "approvals from here are recorded as given by " + name})
}

func checkPolicy(paths []string, tell func(Finding)) {
	engine, err := policyfile.Load(paths, false)
	if err != nil {
		p := state.ProblemOf(err, &state.Workspace{})
		fix := p.Fix
		if fix == "" {
			fix = "see remit policy check"
		}
		tell(Finding{Where: "policy", Check: "load", Is: Failing, What: p.Error(), Fix: fix})
		return
	}
	what := "loaded, revision " + engine.Revision()
	if len(paths) == 0 {
		what = "the workspace policy, revision " + engine.Revision()
	}
	tell(Finding{Where: "policy", Check: "load", Is: Healthy, What: what})
	if n := len(engine.UncheckedRefs()); n > 0 && len(paths) > 0 { // the tests cover the policy of remit, and users cannot change it
		tell(Finding{
			Where: "policy", Check: "unchecked", Is: Weaker, What: cli.Count(n, "place") + " of it could not be checked for misspelt fields",
			Fix: "remit policy check --notes lists them; name fields by constant paths there",
		})
	}
}

// DiagnoseFor is Diagnose for a verb that shows the findings its own way.
func DiagnoseFor(ctx context.Context, a *cli.App, f *startup.Flags, found func(where, name, is, what, fix string)) error {
	return Diagnose(ctx, a, f, func(x Finding) { found(x.Where, x.Check, string(x.Is), x.What, x.Fix) })
}

package policy

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent/replay"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/perm/rego/policydiff"
)

// diffTimeout bounds the search of a comparison without --tries.
const diffTimeout = 10 * time.Second

// diffFlags holds the flags of remit policy diff.
type diffFlags struct {
	state.Workspace
	tries int
	seed  uint64
	json  bool
}

func diffCommand(a *cli.App) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use: "diff OLD NEW", Short: "Search requests that two policies decide differently",
		Long: "Compares two policies, each a .rego file, a folder of such files, or builtin:PACK. The command builds requests from\n" +
			"the conditions of the rules of both, decides each request by both, and prints each pair of rules that decide\n" +
			"differently once, with a small counterexample. With --workspace or --state, it also decides the recorded calls of that\n" +
			"journal by both, as remit policy backtest does.\n\n" +
			"A difference is another effect, or another limit, requirement, label, mask, redaction or failed postcondition. Other\n" +
			"reasons for the same decision are no difference. With --json, input is the whole counterexample, in the form of\n" +
			"remit policy eval.\n\n" +
			"The search ends after 20,000 requests or 10 seconds, whichever comes first; with --tries, only after that number. The\n" +
			"same --seed builds the same requests. The command proves nothing: no difference found means that these requests show\n" +
			"none.\n\n" +
			"Exit codes: 0 no difference found; 3 differences; 2 usage.",
		Args: func(_ *cobra.Command, paths []string) error {
			if len(paths) != 2 {
				return cli.UsageProblem("want two policies, OLD and NEW: each a .rego file, a folder of them, or builtin:PACK")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, paths []string) error {
			recorded := cmd.Flags().Changed("workspace") || cmd.Flags().Changed("state")
			return runDiff(cmd.Context(), a, &f, paths, recorded)
		},
	}
	state.AddFlags(cmd, &f.Workspace)
	flags := cmd.Flags()
	flags.IntVar(&f.tries, "tries", 0, "build `N` requests, without a time limit (default 20,000 requests or 10 s)")
	flags.Uint64Var(&f.seed, "seed", 0, "`N` that selects the requests (default 0)")
	flags.BoolVar(&f.json, "json", false, "write one JSON object")
	return cmd
}

// diffOutput is the JSON form of a comparison.
type diffOutput struct {
	Generated *policydiff.Report `json:"generated"`
	Recorded  *replay.Report     `json:"recorded,omitempty"` // recorded calls, if a journal is named
}

func runDiff(ctx context.Context, a *cli.App, f *diffFlags, paths []string, recorded bool) error {
	if f.tries < 0 {
		return cli.UsageProblem("--tries must not be negative")
	}
	old, err := policyfile.Load(paths[:1], false)
	if err != nil {
		return err
	}
	changed, err := policyfile.Load(paths[1:], false)
	if err != nil {
		return err
	}
	var out diffOutput
	if recorded {
		if out.Recorded, err = f.compareRecorded(ctx, a, old, changed); err != nil {
			return err
		}
	}
	search := ctx
	if f.tries == 0 {
		var stop context.CancelFunc
		search, stop = context.WithTimeout(ctx, diffTimeout)
		defer stop()
	}
	if out.Generated, err = policydiff.Run(search, policydiff.Options{Old: old, New: changed, Tries: f.tries, Seed: f.seed}); err != nil {
		return err
	}
	if out.differs() {
		a.ExitWith(cli.ExitDenied)
	}
	if f.json {
		a.WriteJSON(out)
		return nil
	}
	writeDiff(a.Style(), a.Out, out)
	return nil
}

func (o diffOutput) differs() bool {
	return len(o.Generated.Differences) > 0 || o.Recorded != nil && len(o.Recorded.Changes) > 0
}

// compareRecorded decides the recorded calls by both policies.
func (f *diffFlags) compareRecorded(ctx context.Context, a *cli.App, old, changed *rego.Engine) (r *replay.Report, err error) {
	j, err := f.Read(ctx, a)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	o := replay.Options{Old: old, New: changed}
	return replay.Run(ctx, recordedDecisions(ctx, a, j, time.Time{}, decisionsFor(ctx, j, o)), o)
}

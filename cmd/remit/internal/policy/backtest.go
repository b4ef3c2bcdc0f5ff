package policy

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/agent/replay"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// backtestFlags holds the flags of remit policy backtest.
type backtestFlags struct {
	state.Workspace
	policies []string
	against  []string
	since    time.Duration
	failOn   string
	examples int
	json     bool
}

func backtestCommand(a *cli.App) *cobra.Command {
	var f backtestFlags
	cmd := &cobra.Command{
		Use: "backtest --policy PATH", Short: "Decide recorded calls and commits again under another policy",
		Long: "Decides each recorded call again, with the input, the time and the counts that the policy saw, and reports the decisions\n" +
			"that change, grouped by rule, tool and resource. It compares the new policy with the recorded decisions, or, with\n" +
			"--against, with another policy. It changes nothing.\n\n" +
			"It repeats the decisions before calls and about commits, also about commits that no policy decided. It does not repeat\n" +
			"decisions about accesses of a running call and about reverts. If a policy reads what the journal does not have, such as a redacted argument, the report says so.\n\n" +
			"Exit codes: 0 done; 3 --fail-on found such a change; 7 it found none, and some decisions cannot be decided again; 2 usage.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runBacktest(cmd.Context(), a, &f) },
	}
	state.AddFlags(cmd, &f.Workspace)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.policies, "policy", nil, "new policy `PATH`: a .rego file, a folder of such files, or builtin:PACK")
	flags.StringArrayVar(&f.against, "against", nil, "old policy `PATH`, to compare with (default: the recorded decisions)")
	cli.AddAgeFlag(cmd, &f.since, "since", "only calls that were decided less than `TIME` ago, such as 30d or 12h (default: all)")
	flags.StringVar(&f.failOn, "fail-on", "", "exit code 3 if a decision changes in this `WAY`: loosened, tightened or changed")
	flags.IntVar(&f.examples, "examples", 0, "name at most `N` calls for each change (default 3)")
	flags.BoolVar(&f.json, "json", false, "write one JSON object")
	return cmd
}

func (f *backtestFlags) check() error {
	switch {
	case len(f.policies) == 0:
		return cli.UsageProblem("--policy is missing: name the policy to try")
	case f.failOn != "" && f.failOn != "loosened" && f.failOn != "tightened" && f.failOn != "changed":
		return cli.UsageProblem("--fail-on " + f.failOn + ": valid are loosened, tightened, changed")
	case f.examples < 0:
		return cli.UsageProblem("--examples must not be negative")
	}
	return nil
}

func runBacktest(ctx context.Context, a *cli.App, f *backtestFlags) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	o := replay.Options{Examples: f.examples}
	if o.New, err = policyfile.Load(f.policies, false); err != nil {
		return err
	}
	if len(f.against) > 0 {
		if o.Old, err = policyfile.Load(f.against, false); err != nil {
			return err
		}
	}
	j, err := f.Read(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	var since time.Time
	if f.since > 0 {
		since = a.Host.Now().Add(-f.since)
	}
	r, err := replay.Run(ctx, recordedDecisions(ctx, a, j, since, decisionsFor(ctx, j, o)), o)
	if err != nil {
		return err
	}
	switch {
	case f.fails(r):
		a.ExitWith(cli.ExitDenied)
	case f.failOn != "" && r.Undecided() > 0:
		a.ExitWith(cli.ExitUnknown)
	}
	if f.json {
		a.WriteJSON(r)
		return nil
	}
	writeBacktest(a.Style(), a.Out, r)
	return nil
}

func (f *backtestFlags) fails(r *replay.Report) bool {
	switch f.failOn {
	case "loosened":
		return r.Loosened > 0
	case "tightened":
		return r.Tightened > 0
	case "changed":
		return r.Loosened+r.Tightened > 0
	default:
		return false
	}
}

// decisionsFor returns the decisions of a session that a replay needs.
func decisionsFor(ctx context.Context, j journal.Journal, o replay.Options) func(string) iter.Seq2[agent.RecordedDecision, error] {
	return func(session string) iter.Seq2[agent.RecordedDecision, error] {
		return replay.Decisions(ctx, j, session, o)
	}
}

// recordedDecisions returns the decisions of all sessions of a journal since a
// time, session by session.
func recordedDecisions(ctx context.Context, a *cli.App, j journal.Journal, since time.Time, of func(session string) iter.Seq2[agent.RecordedDecision, error]) iter.Seq2[agent.RecordedDecision, error] {
	return func(yield func(agent.RecordedDecision, error) bool) {
		for e, err := range j.Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindSession}}) {
			if err != nil {
				yield(agent.RecordedDecision{}, err)
				return
			}
			for d, err := range of(e.Header.Session) {
				if err == nil && d.At.Before(since) {
					continue
				}
				if !yield(d, err) || err != nil {
					return
				}
			}
		}
	}
}

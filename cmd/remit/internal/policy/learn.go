package policy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/agent/learn"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/journal"
)

// learnFlags holds the flags of remit policy learn.
type learnFlags struct {
	state.Workspace
	sessions []string
	since    time.Duration
	out      string
	tighten  []string
	maxRules int
	json     bool
}

func learnCommand(a *cli.App) *cobra.Command {
	var f learnFlags
	cmd := &cobra.Command{
		Use: "learn", Short: "Write a policy from what recorded calls did",
		Long: "Writes a policy that allows what recorded calls did, if they went well, and that asks about everything else. It is a\n" +
			"template: review each rule, and load it beside a pack. Nothing applies it by itself.\n\n" +
			"It learns nothing from calls that failed, were reverted, denied or not verified, whose outcome is unknown, that a\n" +
			"person had to approve, that named secrets or redacted values, or that came after the session read untrusted\n" +
			"content. A report on standard error says what was left out and why.\n\n" +
			"With --tighten, it names the allow rules of a policy that no such call used, and narrower rules for the others.\n\n" +
			"Exit codes: 0 done; 2 usage, or the file of -o exists.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runLearn(cmd.Context(), a, &f) },
	}
	state.AddFlags(cmd, &f.Workspace)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.sessions, "session", nil, "learn only from the session `ID` (can be repeated; default: all)")
	cli.AddAgeFlag(cmd, &f.since, "since", "only calls that began less than `TIME` ago, such as 30d or 12h (default: all)")
	flags.StringVarP(&f.out, "output", "o", "", "write the policy to `FILE`, such as learned.rego, and its tests beside it (default: the policy to standard output)")
	flags.StringArrayVar(&f.tighten, "tighten", nil, "compare with the policy `PATH`: a .rego file, a folder of such files, or builtin:PACK")
	flags.IntVar(&f.maxRules, "max-rules", 0, "write at most `N` rules (default 40)")
	flags.BoolVar(&f.json, "json", false, "write one JSON object")
	return cmd
}

func (f *learnFlags) check() error {
	switch {
	case f.maxRules < 0:
		return cli.UsageProblem("--max-rules must not be negative")
	case f.out != "" && (!strings.HasSuffix(f.out, ".rego") || strings.HasSuffix(f.out, "_test.rego")):
		return cli.UsageProblem("-o " + f.out + ": must be a .rego file, and not a _test.rego file")
	case f.out != "" && len(f.tighten) > 0:
		return cli.UsageProblem("-o and --tighten exclude each other: --tighten writes no policy")
	}
	return nil
}

// learnOutput is the JSON form of what was learned.
type learnOutput struct {
	Decisions int             `json:"decisions"`
	Learned   int             `json:"learned"` // calls to learn from
	Skipped   []learn.Skipped `json:"skipped"`
	Files     []string        `json:"files"` // written
	*learn.Policy
	Tighten []learn.Use `json:"tighten,omitempty"`
}

func runLearn(ctx context.Context, a *cli.App, f *learnFlags) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	j, err := f.Read(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	e, err := learn.Collect(ctx, j, f.decisions(ctx, a, j))
	if err != nil {
		return err
	}
	o := learnOutput{Decisions: e.Decisions, Learned: e.Learned, Skipped: e.Skipped, Files: []string{}}
	options := learn.Options{MaxRules: f.maxRules}
	if len(f.tighten) > 0 {
		return f.runTighten(ctx, a, e, o, options)
	}
	if o.Policy, err = e.Policy(ctx, options); err != nil {
		return err
	}
	if f.out != "" {
		if o.Files, err = writeLearned(f.out, o.Policy); err != nil {
			return err
		}
	}
	if f.json {
		a.WriteJSON(o)
		return nil
	}
	if f.out == "" {
		_, _ = fmt.Fprint(a.Out, o.Rego)
	}
	writeLearnReport(a, o)
	return nil
}

func (f *learnFlags) runTighten(ctx context.Context, a *cli.App, e *learn.Evidence, o learnOutput, options learn.Options) error {
	var engine *rego.Engine
	engine, err := policyfile.Load(f.tighten, false)
	if err != nil {
		return err
	}
	if o.Tighten, err = e.Tighten(ctx, engine, options); err != nil {
		return err
	}
	if f.json {
		a.WriteJSON(o)
		return nil
	}
	for _, u := range o.Tighten {
		if u.Count == 0 {
			_, _ = fmt.Fprintf(a.Out, "%s  never used\n\n", cli.Printable(u.At))
			continue
		}
		_, _ = fmt.Fprintf(a.Out, "%s  allowed %s; narrower rules for them:\n", cli.Printable(u.At), cli.Count(u.Count, "call"))
		writeBlock(a.Out, u.Narrower)
		_, _ = fmt.Fprintln(a.Out)
	}
	writeSkipped(a, o)
	return nil
}

// decisions returns the decisions of the chosen sessions.
func (f *learnFlags) decisions(ctx context.Context, a *cli.App, j journal.Journal) iter.Seq2[agent.RecordedDecision, error] {
	var since time.Time
	if f.since > 0 {
		since = a.Host.Now().Add(-f.since)
	}
	calls := func(session string) iter.Seq2[agent.RecordedDecision, error] {
		return agent.RecordedDecisions(ctx, j, session)
	}
	return func(yield func(agent.RecordedDecision, error) bool) {
		for d, err := range recordedDecisions(ctx, a, j, since, calls) {
			if err == nil && len(f.sessions) > 0 && !slices.Contains(f.sessions, d.Session) {
				continue
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// writeLearned writes the policy and its tests, or neither.
func writeLearned(out string, p *learn.Policy) ([]string, error) {
	tests := strings.TrimSuffix(out, ".rego") + "_test.rego"
	for _, file := range []string{out, tests} {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return nil, &cli.Problem{Code: cli.ExitUsage, What: file + ": is there already", Why: "nothing was written", Fix: "name another file"}
		}
	}
	if err := writeFresh(out, []byte(p.Rego)); err != nil {
		return nil, folderProblem(out, err)
	}
	if err := writeFresh(tests, []byte(p.Test)); err != nil {
		return nil, folderProblem(tests, err)
	}
	return []string{out, tests}, nil
}

// writeLearnReport tells people what was learned, on standard error: standard
// output has the policy.
func writeLearnReport(a *cli.App, o learnOutput) {
	for _, file := range o.Files {
		_, _ = fmt.Fprintf(a.Err, "wrote %s\n", cli.Printable(file))
	}
	writeSkipped(a, o)
	_, _ = fmt.Fprintf(a.Err, "%s allow %d of them\n", cli.Count(len(o.Rules), "rule"), o.Covered)
	for _, list := range []struct {
		title string
		what  []learn.LeftOut
	}{{"went well, and is not allowed:", o.LeftOut}, {"was denied, or a person was asked:", o.Refused}} {
		if len(list.what) > 0 {
			_, _ = fmt.Fprintf(a.Err, "%s\n", list.title)
		}
		for _, l := range list.what {
			_, _ = fmt.Fprintf(a.Err, "  %s: %s (%s), such as %s\n", cli.Count(l.Count, "call"), cli.Printable(l.What), l.Why, strings.Join(l.Calls, " "))
		}
	}
	_, _ = fmt.Fprintln(a.Err, "this is a template: review each rule, try the policy on recorded calls, and load it beside a pack")
}

func writeSkipped(a *cli.App, o learnOutput) {
	_, _ = fmt.Fprintf(a.Err, "%s read, %s to learn from\n", cli.Count(o.Decisions, "decision"), cli.Count(o.Learned, "call"))
	for _, s := range o.Skipped {
		_, _ = fmt.Fprintf(a.Err, "  not from %s: %s, such as %s\n", cli.Count(s.Count, "call"), s.Why, strings.Join(s.Calls, " "))
	}
}

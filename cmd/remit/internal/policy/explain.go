package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// explainFlags holds the flags of remit policy explain.
type explainFlags struct {
	state.Workspace
	input    string
	policies []string
	json     bool
}

func explainCommand(a *cli.App) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use: "explain CALL | --input FILE|-", Short: "Explain the decision about a call, and what permits the call",
		Long: "Evaluates a policy again for a recorded call, or for an input document in the form of remit policy eval. The command\n" +
			"reports the rules that decided, with their lines and the values that they read. It also reports the rules that did not\n" +
			"match but could have allowed the call, and the smallest change of the policy that permits the call. The command tests\n" +
			"this change before it prints it.\n\n" +
			"The command computes the counts of the session from the journal. It does not know what a program changed, nor what was\n" +
			"erased. If the same policy decided otherwise because of this, the command says that it cannot tell.\n\n" +
			"Exit codes: 0 explained; 2 usage, or nothing to explain.",
		Args: func(_ *cobra.Command, ids []string) error {
			if (f.input == "") == (len(ids) == 0) || len(ids) > 1 {
				return cli.UsageProblem("want the id of one call, or --input FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, ids []string) error { return runExplain(cmd.Context(), a, &f, ids) },
	}
	state.AddFlags(cmd, &f.Workspace)
	flags := cmd.Flags()
	flags.StringVar(&f.input, "input", "", "`FILE` with an input document, or - for standard input")
	flags.StringArrayVar(&f.policies, "policy", nil, "policy `PATH`: a .rego file, a folder of such files, or builtin:PACK (default: the workspace policy)")
	flags.BoolVar(&f.json, "json", false, "write one JSON object per line, for each access")
	return cmd
}

// explainOutput is the JSON form of the explanation of one access.
type explainOutput struct {
	Call string `json:"call,omitempty"`
	Tool string `json:"tool"`
	rego.Explanation
	Access   perm.AccessFacts     `json:"access"`
	Recorded *perm.DecisionRecord `json:"recorded,omitempty"` // decision at the time of the call
	Change   *rego.PolicyFix      `json:"change"`             // null: no change was found
	Approve  string               `json:"approve,omitempty"`  // command that approves the call
	Notes    []string             `json:"notes"`
	// Unknown says why the decision cannot be repeated. Decision is then the
	// recorded one.
	Unknown string `json:"unknown,omitempty"`
}

func runExplain(ctx context.Context, a *cli.App, f *explainFlags, ids []string) error {
	engine, err := policyfile.Load(f.policies, false)
	if err != nil {
		return err
	}
	var asked []recordedRequest
	if f.input != "" {
		r, err := readRequest(ctx, a, f.input)
		if err != nil {
			return err
		}
		asked = []recordedRequest{{request: r}}
	} else if asked, err = recordedRequests(ctx, a, f, ids[0]); err != nil {
		return err
	}
	all, err := f.explain(ctx, engine, asked)
	if err != nil {
		return err
	}
	for i, x := range all {
		if f.json {
			a.WriteJSON(x)
			continue
		}
		if i > 0 {
			_, _ = fmt.Fprintln(a.Out)
		}
		writeExplanation(a.Style(), a.Out, x)
	}
	return nil
}

// ExplainCall explains the decision about a recorded call in a text, as remit
// policy explain does. Without paths it takes the policy that decided, if that
// is the one of the workspace or of coding agents.
func ExplainCall(ctx context.Context, a *cli.App, at *state.Workspace, paths []string, call string) (string, error) {
	f := explainFlags{Workspace: *at, policies: paths}
	asked, err := recordedRequests(ctx, a, &f, call)
	if err != nil {
		return "", err
	}
	engine, err := policyfile.Load(paths, false)
	if err != nil {
		return "", err
	}
	if len(paths) == 0 && asked[0].decision != nil && asked[0].decision.Revision != engine.Revision() {
		if other, err := policyfile.LoadAgents(policyfile.AgentPaths()); err == nil && other.Revision() == asked[0].decision.Revision {
			engine = other
		}
	}
	all, err := f.explain(ctx, engine, asked)
	var b strings.Builder
	for _, x := range all {
		writeExplanation(false, &b, x)
	}
	return b.String(), err
}

// explain explains each access. It withholds an explanation that contradicts
// the recorded decision: the policy read something that the journal does not
// have.
func (f *explainFlags) explain(ctx context.Context, engine *rego.Engine, asks []recordedRequest) (all []explainOutput, err error) {
	strictest := map[bool]perm.Effect{false: perm.Allow, true: perm.Allow} // key: the call asked while it ran
	for _, ask := range asks {
		x, err := f.explainOne(ctx, engine, ask)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
		strictest[x.Access.Dynamic] = min(strictest[x.Access.Dynamic], effectOf(x.Decision.Effect))
	}
	for i, ask := range asks {
		if why := ask.unknownReason(all[i], strictest[all[i].Access.Dynamic]); why != "" {
			f.withhold(&all[i], ask, why)
		}
	}
	return all, nil
}

func (f *explainFlags) explainOne(ctx context.Context, engine *rego.Engine, ask recordedRequest) (explainOutput, error) {
	why, err := engine.Explain(ctx, ask.request)
	if err != nil {
		return explainOutput{}, err
	}
	x := explainOutput{Call: ask.call, Tool: ask.request.Tool.Name, Explanation: why, Access: ask.request.Access, Recorded: ask.decision, Notes: []string{}}
	if ask.lacksRequired(x) {
		x.Decision = *ask.decision
	}
	if why.Decision.Effect == perm.Ask.String() {
		x.Approve = f.Hint("run", "--on-ask", "wait") + ", then " + f.Hint("approve", "CALL")
		if ask.pending {
			x.Approve = f.approve(ask)
		}
	}
	x.Notes = append(x.Notes, ask.notes(x)...)
	if d, err := engine.Decide(ctx, ask.request); err == nil {
		x.Notes = append(x.Notes, budgetNotes(d)...)
	}
	if _, is := x.required(); is {
		return x, nil
	}
	change, err := engine.SuggestAllow(ctx, ask.request)
	if errors.Is(err, rego.ErrNoFix) {
		return x, nil
	}
	x.Change = &change
	return x, err
}

// required reports whether the tool lacks a required property. At is the place
// of the rule; it is empty if a result raised the requirement.
func (x explainOutput) required() (at string, is bool) {
	i := slices.IndexFunc(x.Decision.Reasons, func(p perm.Reason) bool { return p.Set == "require" })
	if i < 0 || x.Decision.Effect != perm.Deny.String() {
		return "", false
	}
	return x.Decision.Reasons[i].At, true
}

// approve returns the command that approves a pending call. It names the digest
// of a program's changes.
func (f *explainFlags) approve(ask recordedRequest) string {
	if ask.request.Purpose == perm.PurposeApply {
		return f.Hint("approve", ask.call, "--request", ask.requestDigest)
	}
	return f.Hint("approve", ask.call)
}

// withhold removes an explanation that does not hold for the call.
func (f *explainFlags) withhold(x *explainOutput, ask recordedRequest, why string) {
	x.Unknown, x.Approve, x.Change, x.Notes, x.Explanation = why, "", nil, []string{}, rego.Explanation{Decision: *ask.decision, Rules: []rego.RuleTrace{}}
	if ask.pending {
		x.Approve = f.approve(ask)
		x.Notes = append(x.Notes, "the call waits; what it asks: "+f.Hint("show", ask.call))
	}
}

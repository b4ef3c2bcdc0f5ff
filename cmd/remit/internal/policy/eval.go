package policy

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
)

// evalFlags holds the flags of remit policy eval.
type evalFlags struct {
	state.Workspace

	input, call, line string
	json              bool
}

func evalCommand(a *cli.App) *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use: "eval --input FILE|- | --line JSON|- | --call CALL [PATH]...", Short: "Evaluate a policy for one call",
		Long: "Decides one input document like a call, with the policy of the given files and folders (default: the workspace\n" +
			"policy). The exit code is that of the call: 0 for allow and hold, 3 for deny, 4 for ask; 2 for an invalid input.\n\n" +
			"--line takes a line of a script, such as '{\"tool\":\"file_read\",\"args\":{\"path\":\"a\"}}', and decides each access of its\n" +
			"call in a new session. --call takes a recorded call; remit policy explain tells more about it.\n\n" +
			"The input needs purpose, tool and access, and each other field that a rule reads. remit policy schema prints all\n" +
			"fields. A whole input:\n\n" + SampleInput,
		RunE: func(cmd *cobra.Command, paths []string) error { return runEval(cmd.Context(), a, &f, paths) },
	}
	state.AddFlags(cmd, &f.Workspace)
	cmd.Flags().StringVar(&f.input, "input", "", "`FILE` with the input document, or - for standard input")
	cmd.Flags().StringVar(&f.line, "line", "", "a line of a script in `JSON`, or - for standard input")
	cmd.Flags().StringVar(&f.call, "call", "", "`ID` of a recorded call")
	cmd.Flags().BoolVar(&f.json, "json", false, "write one JSON object for each access")
	return cmd
}

// requests returns what the policy decides.
func (f *evalFlags) requests(ctx context.Context, a *cli.App) ([]perm.Request, error) {
	switch given := slices.DeleteFunc([]string{f.input, f.line, f.call}, func(s string) bool { return s == "" }); {
	case len(given) == 0:
		return nil, cli.UsageProblem("--input is missing: there is nothing to decide about; --line and --call name it too")
	case len(given) > 1:
		return nil, cli.UsageProblem("give one of --input, --line and --call")
	case f.input != "":
		r, err := readRequest(ctx, a, f.input)
		return []perm.Request{r}, err
	case f.line != "":
		return lineRequests(ctx, a, f.line)
	}
	recorded, err := recordedRequests(ctx, a, &explainFlags{Workspace: f.Workspace}, f.call)
	var all []perm.Request
	for _, r := range recorded {
		all = append(all, r.request)
	}
	return all, err
}

func runEval(ctx context.Context, a *cli.App, f *evalFlags, paths []string) error {
	requests, err := f.requests(ctx, a)
	if err != nil {
		return err
	}
	engine, err := policyfile.Load(paths, false)
	if err != nil {
		return err
	}
	for _, request := range requests {
		d, err := engine.Decide(ctx, request)
		switch {
		case err != nil, d.Effect() == perm.Deny:
			a.ExitWith(cli.ExitDenied)
		case d.Effect() == perm.Ask:
			a.ExitWith(cli.ExitPending)
		}
		if !f.json && f.input == "" {
			_, _ = fmt.Fprintln(a.Out, cli.Printable(request.Tool.Name+": "+string(request.Access.Action)+" "+request.Access.Resource.Text))
		}
		writeEvaluated(a, d, err, f.json)
	}
	return nil
}

// writeEvaluated writes a decision, or why there is none.
func writeEvaluated(a *cli.App, d perm.Decision, err error, asJSON bool) {
	notes := budgetNotes(d)
	if asJSON {
		all := d.Details()
		a.WriteJSON(evaluated{
			DecisionRecord: d.Record(), Require: all.Requires, Ensure: all.FailedPostconditions, Hide: all.HideReasons, Label: all.Labels, Mask: all.Masks, Redact: all.Redact, Notes: notes,
		})
		return
	}
	writeDecision(a.Style(), a.Out, d)
	for _, note := range notes {
		_, _ = fmt.Fprintf(a.Out, "  %-8s %s\n", "note", cli.Printable(note))
	}
	if err != nil {
		_, _ = fmt.Fprintln(a.Err, cli.Printable(err.Error()))
	}
}

// evaluated is a decision with the results of the policy's other sets, by name.
type evaluated struct {
	perm.DecisionRecord

	Require []perm.Reason `json:"require,omitempty"`
	Ensure  []perm.Reason `json:"ensure,omitempty"`
	Hide    []perm.Reason `json:"hide,omitempty"`
	Label   []string      `json:"label,omitempty"`
	Mask    []string      `json:"mask,omitempty"`
	Redact  []string      `json:"redact,omitempty"`
	Notes   []string      `json:"notes,omitempty"`
}

// budgetNotes returns a note for each budget of a decision, as this command
// enforces none.
func budgetNotes(d perm.Decision) (notes []string) {
	for _, l := range d.Limits() {
		notes = append(notes, fmt.Sprintf("the budget %q is not held here: the runtime holds it against what it counted when the call comes (%s)", l.Budget, l.At))
	}
	return notes
}

func readRequest(ctx context.Context, a *cli.App, input string) (r perm.Request, err error) {
	from := a.In
	if input != "-" {
		f, err := os.Open(input)
		if err != nil {
			return r, inputProblem(input, err)
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	text, err := cli.ReadInput(ctx, from, int64(canon.DefaultLimits().Bytes)+1)
	if err != nil {
		return r, inputProblem(input, err)
	}
	if r, err = parseRequest(text); err != nil {
		err = &cli.Problem{
			Code: cli.ExitUsage, What: "the input document cannot be used", Why: err.Error(),
			Fix: "remit policy eval --help shows a whole one, remit policy schema all that it may hold",
		}
	}
	return r, err
}

func inputProblem(input string, err error) error {
	return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("the input %q cannot be read", input), Why: cli.PlainError(err), Fix: "name a file, or - for standard input"}
}

// mostListed bounds the entries of one set that are written for people. The
// packs mask fifty patterns of files with secrets.
const mostListed = 10

func writeDecision(p cli.Style, w io.Writer, d perm.Decision) {
	effect := p.Good(d.Effect().String())
	if d.Effect() == perm.Deny {
		effect = p.Bad(d.Effect().String())
	}
	_, _ = fmt.Fprintln(w, effect)
	details := d.Details()
	for _, r := range slices.Concat(details.Reasons, details.Requires, details.FailedPostconditions, details.HideReasons) {
		set := r.Set
		if set == "" {
			set = d.Effect().String()
		}
		_, _ = fmt.Fprintf(w, "  %-8s %s\n", set, cli.Printable(cli.WithPlace(r.Text, r.At)))
	}
	for _, set := range []struct {
		name string
		all  []string
	}{{"hint", details.Hints}, {"label", details.Labels}, {"mask", details.Masks}, {"redact", details.Redact}} {
		if len(set.all) > mostListed {
			_, _ = fmt.Fprintf(w, "  %-8s %d entries: --json lists them\n", set.name, len(set.all))
			continue
		}
		for _, text := range set.all {
			_, _ = fmt.Fprintf(w, "  %-8s %s\n", set.name, cli.Printable(text))
		}
	}
}

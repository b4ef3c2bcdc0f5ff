package journal

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/record"
)

// FeedbackCommand returns remit feedback.
func FeedbackCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var note string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "feedback CALL good|bad|wrong|unsafe [--note TEXT]", Short: "Record your feedback on a call",
		Long: "Records your feedback on a call: good, it did what you wanted; bad, it was useless; wrong, its result or its effect is\n" +
			"wrong; unsafe, it did harm or could have. The record has your name, as the operating system reports it. Feedback\n" +
			"changes nothing else. remit tools stats counts it for the declaration that made the call. Your newest feedback on a\n" +
			"call counts.",
		Args: cli.WantIDs(2, 2, "the id of one call, and good, bad, wrong or unsafe"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f := provenance.Feedback{Call: args[0], Verdict: provenance.Rating(args[1]), Note: note}
			if err := f.Verdict.Check(); err != nil {
				return cli.UsageProblem(err.Error())
			}
			var err error
			if f.By, err = a.Username(); err != nil || f.By == "" {
				return &cli.Problem{Code: cli.ExitUsage, What: "nothing was written", Why: "the operating system does not say who you are, and feedback has a name"}
			}
			return startup.WithRuntime(cmd.Context(), a, &p, func(rt *agent.Runtime) error {
				if f.Call, err = state.FullID(cmd.Context(), rt.Journal(), f.Call); err != nil {
					return err
				}
				f, err := rt.Feedback(cmd.Context(), f)
				if errors.Is(err, record.ErrErased) || len(note) > 4096 {
					return &cli.Problem{Code: cli.ExitUsage, What: "nothing was written", Why: err.Error()}
				}
				if err != nil {
					return err
				}
				if asJSON {
					a.WriteJSON(f)
				} else {
					_, _ = fmt.Fprintf(a.Out, "call %s of %s: %s, by %s\n", f.Call, cli.Printable(f.Tool), f.Verdict, cli.Printable(f.By))
				}
				return nil
			})
		},
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().StringVar(&note, "note", "", "`TEXT` with the reason; remit erase destroys it with the call")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// feedbackWords returns one line for each feedback on a call.
func feedbackWords(f provenance.Feedback) string {
	words := string(f.Verdict) + ", by " + f.By
	if f.BySelf {
		words += ", who asked for the call"
	}
	if f.Note != "" {
		words += ": " + f.Note
	}
	return words
}

// ratedWords returns the verdicts on a call, the newest of each person, for its
// line in the log.
func ratedWords(all []provenance.Feedback) (words []string) {
	for i, f := range all {
		later := slices.ContainsFunc(all[i+1:], func(g provenance.Feedback) bool { return g.By == f.By })
		if !later && !slices.Contains(words, string(f.Verdict)) {
			words = append(words, string(f.Verdict))
		}
	}
	return words
}

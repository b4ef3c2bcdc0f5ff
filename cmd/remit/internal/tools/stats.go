package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/cmd/remit/internal/stats"
	"github.com/remit-dev/remit/provenance"
)

func statsCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var asJSON bool
	cmd := &cobra.Command{
		Use: "stats", Short: "Count the outcomes of the calls of each tool",
		Long: "Counts calls for each tool and each of its declarations on the journal: their outcomes, later reverts, the time from\n" +
			"the write-ahead record to the result, and feedback (remit feedback). Percentiles are by nearest rank. Beyond 4096\n" +
			"calls of a declaration they are at most a 64th too long, and marked with ~.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return listStats(cmd.Context(), a, &p, asJSON) },
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object per line, for each tool and digest")
	return cmd
}

func listStats(ctx context.Context, a *cli.App, p *state.Workspace, asJSON bool) (err error) {
	j, err := p.Read(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	rows, err := stats.Read(ctx, j)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if asJSON {
			a.WriteJSON(r)
		} else {
			writeStats(a.Style(), a.Out, r)
		}
	}
	if len(rows) == 0 && !asJSON {
		_, _ = fmt.Fprintln(a.Out, "nothing is recorded for this workspace yet")
	}
	return nil
}

func writeStats(p cli.Style, w io.Writer, r stats.ToolStats) {
	name := cli.Printable(r.Name)
	if name == "" {
		name = "(no such tool)"
	}
	_, _ = fmt.Fprintf(w, "%s  %s  %s\n", p.Bold(fmt.Sprintf("%-12s", name)), cli.Count(r.Calls, "call"), p.Faint(r.Digest))
	row := func(name, words string) {
		if words != "" {
			_, _ = fmt.Fprintf(w, "    %s %s\n", p.Faint(fmt.Sprintf("%-8s", name)), words)
		}
	}
	row("ended", numbers([]number{
		{r.Done, "done"},
		{r.Denied, "denied"},
		{r.Invalid, "invalid"},
		{r.Failed, "failed"},
		{r.VerifyFailed, "verify failed"},
		{r.Unknown, "unknown"},
		{r.Waiting, "waiting"},
		{r.Dropped, "dropped"},
		{r.InFlight, "in flight"},
	}))
	row("reverted", numbers([]number{{r.Reverted, "reverted"}, {r.RevertedPartial, "reverted in part"}}))
	if r.Time.Count > 0 {
		about := map[bool]string{true: "", false: "~"}[r.Time.Exact]
		row("time", fmt.Sprintf("p50 %s%s, p99 %s%s, of %d", about, roundDuration(r.Time.P50), about, roundDuration(r.Time.P99), r.Time.Count))
	}
	var said []number
	for _, v := range provenance.Ratings() {
		said = append(said, number{r.Feedback[v], string(v)})
	}
	words := numbers(said)
	if r.SelfRated > 0 {
		words += fmt.Sprintf(" (%d by who had asked)", r.SelfRated)
	}
	row("said", words)
}

// number is a count with its name. Zero is not shown.
type number struct {
	n    int
	what string
}

func numbers(all []number) string {
	var words []string
	for _, n := range all {
		if n.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	return strings.Join(words, ", ")
}

// roundDuration rounds a duration to three digits.
func roundDuration(d time.Duration) time.Duration {
	for unit := time.Duration(1); unit < time.Hour; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit)
		}
	}
	return d.Round(time.Second)
}

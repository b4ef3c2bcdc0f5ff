package policy

import (
	"fmt"
	"io"
	"strings"

	"github.com/remit-dev/remit/agent/replay"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/perm"
)

// writeBacktest writes a report for people.
func writeBacktest(p cli.Style, w io.Writer, r *replay.Report) {
	_, _ = fmt.Fprintf(w, "%s, %d decided again: %d the same, %d loosened, %d tightened\n",
		cli.Count(r.Decisions, "recorded decision"), r.Same+r.Loosened+r.Tightened, r.Same, r.Loosened, r.Tightened)
	if n := r.Undecided(); n > 0 {
		_, _ = fmt.Fprintf(w, "%s\n", p.Bad(fmt.Sprintf("%d of them cannot be decided again: see below", n)))
	}
	_, _ = fmt.Fprintf(w, "prompts: %d before, %d after\n", r.Prompts.Before, r.Prompts.After)
	for _, c := range r.Changes {
		change := p.Bad(c.Before + " → " + c.After)
		if !c.Loosens() {
			change = p.Good(c.Before + " → " + c.After)
		}
		what, examples := cli.Printable(c.Tool)+", "+c.Action+" "+cli.Printable(c.Resource), "calls"
		if c.Tool == "" {
			what, examples = "the commit of a transaction", "of"
		}
		_, _ = fmt.Fprintf(w, "\n%s  %s: %s\n", change, cli.Count(c.Count, "time"), what)
		writeReasons(w, "before", c.Was)
		writeReasons(w, "after", c.Is)
		if c.Partial {
			_, _ = fmt.Fprintf(w, "  %-8s these calls were denied at one access; the journal does not have their others\n", "note")
		}
		_, _ = fmt.Fprintf(w, "  %-8s %s\n", examples, strings.Join(c.Calls, " "))
	}
	if len(r.Unused) > 0 {
		_, _ = fmt.Fprintf(w, "\nrules that decided nothing:\n")
		for _, rule := range r.Unused {
			_, _ = fmt.Fprintf(w, "  %-8s %s\n", rule.Set, cli.Printable(rule.At))
		}
	}
	if r.NotByPolicy > 0 {
		_, _ = fmt.Fprintf(w, "\nnot decided by a policy: %s (grants and filters refused them)\n", cli.Count(r.NotByPolicy, "call"))
	}
	_, _ = fmt.Fprintln(w, "\nNot decided again: what running calls requested or changed, and reverts.")
	for _, u := range r.Undecidable {
		_, _ = fmt.Fprintf(w, "\n%s %s: %s\n  %-8s %s\n", p.Bad("cannot be decided again:"), cli.Count(u.Count, "decision"), cli.Printable(u.Why), "of", strings.Join(u.Calls, " "))
	}
}

func writeReasons(w io.Writer, when string, reasons []perm.Reason) {
	for _, r := range reasons {
		_, _ = fmt.Fprintf(w, "  %-8s %s\n", when, cli.Printable(cli.WithPlace(r.Text, r.At)))
	}
	if len(reasons) == 0 {
		_, _ = fmt.Fprintf(w, "  %-8s no rule matched\n", when)
	}
}

package policy

import (
	"fmt"
	"io"
	"slices"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

func writeExplanation(p cli.Style, w io.Writer, x explainOutput) {
	effect := p.Good(x.Decision.Effect)
	if x.Decision.Effect == perm.Deny.String() {
		effect = p.Bad(x.Decision.Effect)
	}
	access, when := perm.ResourceAccess{Action: x.Access.Action, Resource: x.Access.Resource.Text, Method: x.Access.Method}, ""
	if x.Access.Dynamic {
		when = ", asked for while it ran"
	}
	if x.Unknown != "" {
		effect = p.Doubt("cannot tell")
	}
	_, _ = fmt.Fprintf(w, "%s  %s: %s%s\n", effect, cli.Printable(x.Tool), cli.Printable(access.String()), when)
	if x.Unknown != "" {
		_, _ = fmt.Fprintf(w, "  %s\n  remit run decided %s:\n", cli.Printable(x.Unknown), x.Decision.Effect)
	}
	for _, r := range x.Decision.Reasons {
		_, _ = fmt.Fprintf(w, "  %-8s %s\n", r.Set, cli.Printable(cli.WithPlace(r.Text, r.At)))
	}
	writeConsidered(p, w, x)
	for _, n := range x.Notes {
		_, _ = fmt.Fprintf(w, "%s %s\n", p.Doubt("·"), cli.Printable(n))
	}
	writeChange(p, w, x)
}

// writeConsidered writes the rules that decided. If none did, it writes those
// that could have permitted the access.
func writeConsidered(p cli.Style, w io.Writer, x explainOutput) {
	over, none := 0, !slices.ContainsFunc(x.Rules, func(c rego.RuleTrace) bool { return c.Decided })
	for _, c := range x.Rules {
		lets := none && (c.Set == "allow" || c.Set == "ask" || c.Set == "hold")
		switch {
		case c.Decided:
			_, _ = fmt.Fprintf(w, "%s %s %s matched\n", p.Good("✓"), c.Set, c.At)
		case lets && c.Outcome == rego.RuleFailed:
			_, _ = fmt.Fprintf(w, "%s %s %s does not hold: %s\n", p.Doubt("·"), c.Set, c.At, c.Stopped)
		default:
			over++
			continue
		}
		for _, s := range c.Inputs {
			value := "nothing"
			if len(s.Value) > 0 {
				value = cli.Clip(string(s.Value), 100)
			}
			_, _ = fmt.Fprintf(w, "     %s %s\n", p.Faint(cli.Printable(s.Path)+" is"), cli.Printable(value))
		}
	}
	if over > 0 {
		_, _ = fmt.Fprintln(w, p.Faint("  "+cli.Count(over, "other rule")+" did not decide: --json tells of them"))
	}
}

func writeChange(p cli.Style, w io.Writer, x explainOutput) {
	if x.Unknown != "" && x.Approve == "" {
		return
	}
	if x.Approve != "" {
		_, _ = fmt.Fprintf(w, "to let it through, another person approves it: %s\n", x.Approve)
		return
	}
	switch at, is := x.required(); {
	case is && at == "":
		_, _ = fmt.Fprintln(w, "to let it through, call a tool that has what is required, or call in another session")
		return
	case is:
		_, _ = fmt.Fprintf(w, "to let it through, change the rule at %s, or call a tool that has what it requires\n", cli.Printable(at))
		return
	case x.Change == nil:
		_, _ = fmt.Fprintln(w, "no change of rules lets it through")
		return
	case len(x.Change.Edits) == 0:
		_, _ = fmt.Fprintln(w, "nothing has to change: the policy lets it through")
		return
	}
	_, _ = fmt.Fprintln(w, "the smallest change that lets it through:")
	for _, e := range x.Change.Edits {
		if e.At != "" {
			where := e.At
			if pack, inside, builtin := policies.ParseName(where); builtin {
				where = inside + " of a copy of the pack (remit policy new --from " + pack + ")"
			}
			_, _ = fmt.Fprintf(w, "  add to the rule at %s the condition\n", where)
		} else {
			_, _ = fmt.Fprintln(w, "  add the rule")
		}
		writeBlock(w, e.Text)
	}
	_, _ = fmt.Fprintf(w, "tried: the policy then says %s\n", x.Change.Effect)
}

package policy

import (
	"fmt"
	"io"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/perm/rego"
)

func writeCheck(p cli.Style, w io.Writer, c CheckOutput, notes bool) {
	for _, bad := range c.Problems {
		_, _ = fmt.Fprintf(w, "%s %s\n", p.Bad("✗"), cli.Printable(cli.WithPlace(bad.Text, bad.At)))
		writeSnippet(p, w, bad.At)
		p.Details(w, &cli.Problem{Fix: bad.Fix})
	}
	failed := 0
	for _, t := range c.Tests {
		if t.Status == "fail" || t.Status == "error" {
			failed++
			_, _ = fmt.Fprintf(w, "%s %s %s: %s\n", p.Bad("✗"), t.Status, t.At, cli.Printable(t.Name))
			writeSnippet(p, w, t.At)
			p.Details(w, &cli.Problem{Why: t.Text})
		}
	}
	for _, n := range c.Warnings {
		_, _ = fmt.Fprintf(w, "%s warning: %s\n", p.Doubt("!"), cli.Printable(cli.WithPlace(n.Text, n.At)))
		writeSnippet(p, w, n.At)
		p.Details(w, &cli.Problem{Fix: n.Fix})
	}
	if len(c.Uncovered) > 0 {
		_, _ = fmt.Fprintf(w, "%s no test reaches %s\n", p.Doubt("·"), strings.Join(c.Uncovered, ", "))
	}
	if notes {
		writeNotes(p, w, c)
	} else {
		writeNoteCounts(p, w, c)
	}
	if len(c.Problems) > 0 {
		_, _ = fmt.Fprintln(w, p.Bad("not loaded: ")+cli.Count(len(c.Problems), "problem"))
		return
	}
	_, _ = fmt.Fprintf(w, "loaded; %s, %d failed\n", cli.Count(len(c.Tests), "test"), failed)
}

// writeNoteCounts counts the notes. A note changes no decision, and a policy
// has many.
func writeNoteCounts(p cli.Style, w io.Writer, c CheckOutput) {
	rules := map[string]bool{}
	for _, n := range c.Slow {
		rules[n.At] = true
	}
	var sums []string
	if n := len(c.Unchecked); n > 0 {
		sums = append(sums, cli.Count(n, "place")+" could not be checked for misspelt fields")
	}
	if n := len(rules); n > 0 {
		sums = append(sums, cli.Count(n, "rule")+" could be faster")
	}
	if len(sums) > 0 {
		_, _ = fmt.Fprintf(w, "%s %s: --notes lists them\n", p.Doubt("·"), strings.Join(sums, ", "))
	}
}

// writeNotes lists the notes.
func writeNotes(p cli.Style, w io.Writer, c CheckOutput) {
	for _, n := range c.Unchecked {
		_, _ = fmt.Fprintf(w, "%s %s: not checked: %s\n", p.Doubt("·"), n.At, cli.Printable(n.Text))
	}
	said := rego.UncheckedRef{}
	for _, n := range c.Slow {
		// A document that a rule reads whole has many parts. --json lists them.
		if head, _, whole := strings.Cut(n.Text, " is read whole, and "); whole {
			n.Text = head + " is read whole, with what differs from call to call"
		}
		if n != said {
			_, _ = fmt.Fprintf(w, "%s %s: slower than it could be: %s\n", p.Doubt("·"), n.At, cli.Printable(n.Text))
		}
		said = n
	}
}

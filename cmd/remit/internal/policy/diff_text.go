package policy

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/perm/rego/policydiff"
)

// writeDiff writes a comparison for people.
func writeDiff(p cli.Style, w io.Writer, out diffOutput) {
	if out.Recorded != nil {
		writeBacktest(p, w, out.Recorded)
		_, _ = fmt.Fprintln(w)
	}
	g := out.Generated
	_, _ = fmt.Fprintf(w, "%s tried (seed %d), from %s, %d of them changed: %s\n", cli.Count(g.Tried, "request"), g.Seed, cli.Count(g.Rules, "rule"), g.Changed, cli.Count(len(g.Differences), "difference"))
	switch g.Stopped {
	case "time":
		_, _ = fmt.Fprintln(w, "stopped by the time limit; --tries N goes on for N requests")
	case "differences":
		_, _ = fmt.Fprintln(w, "stopped: there are too many differences to list")
	}
	if g.Undecided > 0 {
		_, _ = fmt.Fprintf(w, "not compared: %s, invalid or not decided in time\n", cli.Count(g.Undecided, "request"))
	}
	for _, d := range g.Differences {
		writeDifference(p, w, d)
	}
	if len(g.Differences) == 0 {
		_, _ = fmt.Fprintln(w, "This is no proof: other requests can be decided differently.")
		return
	}
	_, _ = fmt.Fprintln(w, "\nThere can be more differences. --json prints each whole input for remit policy eval.")
}

func writeDifference(p cli.Style, w io.Writer, d policydiff.Difference) {
	change := d.Before.Effect + " → " + d.After.Effect
	switch {
	case d.Before.Effect == d.After.Effect:
		change = d.Before.Effect + ", with other terms"
	case d.Loosens():
		change = p.Bad(change)
	default:
		change = p.Good(change)
	}
	_, _ = fmt.Fprintf(w, "\n%s\n", change)
	writeReasons(w, "before", d.Before.Reasons)
	writeReasons(w, "after", d.After.Reasons)
	for _, set := range differingSets(d) {
		_, _ = fmt.Fprintf(w, "  %-8s only before: %s; only after: %s\n", set, listed(d.Before.Sets[set]), listed(d.After.Sets[set]))
	}
	for _, f := range d.Fields {
		_, _ = fmt.Fprintf(w, "  %-8s %s = %s\n", "if", cli.Printable(f.Path), cli.Printable(short(string(f.Value))))
	}
}

// differingSets returns the names of the sets that differ, sorted.
func differingSets(d policydiff.Difference) []string {
	all := maps.Clone(d.Before.Sets)
	maps.Copy(all, d.After.Sets)
	maps.DeleteFunc(all, func(set string, _ []string) bool { return slices.Equal(d.Before.Sets[set], d.After.Sets[set]) })
	return slices.Sorted(maps.Keys(all))
}

// maxListed bounds the elements of a set that a line names.
const maxListed = 3

func listed(texts []string) string {
	if len(texts) == 0 {
		return "none"
	}
	more := ""
	if n := len(texts) - maxListed; n > 0 {
		texts, more = texts[:maxListed], fmt.Sprintf(" and %d more", n)
	}
	cut := make([]string, len(texts))
	for i, text := range texts {
		cut[i] = short(text)
	}
	return cli.Printable(strings.Join(cut, ", ")) + more
}

// maxShown bounds the bytes of a value in the output for people.
const maxShown = 200

func short(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

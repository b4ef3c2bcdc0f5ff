package journal

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/render"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

func writeTxn(p cli.Style, w io.Writer, r txnRecord, tools tool.Registry, calls bool) {
	_, _ = fmt.Fprintf(w, "%s  %s  %s  %s", p.Bold(r.Txn), render.State(p, r.State, r.OwnerGone), p.Faint(r.Began.Local().Format("2006-01-02 15:04:05")), cli.Printable(r.Principal))
	if r.All > 0 && r.Prompt == nil {
		_, _ = fmt.Fprintf(w, "  %s", numberOfCalls(r))
	}
	if words := render.Client(r.Client); words != "" {
		_, _ = fmt.Fprintf(w, "  shown to %s", cli.Printable(words))
	}
	if r.Reverts != "" {
		what := r.Reverts
		if r.RevertsCall != "" {
			what = "call " + r.RevertsCall + " of " + what
		}
		_, _ = fmt.Fprint(w, "  reverts "+what)
	}
	if r.Redoes != "" {
		_, _ = fmt.Fprintf(w, "  redoes %s", r.Redoes)
		if r.Only != "" {
			_, _ = fmt.Fprintf(w, " as far as %s took it", r.Only)
		}
	}
	if r.Committing {
		_, _ = fmt.Fprint(w, "  its commit has begun")
	}
	if len(r.RevertedBy) > 0 {
		_, _ = fmt.Fprintf(w, "  reverted by %s", strings.Join(r.RevertedBy, ", "))
	}
	if len(r.RedoneBy) > 0 {
		_, _ = fmt.Fprintf(w, "  redone by %s", strings.Join(r.RedoneBy, ", "))
	}
	_, _ = fmt.Fprintln(w)
	if r.Commit != nil {
		writeCommit(p, w, r.Commit)
	}
	for _, e := range newestElsewhere(r.Elsewhere) {
		_, _ = fmt.Fprintf(w, "  in another folder, %s: %s, by %s\n", foldersWords(e.Roots), render.State(p, e.State, false), e.Txn)
	}
	if r.Prompt != nil {
		writePromptBlock(p, w, r.Prompt, r.Calls)
		if !calls {
			return
		}
	}
	for _, c := range r.Calls {
		mark := render.Mark(p, tool.Status(c.Status))
		if c.ended().Failed() {
			mark = p.Bad("✗")
		}
		_, _ = fmt.Fprintf(w, "  %s %s %-12s %s\n", mark, p.Faint(c.Call), cli.Printable(c.Tool), callWords(p, c, tools))
	}
}

// numberOfCalls counts the calls of a transaction, and those of them that are
// listed if others are left out.
func numberOfCalls(r txnRecord) string {
	if len(r.Calls) < r.All {
		return fmt.Sprintf("%d of %s", len(r.Calls), cli.Count(r.All, "call"))
	}
	return cli.Count(r.All, "call")
}

// slow is the duration from which the log shows how long a call took.
const slow = time.Second

// timeWords returns how long a slow call took, or took so far.
func timeWords(c callLine) string {
	if c.Ended == nil || c.Ended.Sub(c.Began) < slow {
		return ""
	}
	return "took " + callview.Took(c.Ended.Sub(c.Began))
}

// writeCommit writes what was decided about the commit.
func writeCommit(p cli.Style, w io.Writer, c *callview.Commit) {
	words := cli.Printable(c.Words())
	switch c.State {
	case "waits":
		words = p.Doubt(words)
	case "denied":
		words = p.Bad(words)
	}
	_, _ = fmt.Fprintf(w, "  its commit: %s\n", words)
}

// maxNamedFiles bounds the files that the log names of a prompt.
const maxNamedFiles = 3

// writePromptBlock writes what the user asked for, and what became of it.
func writePromptBlock(p cli.Style, w io.Writer, r *promptRecord, calls []callLine) {
	_, _ = fmt.Fprintf(w, "  %s\n", promptWords(&revert.Prompt{Client: r.Client, ID: r.ID, Text: r.Text, Erased: r.Erased}))
	words := cli.Count(r.Calls, "call") + ", " + cli.Count(len(r.Files), "changed file")
	for i, f := range r.Files {
		if i == maxNamedFiles {
			words += fmt.Sprintf(" and %d more", len(r.Files)-i)
			break
		}
		words += map[bool]string{true: ": ", false: ", "}[i == 0] + callview.Resource(f)
	}
	if slices.ContainsFunc(calls, func(c callLine) bool { return c.Status == string(tool.StatusPending) }) {
		words += "; " + p.Doubt("waits for approval")
	}
	if r.State == "partly_reverted" {
		words += "; " + p.Doubt("partly reverted")
	}
	_, _ = fmt.Fprintf(w, "  %s\n", words)
}

// newestElsewhere returns the newest revert or redo of each set of folders.
func newestElsewhere(all []elsewhereRecord) (out []elsewhereRecord) {
	for i, e := range all {
		if !slices.ContainsFunc(all[i+1:], func(later elsewhereRecord) bool { return foldersWords(later.Roots) == foldersWords(e.Roots) }) {
			out = append(out, e)
		}
	}
	return out
}

func foldersWords(roots []folderRecord) string {
	var words []string
	for _, r := range roots {
		words = append(words, "root "+r.Root+" at "+cli.Printable(r.Path))
	}
	return strings.Join(words, ", ")
}

// ended returns how the program of a call ended. It returns the zero value if
// there is none.
func (c callLine) ended() callview.Program {
	return callview.Program{Code: c.ExitCode, Signal: c.Signal}
}

// callWords describes in one line the arguments and the outcome of a call.
func callWords(p cli.Style, c callLine, tools tool.Registry) string {
	var words []string
	status, done := strings.ReplaceAll(c.Status, "_", " "), tool.Status(c.Status).OK()
	switch {
	case c.Status == string(tool.StatusHeld):
		words = append(words, p.Doubt("held until the commit"))
	case c.Status == string(revert.PhaseDropped):
		words = append(words, p.Faint("held, and dropped: it never ran"))
	case !done:
		words = append(words, p.Bad(status))
	case c.ended().Failed():
		words = append(words, p.Bad(c.ended().Result()))
	}
	if len(c.Changes) == 0 || c.ExitCode != nil || runsScript(c, tools) {
		words = append(words, inputWords(c, tools))
	}
	words = append(words, render.Changes(c.Changes))
	if took := timeWords(c); took != "" {
		words = append(words, p.Faint(took))
	}
	if c.Queued && c.Status != string(tool.StatusHeld) {
		words = append(words, p.Faint("(still queued)"))
	}
	if c.Reverted != "" {
		words = append(words, p.Faint("(reverted: "+strings.ReplaceAll(c.Reverted, "_", " ")+")"))
	}
	if c.Erased != nil {
		words = append(words, p.Faint("("+erasedWords(c.Erased)+")"))
	}
	if rated := ratedWords(c.Feedback); len(rated) > 0 {
		words = append(words, p.Faint("["+strings.Join(rated, ", ")+"]"))
	}
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), "  ")
}

// runsScript reports whether a call runs a command line: what it changed does
// not say what ran.
func runsScript(c callLine, tools tool.Registry) bool {
	t, ok := tools.Get(c.Tool)
	return ok && t.Spec().ParseScript != nil
}

// inputWords formats the arguments of a call. It shows nothing of an unknown
// tool, which may declare sensitive arguments.
func inputWords(c callLine, tools tool.Registry) string {
	t, ok := tools.Get(c.Tool)
	if !ok || len(c.input) == 0 || string(c.input) == "null" {
		return ""
	}
	return callview.Arguments(c.input, t.Spec().Hints.Sensitive)
}

package journal

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/render"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
)

// writeReport writes the result for each resource, and for the transaction or
// call that ID names.
func writeReport(p cli.Style, w io.Writer, rep revert.Report, way revertOp, id string) {
	if rep.Txn == "" {
		nothing := "there is nothing to revert"
		if way == redoing {
			nothing = "there is nothing to redo"
		}
		_, _ = fmt.Fprintln(w, nothing)
		return
	}
	deleted, merged := 0, 0
	for _, i := range rep.Items {
		writeItem(p, w, i, way == previewing)
		if i.Action == "delete" && i.Outcome.Clean() {
			deleted++
		}
		if i.Outcome == effect.Merged {
			merged++
		}
	}
	for _, d := range rep.Dependents {
		writeDependent(p, w, d, rep.Txn)
	}
	defer func() {
		if way != redoing && len(rep.Contacted) > 0 {
			_, _ = fmt.Fprintf(w, "not taken back: what programs sent to %s\n", cli.Printable(strings.Join(rep.Contacted, ", ")))
		}
	}()
	clean := len(rep.Items) - len(rep.NotReverted())
	did, nothing := "reverted", "nothing of it was left"
	switch way {
	case reverting:
	case previewing:
		did, nothing = "would be reverted", "nothing of it is left"
	case redoing:
		did, nothing = "redone", "nothing to redo"
	}
	if deleted > 0 {
		did += fmt.Sprintf(", %d by deleting", deleted)
	}
	if merged > 0 {
		did += fmt.Sprintf(", %d merged", merged)
	}
	if way == previewing {
		did += "; nothing was touched"
	}
	what := "transaction " + rep.Txn + " "
	if strings.HasPrefix(id, "c_") {
		what = "call " + id + " of transaction " + rep.Txn + ", "
	}
	if len(rep.Items) == 0 {
		if way == redoing && id != rep.Txn { // the transaction can have other reverts
			what = "revert " + id + " of " + what
		}
		_, _ = fmt.Fprintf(w, "%s%s: %s\n", what, render.State(p, rep.State, false), nothing)
		return
	}
	is := render.State(p, rep.State, false)
	if clean == 0 && rep.State == revert.TxnRevertedPartial { // nothing of it was
		is = p.Bad("not reverted")
	}
	_, _ = fmt.Fprintf(w, "%s%s: %d of %s %s\n", what, is, clean, cli.Count(len(rep.Items), "change"), did)
}

// writeNextCommands writes the commands that revert the remaining resources, if there
// are any.
func writeNextCommands(p cli.Style, w io.Writer, rep revert.Report, again string, over func() bool) {
	theirs := slices.ContainsFunc(rep.NotReverted(), func(i revert.ResourceResult) bool {
		return i.Outcome == effect.Conflict && !strings.HasPrefix(i.Resource, "http") // an HTTP resource cannot be overwritten
	})
	later := slices.ContainsFunc(rep.NotReverted(), func(i revert.ResourceResult) bool { return strings.HasSuffix(i.Why, "with cascade") })
	switch {
	case later:
		_, _ = fmt.Fprintln(w, p.Faint("take what lies on it along: "+again+" --cascade"))
	case theirs && over():
		_, _ = fmt.Fprintln(w, p.Faint("overwrite what changed since, and store it for remit redo: "+again+" --force"))
	}
}

func writeItem(p cli.Style, w io.Writer, i revert.ResourceResult, preview bool) {
	mark, word, whose := p.Good("✓"), callview.RevertOutcome(i.Outcome), ""
	if !i.Outcome.Clean() {
		mark = p.Bad("✗")
	}
	if i.Outcome == effect.Restored {
		word = restoring(i.Action)
		if !preview {
			word += "d" // delete, recreate, restore
		}
	}
	if i.Outcome == effect.Merged && preview {
		word = "merge"
	}
	if i.Action == revert.ActionDrop {
		word, whose = "dropped", "  "+cli.Printable(i.Why)
		if preview {
			word = "drop"
		}
	}
	if i.Forced {
		whose = "  over a version that another actor left"
	}
	if i.Txn != "" {
		whose += "  of " + i.Txn
	}
	_, _ = fmt.Fprintf(w, "%s %-9s %s%s\n", mark, word, callview.Resource(i.Resource), whose)
	if !i.Outcome.Clean() || i.Outcome.Applies() && i.Action != revert.ActionDrop && i.Why != "" {
		p.Details(w, &cli.Problem{Why: i.Why})
	}
	for _, o := range i.Overlaps {
		writeOverlap(p, w, o)
	}
}

// writeOverlap writes both versions of lines that could not be merged.
func writeOverlap(p cli.Style, w io.Writer, o effect.Overlap) {
	at := fmt.Sprintf("line %d", o.Line)
	if o.Lines > 1 {
		at = fmt.Sprintf("lines %d to %d", o.Line, o.Line+o.Lines-1)
	}
	for _, side := range []struct{ name, text string }{{at + ", now", o.Now}, {"before the call", o.Before}} {
		_, _ = fmt.Fprintln(w, p.Faint("     "+side.name+":"))
		for line := range strings.Lines(side.text) {
			_, _ = fmt.Fprintln(w, "       "+cli.Printable(strings.TrimRight(line, "\r\n")))
		}
	}
}

// restoring returns the verb for restoring a resource.
func restoring(does string) string {
	switch does {
	case "delete":
		return "delete"
	case "create", "mkdir":
		return "recreate"
	default:
		return "restore"
	}
}

// writeDependent writes a dependent call that the revert includes, or that
// prevents it.
func writeDependent(p cli.Style, w io.Writer, d revert.Dependent, txn string) {
	mark, how, of := p.Doubt("·"), "along", ""
	if !d.Included {
		mark, how = p.Bad("✗"), "in the way"
	}
	if d.Txn != txn {
		of = " of " + d.Txn
	}
	_, _ = fmt.Fprintf(w, "%s %s: call %s%s, %s\n", mark, how, d.Call, of, cli.Printable(d.Tool))
}

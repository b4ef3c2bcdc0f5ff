package journal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/render"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

func approvalWords(a *record.Approval) string {
	if a == nil {
		return ""
	}
	if a.Grant != "" {
		return "by " + a.By + ", for calls to come: " + a.Grant
	}
	return "by " + a.By
}

func writeCall(p cli.Style, w io.Writer, c callRecord) {
	mark, status := render.Mark(p, tool.Status(c.Status)), strings.ReplaceAll(c.Status, "_", " ")
	if c.callLine.ended().Failed() {
		mark, status = p.Bad("✗"), p.Bad(c.callLine.ended().Result())
	}
	_, _ = fmt.Fprintf(w, "%s %s  %s  %s\n", mark, p.Bold(c.Call), cli.Printable(c.Tool), status)
	row := func(name, text string) {
		if text != "" {
			_, _ = fmt.Fprintf(w, "  %s %s\n", p.Faint(fmt.Sprintf("%-9s", name)), cli.Printable(text))
		}
	}
	row("asked by", c.Principal)
	row("shown to", render.Client(c.Client))
	row("in", c.Txn)
	row("began", c.Began.Local().Format("2006-01-02 15:04:05.000"))
	if c.Erased == nil {
		row("input", string(c.Input))
	}
	row("redacted", strings.Join(c.Redacted, ", "))
	for _, r := range c.Replaced {
		row("replaced", "filter "+r.By+" gave it another input than "+r.Original)
	}
	row("effect", effectWords(c))
	row("known", coverageWords(c))
	touches := "touches"
	if c.Status == string(tool.StatusDenied) && c.Refused == nil {
		touches = "refused"
	}
	for _, access := range c.Access {
		row(touches, access.Action+" "+access.Resource)
	}
	if c.Decision != nil {
		row("decision", c.Decision.Effect)
		for _, r := range c.Decision.Reasons {
			row("", cli.WithPlace("because "+r.Text, r.At))
		}
	}
	for _, a := range c.Asks {
		row("asks", a.Action+" "+a.Resource)
	}
	if c.Expires != nil {
		row("waits", "for an answer until "+c.Expires.Local().Format("2006-01-02 15:04:05"))
	}
	if c.Preview != "" {
		row("question", c.Question)
		row("wants", "to change:")
		p.Patch(w, c.Preview)
	}
	if c.Answered != nil {
		said := map[bool]string{true: "approved", false: "refused"}[c.Answered.Approved] + " by " + c.Answered.By
		row("answer", strings.TrimSuffix(said+": "+c.Answered.Why, ": "))
	}
	row("approved", approvalWords(c.Approval))
	for _, a := range c.Approved {
		words := approvalWords(&a.Approval)
		if len(a.Access) > 0 {
			words += ": " + a.Access[0].Action + " " + a.Access[0].Resource
		}
		if more := len(a.Access) - 1; more > 0 {
			words += fmt.Sprintf(" and %d more", more)
		}
		row("approved", words)
	}
	if c.Refused != nil {
		row("refused", c.Refused.Action+" "+c.Refused.Resource)
		if c.Refused.Decision != nil && c.Refused.Decision.Effect != perm.Allow.String() { // else a person refused what the rules let through
			for _, r := range c.Refused.Decision.Reasons {
				row("", cli.WithPlace("because "+r.Text, r.At))
			}
		}
	}
	row("why", render.Once(c.Why))
	if c.Queued {
		row("queued", "the commit of "+c.Txn+" releases it")
	}
	if c.Dropped != nil {
		row("dropped", strings.TrimSuffix("cause: "+c.Dropped.Cause+", by "+c.Dropped.By, ", by "))
	}
	if c.Decided != nil {
		row("settled", map[bool]string{true: "applied", false: "absent"}[c.Decided.Applied]+" by "+c.Decided.By+": "+c.Decided.Why)
	}
	if c.Erased != nil {
		row("erased", strings.TrimSuffix(strings.TrimPrefix(erasedWords(c.Erased), "erased ")+": "+c.Erased.Why, ": "))
		for _, touched := range c.Erased.Touched {
			row("changed", render.Resource(touched))
		}
	}
	for _, ch := range c.Changes {
		row("change", render.ChangeVerb(ch.Kind)+" "+render.Resource(ch.Resource)+": "+tokenWords(ch.Before)+" -> "+tokenWords(ch.After))
	}
	for _, v := range c.Verdicts {
		row("verdict", strings.Join(append([]string{string(v.Presence) + " (" + v.Phase + ")"}, v.Findings...), "; "))
		if !v.OK {
			row("broken", v.Why)
		}
	}
	writeOutput(p, row, c)
	for _, u := range c.Earlier {
		writeUndo(p, w, row, u)
	}
	writeUndo(p, w, row, c.Undo)
	for _, f := range c.Feedback {
		row("feedback", feedbackWords(f))
	}
}

// writeOutput is what the tool returned, or a filter in its place, and what was delivered.
func writeOutput(_ cli.Style, row func(name, text string), c callRecord) {
	if c.AnsweredBy != "" {
		row("answered", "by filter "+c.AnsweredBy+"; the tool did not run")
	}
	if c.Status == string(tool.StatusDone) && c.Erased == nil {
		outputRows(row, "output", c.Output)
		if c.Delivered != nil {
			outputRows(row, "delivered", c.Delivered)
			row("", "as made of it by "+strings.Join(c.DeliveredBy, ", "))
		}
	}
	row("ends", c.Ends)
}

// outputRows shows an output whole: that of a program line by line, any other as JSON.
func outputRows(row func(name, text string), name string, output json.RawMessage) {
	e, is := render.ProgramOf(output)
	if !is {
		row(name, string(output))
		return
	}
	row(name, e.Result()+", sandbox "+e.Sandbox)
	row("missing", strings.Join(e.Missing, ", "))
	for _, s := range []struct{ label, text string }{{"stdout", *e.Stdout}, {"stderr", *e.Stderr}} {
		for i, text := range render.Lines(s.text) {
			if i > 0 {
				s.label = ""
			}
			row(s.label, cmp.Or(text, " "))
		}
	}
	for _, note := range e.Notes() {
		row("note", note)
	}
}

func writeUndo(p cli.Style, w io.Writer, row func(name, text string), u *undoRecord) {
	if u == nil {
		return
	}
	by := ""
	if u.By != "" {
		by = ", by " + u.By
	}
	row("undo", u.Call+" in "+u.Txn+", cause: "+u.Cause+by)
	for _, r := range u.Results {
		mark := p.Good("✓")
		if !r.Outcome.Clean() {
			mark = p.Bad("✗")
		}
		_, _ = fmt.Fprintf(w, "            %s %s %s", mark, u.word(r), render.Resource(r.Resource))
		if r.Why != "" {
			_, _ = fmt.Fprintf(w, ": %s", cli.Printable(r.Why))
		}
		_, _ = fmt.Fprintln(w)
	}
}

// word says what became of one resource of an undo.
func (u *undoRecord) word(r effect.Result) string {
	i := slices.IndexFunc(u.steps, func(s effect.Step) bool { return s.Change.Resource == r.Resource })
	if r.Outcome != effect.Restored || i < 0 {
		return render.RevertOutcome(r.Outcome)
	}
	return restoring(u.steps[i].Change.Kind) + "d"
}

func effectWords(c callRecord) string {
	if c.EffectClass == "" {
		return ""
	}
	words := string(c.EffectClass)
	if c.Erased != nil {
		return words
	}
	if !c.Declared {
		words += " (undeclared)"
	}
	return words + ", " + c.Confinement
}

// coverageWords say what is known of a call that could act beyond what was recorded.
func coverageWords(c callRecord) string {
	switch {
	case c.Coverage != effect.Observed || c.Erased != nil:
		return ""
	case c.EffectClass == effect.Pure && len(c.Changes) > 0:
		return "observed in " + strings.Join(c.Observed, ", ") + ", unknown elsewhere; the tool says that it only reads, and files were changed during the call"
	case c.EffectClass == effect.Pure:
		return "observed in " + strings.Join(c.Observed, ", ") + ", unknown elsewhere; the tool says that it only reads"
	default:
		return "observed in " + strings.Join(c.Observed, ", ") + ", unknown elsewhere"
	}
}

func tokenWords(t *effect.Token) string {
	if t == nil {
		return "nothing"
	}
	return string(*t)
}

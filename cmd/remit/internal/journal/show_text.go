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
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
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

func writeCall(p cli.Style, w io.Writer, c shownCall) {
	mark, status := render.Mark(p, tool.Status(c.Status)), strings.ReplaceAll(c.Status, "_", " ")
	if program := programOf(c.Call); program.Failed() {
		mark, status = p.Bad("✗"), p.Bad(program.Result())
	}
	_, _ = fmt.Fprintf(w, "%s %s  %s  %s\n", mark, p.Bold(c.ID), cli.Printable(c.Tool.Name), status)
	row := func(name, text string) {
		if text != "" {
			_, _ = fmt.Fprintf(w, "  %s %s\n", p.Faint(fmt.Sprintf("%-9s", name)), cli.Printable(text))
		}
	}
	writeAttempt(row, c)
	writeRequest(p, w, row, c)
	writeApprovals(row, c.attempt)
	row("why", render.Once(c.attempt.Why))
	writeEnd(row, c)
	if c.Commit != nil {
		row("commit", c.Commit.Words())
	}
	writeOutput(row, c)
	for _, u := range c.Earlier {
		writeReversal(p, w, row, u)
	}
	writeReversal(p, w, row, c.Reversal)
	for _, f := range c.Feedback {
		row("feedback", feedbackWords(f))
	}
}

// programOf returns how the program of a call ended. It returns the zero value
// if the call ran none.
func programOf(c *revert.Call) callview.Program {
	if c.Done == nil {
		return callview.Program{}
	}
	if program, is := callview.ProgramOf(c.Done.Output); is {
		return program
	}
	return callview.Program{}
}

// writeAttempt writes who made the call, with what, and how the policy decided.
func writeAttempt(row func(name, text string), c shownCall) {
	a := c.attempt
	row("asked by", c.Principal)
	row("shown to", render.Client(c.Client))
	row("in", c.Txn)
	row("began", c.Began.Local().Format("2006-01-02 15:04:05.000"))
	if c.Erased == nil {
		row("input", string(a.Input))
	}
	row("redacted", strings.Join(a.Redacted, ", "))
	for _, r := range a.Replaced {
		row("replaced", "filter "+r.By+" gave it another input than "+r.Original)
	}
	row("effect", effectWords(c))
	row("known", coverageWords(c))
	touches := "touches"
	if c.Status == string(tool.StatusDenied) && a.Refused == nil {
		touches = "refused"
	}
	for _, access := range a.Access {
		row(touches, access.Action+" "+access.Resource)
	}
	if a.Decision != nil {
		row("decision", a.Decision.Effect)
		reasonRows(row, a.Decision)
	}
}

func reasonRows(row func(name, text string), d *callview.Decision) {
	for _, r := range d.Reasons {
		row("", cli.WithPlace("because "+r.Text, r.At))
	}
}

// writeRequest writes the open approval request of a call, and the answer to it.
func writeRequest(p cli.Style, w io.Writer, row func(name, text string), c shownCall) {
	asked := c.attempt.Asked
	if asked == nil {
		return
	}
	if c.Started != nil { // it asked while it ran
		for _, a := range asked.Access {
			row("asks", a.Action+" "+a.Resource)
		}
	}
	row("waits", "for an answer until "+asked.Expires.Local().Format("2006-01-02 15:04:05"))
	if asked.Preview != "" {
		row("question", asked.Digest)
		row("wants", "to change:")
		p.Patch(w, asked.Preview)
	}
	if c.Answered != nil {
		said := map[bool]string{true: "approved", false: "refused"}[c.Answered.Approved] + " by " + c.Answered.By
		row("answer", strings.TrimSuffix(said+": "+c.Answered.Why, ": "))
	}
}

// writeApprovals writes who approved what, and what was refused while the call
// ran.
func writeApprovals(row func(name, text string), c callview.Attempt) {
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
	if c.Refused == nil {
		return
	}
	row("refused", c.Refused.Action+" "+c.Refused.Resource)
	if c.RefusedBy != nil && c.RefusedBy.Effect != perm.Allow.String() { // else a person refused it
		reasonRows(row, c.RefusedBy)
	}
}

// writeEnd writes how the call ended and what it changed.
func writeEnd(row func(name, text string), c shownCall) {
	if c.Queued {
		row("queued", "the commit of "+c.Txn+" releases it")
	}
	if c.Dropped != nil {
		row("dropped", strings.TrimSuffix("cause: "+c.Dropped.Cause+", by "+c.Dropped.By, ", by "))
	}
	if c.Decided != nil {
		row("resolved", map[bool]string{true: "applied", false: "absent"}[c.Decided.Applied]+" by "+c.Decided.By+": "+c.Decided.Why)
	}
	if c.Erased != nil {
		row("erased", strings.TrimSuffix(strings.TrimPrefix(erasedWords(erasedOf(c.Call)), "erased ")+": "+c.Erased.Why, ": "))
		for _, touched := range c.Erased.Touched {
			row("changed", callview.Resource(touched))
		}
	}
	for _, ch := range changesOf(c.Changes) {
		row("change", callview.ChangeVerb(ch.Kind)+" "+callview.Resource(ch.Resource)+": "+tokenWords(ch.Before)+" -> "+tokenWords(ch.After))
	}
	for _, h := range c.ContactedHosts() {
		row("reached", fmt.Sprintf("%s: %d bytes sent, %d received", h.Origin, h.Sent, h.Received))
	}
	for _, h := range c.DeniedHosts() {
		row("denied", "connect "+h.Origin+": "+h.Why)
	}
	for _, v := range c.Verified {
		row("verdict", strings.Join(append([]string{string(v.Presence) + " (" + v.Phase + ")"}, v.Findings...), "; "))
		if !v.OK {
			row("broken", v.Why)
		}
	}
}

// writeOutput writes what the tool returned, or a filter in its place, and what
// the runtime delivered.
func writeOutput(row func(name, text string), c shownCall) {
	if by := c.attempt.AnsweredBy; by != "" {
		row("answered", "by filter "+by+"; the tool did not run")
	}
	if c.Status == string(tool.StatusDone) && c.Done != nil {
		outputRows(row, "output", c.Done.Output)
		if c.Done.Delivered != nil {
			outputRows(row, "delivered", c.Done.Delivered)
			row("", "as made of it by "+strings.Join(c.Done.DeliveredBy, ", "))
		}
	}
	row("ends", c.attempt.Ends)
}

// outputRows writes all of an output: that of a program line by line, any other
// as JSON.
func outputRows(row func(name, text string), name string, output json.RawMessage) {
	e, is := callview.ProgramOf(output)
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

func writeReversal(p cli.Style, w io.Writer, row func(name, text string), u *revert.Reversal) {
	if u == nil {
		return
	}
	by := ""
	if u.Reverting.By != "" {
		by = ", by " + u.Reverting.By
	}
	row("revert", u.Call+" in "+u.Txn+", cause: "+u.Reverting.Cause+by)
	if u.Reverted == nil {
		return
	}
	for _, r := range u.Reverted.Results {
		mark := p.Good("✓")
		if !r.Outcome.Clean() {
			mark = p.Bad("✗")
		}
		_, _ = fmt.Fprintf(w, "            %s %s %s", mark, reversalWord(u, r), callview.Resource(r.Resource))
		if r.Why != "" {
			_, _ = fmt.Fprintf(w, ": %s", cli.Printable(r.Why))
		}
		_, _ = fmt.Fprintln(w)
	}
}

// reversalWord returns what a revert did to one resource.
func reversalWord(u *revert.Reversal, r effect.Result) string {
	steps := u.Reverting.Steps
	i := slices.IndexFunc(steps, func(s effect.Step) bool { return s.Change.Resource == r.Resource })
	if r.Outcome != effect.Restored || i < 0 {
		return callview.RevertOutcome(r.Outcome)
	}
	return restoring(steps[i].Change.Kind) + "d"
}

func effectWords(c shownCall) string {
	a := c.attempt
	if a.Class == "" {
		return ""
	}
	words := string(a.Class)
	if c.Erased != nil {
		return words
	}
	if !a.Declared {
		words += " (undeclared)"
	}
	return words + ", " + a.Confinement
}

// coverageWords says what the journal knows of a call that could have effects
// beyond its records.
func coverageWords(c shownCall) string {
	a := c.attempt
	if a.Coverage != effect.Observed || c.Erased != nil {
		return ""
	}
	words := "observed in " + strings.Join(a.Observed, ", ") + ", unknown elsewhere"
	if a.Class == effect.Pure {
		words += "; the tool says that it only reads"
		if len(c.Changes) > 0 {
			words += ", and files were changed during the call"
		}
	}
	return words
}

func tokenWords(t *effect.Token) string {
	if t == nil {
		return "nothing"
	}
	return string(*t)
}

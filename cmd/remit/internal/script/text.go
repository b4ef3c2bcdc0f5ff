package script

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/render"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// textWriter writes results for people: one line for each call, and the reason
// of a failure.
type textWriter struct {
	w     io.Writer
	paint cli.Style
	where *state.Workspace
	tools tool.Registry

	commit func(txn string) string // returns the command that commits an open transaction
	later  func(n int) string      // returns the command that runs the script from a line on; nil: there is none
	left   *bool                   // a call left changes that a revert can undo
}

func (t textWriter) call(n int, c call, o tool.Outcome) { t.ended(n, c, o, "") }

func (t textWriter) released(n int, c call, o tool.Outcome) { t.ended(n, c, o, "released  ") }

func (t textWriter) ended(n int, c call, o tool.Outcome, how string) {
	if o.Input != nil {
		c.args = o.Input // the outcome has the redacted input
	}
	var words string
	mark := t.markOf(o.Status)
	program, isProgram := callview.ProgramOf(o.Output)
	isProgram = isProgram && o.Status == tool.StatusDone
	if isProgram && program.Failed() {
		mark, how = t.paint.Bad("✗"), how+t.paint.Bad(program.Result())+"  "
	}
	switch {
	case o.Status.OK() && len(o.Changes) > 0:
		*t.left = true
		words = how + render.Changes(o.Changes)
	case o.Status == tool.StatusHeld:
		words = t.paint.Doubt("held until the commit") + "  " + t.args(c)
	case o.Status.OK():
		words = how + t.args(c)
	case o.Call == "" && o.Error != nil:
		words = t.paint.Bad(o.Error.What)
	default:
		words = t.paint.Bad(statusWords(o)) + "  " + t.paint.Faint(t.args(c))
	}
	_, _ = fmt.Fprintf(t.w, "%s %s %-12s %s\n", mark, t.number(n), cli.Printable(o.Tool), strings.TrimRight(words, " "))
	if isProgram {
		render.WriteProgram(t.paint, t.w, program, t.where.ShowArguments(o.Call))
	} else if o.Status == tool.StatusDone && len(o.Changes) == 0 {
		render.WriteResult(t.paint, t.w, o.Text, t.where.ShowArguments(o.Call))
	}
	if o.Status.OK() {
		return
	}
	p := &cli.Problem{Denied: o.Status == tool.StatusDenied}
	if o.Error != nil {
		p.Why, p.Fix = o.Error.Why, o.Error.Fix
	}
	if o.Call != "" {
		p.ID = t.where.ShowArguments(o.Call)
	}
	t.paint.Details(t.w, p)
	t.openItems(o.RevertResults)
}

func (t textWriter) number(n int) string { return t.paint.Faint(fmt.Sprintf("%3d", n)) }

func (t textWriter) mark(n int, name string) {
	_, _ = fmt.Fprintf(t.w, "%s %s %-12s %s\n", t.paint.Faint("·"), t.number(n), "savepoint", cli.Printable(name))
}

func (t textWriter) back(n int, name string, r revert.Report) {
	mark := t.paint.Good("↺")
	if !r.Complete() {
		mark = t.paint.Bad("✗")
	}
	clean := len(r.Items) - len(r.NotReverted())
	_, _ = fmt.Fprintf(t.w, "%s %s %-12s %s: %d of %s reverted\n", mark, t.number(n), "revert_to", cli.Printable(name), clean, cli.Count(len(r.Items), "change"))
	t.openItems(results(r.Items))
}

func (t textWriter) end(s Summary) {
	if s.Txn == "" {
		_, _ = fmt.Fprintf(t.w, "\nnothing was run: %s of the script cannot be followed\n", cli.Count(s.Calls, "line"))
		return
	}
	_, _ = fmt.Fprintf(t.w, "\ntransaction %s %s: %s", s.Txn, t.state(s.State), cli.Count(s.Calls, "call"))
	for _, part := range []struct {
		n    int
		what string
	}{{s.Done, "done"}, {s.Denied, "denied"}, {s.Failed, "failed"}, {s.Unknown, "unknown"}, {s.Held, "held"}, {s.Waiting, "waiting"}} {
		if part.n > 0 {
			_, _ = fmt.Fprintf(t.w, ", %d %s", part.n, part.what)
		}
	}
	if s.ProgramsFailed > 0 {
		_, _ = fmt.Fprint(t.w, t.paint.Bad(fmt.Sprintf(", and %s failed", cli.Count(s.ProgramsFailed, "program"))))
	}
	_, _ = fmt.Fprintln(t.w)
	if len(s.NotReverted) > 0 {
		_, _ = fmt.Fprintln(t.w, t.paint.Bad("not reverted: ")+cli.Count(len(s.NotReverted), "change"))
		t.openItems(results(s.NotReverted))
	}
	t.notRun(s)
	if s.Commit != nil {
		what := map[string]string{"waits": t.paint.Doubt("the commit waits for approval: "), "denied": t.paint.Bad("the commit was denied: ")}[s.Commit.State]
		_, _ = fmt.Fprintln(t.w, cmp.Or(what, t.paint.Bad("the policy could not decide about the commit: "))+cli.Printable(s.Commit.Why))
	}
	t.goesOn(s)
	*t.left = false
}

// goesOn shows the commands for a transaction that changed something or is
// still open.
func (t textWriter) goesOn(s Summary) {
	say := func(text string) { _, _ = fmt.Fprintln(t.w, t.paint.Faint(text)) }
	open := s.State == revert.TxnOpen
	if !open && (s.State != revert.TxnCommitted || !*t.left && s.Held == 0 && !s.Committing) {
		return
	}
	over := open && s.Waiting == 0 // a pending call keeps the transaction open
	if over && !s.Committing {
		say("it stays open until one of these commands ends it")
	}
	say("revert it: " + t.where.Hint("revert", s.Txn))
	switch {
	case over && s.Commit != nil && s.Commit.State == "waits":
		say("look at it and approve it: " + t.where.Hint("pending", s.Txn))
		say("once it is answered: " + t.commit(s.Txn))
	case over && s.Committing:
		say("its commit has begun; resume it: " + t.commit(s.Txn))
	case over:
		say("commit it: " + t.commit(s.Txn))
	}
}

// notRun reports the lines that did not run. It shows how to run them only if
// the transaction is open, because they can depend on its calls.
func (t textWriter) notRun(s Summary) {
	if s.NotRun == nil {
		return
	}
	which, again := "what standard input holds", ""
	if s.NotRun.Lines > 0 {
		which = cli.Count(s.NotRun.Lines, "line") + " of the script"
	}
	_, _ = fmt.Fprintf(t.w, "%s %s from line %d on\n", t.paint.Bad("not run:"), which, s.NotRun.From)
	if t.later != nil && s.State == revert.TxnOpen {
		again = t.later(s.NotRun.From)
	}
	if again != "" {
		_, _ = fmt.Fprintln(t.w, t.paint.Faint("run them in a transaction of their own, once this one has ended: "+cli.Printable(again)))
	}
}

func (t textWriter) state(s revert.TxnState) string { return render.State(t.paint, s, false) }

// openItems lists the resources that are not reverted, with the reasons.
func (t textWriter) openItems(rs []effect.Result) { render.Remaining(t.paint, t.w, rs) }

func results(items []revert.ResourceResult) []effect.Result {
	var out []effect.Result
	for _, i := range items {
		out = append(out, i.Result)
	}
	return out
}

func (t textWriter) markOf(s tool.Status) string { return render.Mark(t.paint, s) }

// statusWords describes the status of a call that did not succeed.
func statusWords(o tool.Outcome) string {
	if o.Status != tool.StatusVerifyFailed {
		return string(o.Status)
	}
	switch o.Reverted {
	case "all":
		return "did not verify, reverted"
	case "some":
		return "did not verify, reverted in part"
	default:
		return "did not verify, NOT reverted"
	}
}

// args formats the arguments of a call without the sensitive ones.
func (t textWriter) args(c call) string {
	var hidden []string
	if found, ok := t.tools.Get(c.tool); ok {
		hidden = found.Spec().Hints.Sensitive
	}
	return callview.Arguments(c.args, hidden)
}

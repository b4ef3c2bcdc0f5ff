package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// textWriter writes for people: a line for each call, and why where it did not
// go well.
type textWriter struct {
	w     io.Writer
	paint textStyle
	where *workspaceState
	tools tool.Registry

	commit func(txn string) string // the command that commits what was left open
	later  func(n int) string      // the command that runs a script from a line on; nil: there is none
	left   *bool                   // something was done that can be taken back
}

func (t textWriter) call(n int, c call, o tool.Outcome) { t.ended(n, c, o, "") }

func (t textWriter) released(n int, c call, o tool.Outcome) { t.ended(n, c, o, "released  ") }

func (t textWriter) ended(n int, c call, o tool.Outcome, how string) {
	if o.Input != nil {
		c.args = o.Input // without what the policy redacts
	}
	var words string
	mark := t.markOf(o.Status)
	program, isProgram := endedOf(o.Output)
	isProgram = isProgram && o.Status == tool.StatusDone
	if isProgram && program.failed() {
		mark, how = t.paint.bad("✗"), how+t.paint.bad(program.how())+"  "
	}
	switch {
	case o.Status.OK() && len(o.Changes) > 0:
		*t.left = true
		words = how + changeWords(o.Changes)
	case o.Status == tool.StatusHeld:
		words = t.paint.doubt("held until the commit") + "  " + t.args(c)
	case o.Status.OK():
		words = how + t.args(c)
	case o.Call == "" && o.Error != nil:
		words = t.paint.bad(o.Error.What)
	default:
		words = t.paint.bad(statusWords(o)) + "  " + t.paint.faint(t.args(c))
	}
	_, _ = fmt.Fprintf(t.w, "%s %s %-12s %s\n", mark, t.number(n), printable(o.Tool), strings.TrimRight(words, " "))
	if isProgram {
		t.paint.ended(t.w, program, t.where.shown(o.Call))
	}
	if o.Status.OK() {
		return
	}
	p := &problem{denied: o.Status == tool.StatusDenied}
	if o.Error != nil {
		p.why, p.fix = o.Error.Why, o.Error.Fix
	}
	if o.Call != "" {
		p.id = t.where.shown(o.Call)
	}
	t.paint.details(t.w, p)
	t.openItems(o.RevertResults)
}

func (t textWriter) number(n int) string { return t.paint.faint(fmt.Sprintf("%3d", n)) }

func (t textWriter) mark(n int, name string) {
	_, _ = fmt.Fprintf(t.w, "%s %s %-12s %s\n", t.paint.faint("·"), t.number(n), "savepoint", printable(name))
}

func (t textWriter) back(n int, name string, r revert.Report) {
	mark := t.paint.good("↺")
	if !r.Complete() {
		mark = t.paint.bad("✗")
	}
	clean := len(r.Items) - len(r.NotUndone())
	_, _ = fmt.Fprintf(t.w, "%s %s %-12s %s: %d of %s taken back\n", mark, t.number(n), "revert_to", printable(name), clean, count(len(r.Items), "change"))
	t.openItems(results(r.Items))
}

func (t textWriter) end(s summary) {
	if s.Txn == "" {
		_, _ = fmt.Fprintf(t.w, "\nnothing was run: %s of the script cannot be followed\n", count(s.Calls, "line"))
		return
	}
	_, _ = fmt.Fprintf(t.w, "\ntransaction %s %s: %s", s.Txn, t.state(s.State), count(s.Calls, "call"))
	for _, part := range []struct {
		n    int
		what string
	}{{s.Done, "done"}, {s.Denied, "denied"}, {s.Failed, "failed"}, {s.Unknown, "unknown"}, {s.Held, "held"}, {s.Waiting, "waiting"}} {
		if part.n > 0 {
			_, _ = fmt.Fprintf(t.w, ", %d %s", part.n, part.what)
		}
	}
	if s.ProgramsFailed > 0 {
		_, _ = fmt.Fprint(t.w, t.paint.bad(fmt.Sprintf(", and %s failed", count(s.ProgramsFailed, "program"))))
	}
	_, _ = fmt.Fprintln(t.w)
	if len(s.NotUndone) > 0 {
		_, _ = fmt.Fprintln(t.w, t.paint.bad("not taken back: ")+count(len(s.NotUndone), "change"))
		t.openItems(results(s.NotUndone))
	}
	t.notRun(s)
	t.goesOn(s)
	*t.left = false
}

// goesOn says what can be done with a transaction that has changed something, or is open:
// one in which nothing was done holds its session too.
func (t textWriter) goesOn(s summary) {
	say := func(text string) { _, _ = fmt.Fprintln(t.w, t.paint.faint(text)) }
	open := s.State == revert.TxnOpen
	if !open && (s.State != revert.TxnCommitted || !*t.left && s.Held == 0 && !s.Committing) {
		return
	}
	over := open && s.Waiting == 0 // a call that waits keeps it open
	if over && !s.Committing {
		say("it stays open until one of these commands ends it")
	}
	say("take it back: " + t.where.hint("revert", s.Txn))
	switch {
	case over && s.Committing:
		say("its commit has begun; go on with it: " + t.commit(s.Txn))
	case over:
		say("commit it: " + t.commit(s.Txn))
	}
}

// notRun tells of lines that a call stopped before them. Where the transaction was taken back,
// they are of no use without the others.
func (t textWriter) notRun(s summary) {
	if s.NotRun == nil {
		return
	}
	which, again := "what standard input holds", ""
	if s.NotRun.Lines > 0 {
		which = count(s.NotRun.Lines, "line") + " of the script"
	}
	_, _ = fmt.Fprintf(t.w, "%s %s from line %d on\n", t.paint.bad("not run:"), which, s.NotRun.From)
	if t.later != nil && s.State == revert.TxnOpen {
		again = t.later(s.NotRun.From)
	}
	if again != "" {
		_, _ = fmt.Fprintln(t.w, t.paint.faint("run them in a transaction of their own, once this one has ended: "+printable(again)))
	}
}

func (t textWriter) state(s revert.TxnState) string { return t.paint.state(s, false) }

// openItems lists what is not as before, and why.
func (t textWriter) openItems(rs []effect.Result) { t.paint.leftovers(t.w, rs) }

func (p textStyle) leftovers(w io.Writer, rs []effect.Result) {
	for _, r := range rs {
		if !r.Outcome.Clean() {
			_, _ = fmt.Fprintf(w, "     %s %s: %s\n", p.bad(undoWord(r.Outcome)), resourceWords(r.Resource), printable(r.Why))
		}
	}
}

// state writes the state of a transaction; one that an owner left behind says so.
func (p textStyle) state(s revert.TxnState, ownerGone bool) string {
	switch {
	case s == revert.TxnRevertedPartial:
		return p.bad(string(s))
	case s == revert.TxnOpen && ownerGone:
		return p.doubt("open, owner gone")
	case s == revert.TxnOpen:
		return p.doubt(string(s))
	default:
		return p.good(string(s))
	}
}

func results(items []revert.ResourceResult) []effect.Result {
	var out []effect.Result
	for _, i := range items {
		out = append(out, i.Result)
	}
	return out
}

func (t textWriter) markOf(s tool.Status) string { return t.paint.mark(s) }

// mark is the sign of an outcome.
func (p textStyle) mark(s tool.Status) string {
	switch s {
	case tool.StatusDone:
		return p.good("✓")
	case tool.StatusPending, tool.StatusHeld:
		return p.doubt("…")
	case tool.Status(revert.PhaseDropped):
		return p.faint("·")
	case tool.StatusUnknown:
		return p.bad("?")
	case tool.StatusInvalid, tool.StatusDenied, tool.StatusFailed, tool.StatusVerifyFailed, tool.StatusCancelled, tool.StatusTimeout:
	}
	return p.bad("✗")
}

// statusWords says how a call ended that is no success.
func statusWords(o tool.Outcome) string {
	if o.Status != tool.StatusVerifyFailed {
		return string(o.Status)
	}
	switch o.Reverted {
	case "all":
		return "did not verify, taken back"
	case "some":
		return "did not verify, taken back in part"
	default:
		return "did not verify, NOT taken back"
	}
}

// changeWords names the first changes.
func changeWords(changes []tool.Change) string {
	var words []string
	for i, c := range changes {
		if i == 3 {
			words = append(words, fmt.Sprintf("%d more", len(changes)-i))
			break
		}
		words = append(words, changeWord(c.Kind)+" "+resourceWords(c.Resource))
	}
	return strings.Join(words, ", ")
}

func changeWord(kind string) string {
	switch kind {
	case "create":
		return "created"
	case "write":
		return "changed"
	case "delete":
		return "deleted"
	case "mkdir":
		return "made folder"
	default:
		return printable(kind)
	}
}

func undoWord(o effect.Outcome) string {
	if o == "" {
		return string(effect.Unknown)
	}
	return string(o)
}

// resourceWords is a resource as people name it: a file of the workspace by its
// path, one of another root with the root in front.
func resourceWords(text string) string {
	r, err := perm.ParseResource(text)
	if err != nil {
		return printable(text)
	}
	f := r.Facts()
	switch {
	case f.Kind == "file" && f.Root == "workspace":
		return fileWords(f.Path)
	case f.Kind == "file":
		return fileWords(f.Root + ":" + f.Path)
	default:
		return printable(text)
	}
}

// fileWords is a name as it is, or in quotes if it has ends of lines: a name with a space is
// another one.
func fileWords(name string) string {
	if strings.ContainsAny(name, "\n\r") {
		return strconv.Quote(name)
	}
	return printable(name)
}

// args shows what a call was given, short and without what its tool calls
// sensitive.
func (t textWriter) args(c call) string {
	var hidden []string
	if found, ok := t.tools.Get(c.tool); ok {
		hidden = found.Spec().Hints.Sensitive
	}
	return argWords(c.args, hidden)
}

// argWords shows arguments in at most 60 characters, without the hidden ones.
func argWords(args []byte, hidden []string) string {
	v, err := canon.Parse(args, canon.DefaultLimits())
	if err != nil {
		return ""
	}
	if v.Kind() != canon.Object {
		return clip(printable(v.Text()), 60)
	}
	var words []string
	for name, member := range v.Members() {
		words = append(words, printable(name)+"="+argWord(member, slices.Contains(hidden, name)))
	}
	if len(words) > 1 {
		for i := range words {
			words[i] = clip(words[i], 40)
		}
	}
	slices.SortStableFunc(words, pathsFirst)
	return clip(strings.Join(words, " "), 60)
}

func argWord(v canon.Value, hidden bool) string {
	switch {
	case hidden:
		return "(hidden)"
	case v.Kind() == canon.String:
		return printable(v.Text())
	default:
		return printable(string(v.Canonical()))
	}
}

// pathsFirst puts the argument first that says which file it is about.
func pathsFirst(a, b string) int {
	first := func(s string) int {
		if strings.HasPrefix(s, "path=") {
			return 0
		}
		return 1
	}
	return first(a) - first(b)
}

package pipeline

import (
	"bytes"
	"time"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/record"
)

// moment is what the decision before a call sees of the things that change
// while it decides. All accesses of the call see the same.
type moment struct {
	time             time.Time
	txn              perm.TxnFacts
	labels, requires []string

	urls     []perm.URLFacts // nil: the policy does not read them
	provided map[string]bool // by resource of a connect: whether the user named a URL that leads there

	values    []perm.ValueFacts // nil: the policy does not read them
	valuesCut bool
}

// note keeps what is looked up only while the policy decides.
func (m *moment) note(req perm.Request) {
	if m.urls == nil {
		m.urls = req.Call.URLs
	}
	if m.values == nil {
		m.values, m.valuesCut = req.Call.Values, req.Call.ValuesCut
	}
	if given := req.Access.UserProvided; given != nil {
		if m.provided == nil {
			m.provided = map[string]bool{}
		}
		m.provided[req.Access.Resource.Text] = *given
	}
}

// count counts the call as in flight. The facts for the policy are read in the
// same step: of two concurrent calls one sees the other, so no budget is spent
// twice.
func (a *admitted) count(l *Pipeline) {
	r := l.p.Facts.Reserve(a.id, toolRef(a.tool, ""), a.sums)
	a.counted, a.order = r.Session, r.Order
	a.seen = &moment{time: r.Time}
	if r.NewTool {
		// Without it, the decision cannot be decided again, and nothing else fails.
		a.order.Tool, _ = canon.Marshal(a.tool.Facts())
	}
}

// now returns what a decision sees that is not about the start of a call.
func (l *Pipeline) now() *moment {
	labels, requires := l.p.Facts.Labels()
	return &moment{time: l.p.Host.Now(), txn: l.p.Facts.Txn(), labels: labels, requires: requires}
}

// nowFor returns what a decision about a call sees that is not about its start.
// The origins of its values are those of the start, because the call itself has
// been told the values since.
func (l *Pipeline) nowFor(a admitted) *moment {
	m := l.now()
	if a.seen != nil {
		m.values, m.valuesCut = a.seen.values, a.seen.valuesCut
	}
	return m
}

// look completes what the decision before the call sees.
func (a *admitted) look(l *Pipeline) {
	if a.seen == nil { // the call was counted when it was held
		a.seen = l.now()
		return
	}
	a.seen.labels, a.seen.requires = l.p.Facts.Labels()
	a.seen.txn = l.p.Facts.Txn()
}

// facts returns the record of what the decision before the call saw.
func (a *admitted) facts() *record.Facts {
	if a.seen == nil {
		return nil
	}
	f := &record.Facts{
		Time: a.seen.time, Calls: a.seen.txn.Calls, Depth: a.seen.txn.Depth, Labels: len(a.seen.labels), Requires: len(a.seen.requires),
	}
	if a.batch.Count > 1 {
		f.BatchIndex, f.BatchCount = a.batch.Index, a.batch.Count
	}
	// These repeat the input, so they must not say what that hides.
	if a.script == nil && a.seen.urls == nil && a.seen.values == nil || !bytes.Equal(a.redaction.shownInput(), a.input) {
		return f
	}
	if a.script != nil {
		f.Script, _ = canon.Marshal(a.script)
	}
	if f.Provided = a.seen.provided; a.seen.urls != nil {
		f.URLs, _ = canon.Marshal(a.seen.urls)
	}
	if f.ValuesCut = a.seen.valuesCut; a.seen.values != nil {
		f.Values, _ = canon.Marshal(a.seen.values)
	}
	return f
}

// orderOnly returns the place of the call for a record that has its
// counts.
func (a *admitted) orderOnly() *record.Order {
	if a.order == nil || len(a.order.Counts) == 0 {
		return a.order
	}
	order := *a.order
	order.Counts = nil
	return &order
}

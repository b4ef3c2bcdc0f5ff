package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
)

// Filter is code of the host program around the calls of its runtime: between the
// decision about a call and its write-ahead record, and between its result and
// whoever gets it. It can refuse what the policy allows, and never allow what the
// policy refuses. Each hook may be nil; all are safe for concurrent use. See
// agent.Filters, and package tool/filter for ready ones.
//
// A hook runs on the goroutine of its call, which waits for it. One that panics
// ends its call: before the call has run as denied, after it as one that did not
// verify, so that what it did is taken back.
type Filter struct {
	Name string // shown, and on the journal

	// Before is called when a call is permitted and is about to run, or to be held.
	// An error denies the call, at stage "filter". It may also answer in the tool's
	// place, replace the input or end the loop: see Filtered.
	Before func(ctx context.Context, f *FilterCall) error
	// After is called with the result of a call that has run, or that a later filter
	// answered, before that is on the journal, and returns what is delivered in its
	// place. An error takes the call back.
	After func(ctx context.Context, f *FilterCall, r Result) (Result, error)
	// Ended is called with the outcome of each call whose Before was called, however
	// it ended. It can change nothing any more.
	Ended func(ctx context.Context, f *FilterCall, o Outcome)
	// Denied is called with the outcome of each call that was denied before this
	// filter's Before: by the grant, the policy, an approver or another filter. It can
	// change nothing.
	Denied func(ctx context.Context, f *FilterCall, o Outcome)

	// Batch is called before the calls of a batch are admitted. An error denies each
	// of them that the policy does not refuse anyway.
	Batch func(ctx context.Context, b *FilterBatch) error
	// BatchEnded is called when all calls of a batch have ended whose Batch was
	// called, with one outcome for each, in the order of the batch.
	BatchEnded func(ctx context.Context, b *FilterBatch, outcomes []Outcome)
}

var filterName = regexp.MustCompile(`^[a-z][a-z0-9]*([._-][a-z0-9]+)*$`)

// Check refuses a filter without a name, or without a hook.
func (f Filter) Check() error {
	switch {
	case len(f.Name) > 64 || !filterName.MatchString(f.Name):
		return fmt.Errorf("filter %q: a name is lower-case letters and digits, with single dots, dashes or underscores between them, begins with a letter and has at most 64 characters", f.Name)
	case len(f.Hooks()) == 0:
		return fmt.Errorf("filter %q has no hook, so it could do nothing", f.Name)
	}
	return nil
}

// Hooks names the hooks that the filter has, in the order in which they are called.
func (f Filter) Hooks() []string {
	hooks := []string{}
	for _, h := range []struct {
		name  string
		there bool
	}{{"batch", f.Batch != nil}, {"before", f.Before != nil}, {"after", f.After != nil}, {"ended", f.Ended != nil}, {"denied", f.Denied != nil}, {"batch_ended", f.BatchEnded != nil}} {
		if h.there {
			hooks = append(hooks, h.name)
		}
	}
	return hooks
}

// hook is what a Filtered is handed to.
type hook uint8

const (
	hookBefore hook = iota + 1
	hookAfter
	hookEnded
)

// FilterCall is one call as a hook of a filter sees it: what is returned are copies.
// It is good until the hook returns, on the hook's own goroutine.
type FilterCall struct {
	p    *permitted
	pass *filterRun
	hook hook

	answer   *Result
	input    any
	replaces bool
	values   context.Context //nolint:containedctx // handed over by Within, and taken from here when the hook has returned
}

// Call returns the id of the call.
func (f *FilterCall) Call() string { return f.p.id }

// Txn returns the id of the call's transaction.
func (f *FilterCall) Txn() string { return f.pass.line.p.Recorder.Txn() }

// Session returns the id of the call's session.
func (f *FilterCall) Session() string { return f.pass.line.p.Recorder.Session() }

// Tool returns the tool.
func (f *FilterCall) Tool() Tool { return f.p.tool }

// Class returns the effect class of this call.
func (f *FilterCall) Class() effect.Class { return f.p.class }

// Accesses returns what was decided about before the call; a tool may ask for more
// while it runs.
func (f *FilterCall) Accesses() []perm.ResourceAccess { return slices.Clone(f.p.exact) }

// Input returns the canonical input, which may hold what the policy redacts.
func (f *FilterCall) Input() json.RawMessage { return slices.Clone(f.p.input) }

// RedactedInput returns the input as it may be written down and shown.
func (f *FilterCall) RedactedInput() json.RawMessage { return slices.Clone(f.p.veil.shownInput()) }

// Decision returns what was decided about the call, as it is written down. Of one
// that was held it is the decision of then.
func (f *FilterCall) Decision() perm.DecisionRecord {
	if f.p.released != nil {
		if d := decisionRecord(f.p.released.Decision); d != nil {
			return *d
		}
	}
	if f.pass.refused != nil {
		return f.p.veil.record(decided(f.pass.refused))
	}
	return f.p.veil.decision(f.p.decision)
}

// Principal returns who asks.
func (f *FilterCall) Principal() perm.Principal { return f.pass.line.p.Principal.Clone() }

// Labels returns the labels of the session as they are now.
func (f *FilterCall) Labels() []string {
	labels, _ := f.pass.line.p.Facts.Labels()
	return slices.Clone(labels)
}

// Turn returns which request of its session the call belongs to, from 0: calls of
// one batch belong to one.
func (f *FilterCall) Turn() int { return f.pass.turn }

// BatchPosition returns where in its batch the call stands, from 0, and of how many.
func (f *FilterCall) BatchPosition() (index, count int) {
	return f.p.batch.Index, max(f.p.batch.Count, 1)
}

// Released reports whether the call was held, and its transaction commits now. It
// was filtered when it was held, too; now it can only be let go or refused.
func (f *FilterCall) Released() bool { return f.p.released != nil }

// Resumed reports whether the call had waited for approval, and goes on. What it
// runs with was approved, so a filter that replaced the input before does not do it
// again.
func (f *FilterCall) Resumed() bool { return f.p.resume != nil }

// Now returns the time.
func (f *FilterCall) Now() time.Time { return f.pass.line.p.Host.Now() }

// Properties is for what filters want to know of the call later: any keys, best of
// types of their own. It is gone when the call has ended.
func (f *FilterCall) Properties() *sync.Map { return &f.pass.properties }

// SessionProperties is the same for the session, shared by all calls of it. It is
// gone with the process; what must last is counted from the journal, by a policy's
// limit.
func (f *FilterCall) SessionProperties() *sync.Map { return f.pass.line.properties() }

// Answer ends, in Before, the call with a result of the filter's: the tool's code is
// not entered. The call is done, on the journal with the filter's name, and has no
// effect. A result that does not fit the tool's output schema or the limits denies
// the call.
func (f *FilterCall) Answer(r Result) { f.answer = &r }

// Replace gives, in Before, the call another input, as Txn.Invoke takes one. It is
// admitted and decided about like any other; then the filters after this one are
// asked. One that is not valid denies the call.
func (f *FilterCall) Replace(input any) { f.input, f.replaces = input, true }

// EndLoop tells, in Before and in After, whoever runs calls for a model that no
// further turn is to come: Outcome.EndLoop says why. It ends no call.
func (f *FilterCall) EndLoop(why string) {
	if f.hook != hookEnded {
		f.pass.endLoop(why)
	}
}

// SetContext hands, in Before, the values of a context to all that comes after: later
// filters, the tool's code, After and Ended. When the call has to end is not
// changed by it.
func (f *FilterCall) SetContext(ctx context.Context) { f.values = ctx }

// AddRedaction has, in Before, all that is said of the call go through a function before it is
// written down or told to anybody: errors, what was found out about the call, how far it
// is, why a loop is to end. Input and result do not: After is for the result. The function
// is safe for concurrent use, and where it panics nothing of the text stays.
func (f *FilterCall) AddRedaction(hide func(text string) string) {
	if f.hook == hookBefore && hide != nil {
		f.p.veil.hide(hide)
	}
}

// reaction reports what a Before wants that it cannot have at once.
func (f *FilterCall) reaction() error {
	if f.answer != nil && f.replaces {
		return errors.New("it both answered and replaced the input: one of them can count")
	}
	return nil
}

// FilterBatch is a batch of calls as the hooks of a filter see it: what is returned are
// copies.
type FilterBatch struct {
	line  *Pipeline
	calls []Request
}

// Calls returns what is asked, in order. Nobody has checked it.
func (b *FilterBatch) Calls() []Request { return slices.Clone(b.calls) }

// Txn returns the id of the transaction.
func (b *FilterBatch) Txn() string { return b.line.p.Recorder.Txn() }

// Session returns the id of the session.
func (b *FilterBatch) Session() string { return b.line.p.Recorder.Session() }

// Principal returns who asks.
func (b *FilterBatch) Principal() perm.Principal { return b.line.p.Principal.Clone() }

// Turn returns which request of its session the batch is, from 0.
func (b *FilterBatch) Turn() int { return b.calls[0].Turn }

// Now returns the time.
func (b *FilterBatch) Now() time.Time { return b.line.p.Host.Now() }

// SessionProperties is what FilterCall.SessionProperties is.
func (b *FilterBatch) SessionProperties() *sync.Map { return b.line.properties() }

func (l *Pipeline) properties() *sync.Map {
	if l.p.Properties == nil {
		return new(sync.Map)
	}
	return l.p.Properties
}

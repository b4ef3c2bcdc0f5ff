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

// Filter is code of the host program around the calls of its runtime. It runs
// between the decision about a call and its write-ahead record, and between the
// result and its receiver. It can refuse what the policy allows, and never
// allow what the policy denies. Each hook may be nil. All hooks must be safe
// for concurrent use. See agent.Filters, and package tool/filter for ready
// ones.
//
// A hook runs on the goroutine of its call, which waits for it. A hook that
// panics ends its call. Before the call has run, the call is denied. Afterwards
// it fails verification, and the runtime reverts it.
type Filter struct {
	Name string // shown, and recorded on the journal

	// Before is called when a call is permitted and is about to run or to be
	// held. An error denies the call, at stage "filter". Before can also answer
	// in the tool's place, replace the input or end the loop: see FilterCall.
	Before func(ctx context.Context, f *FilterCall) error
	// After is called with the result of a call that has run, or that a later
	// filter answered, before the result is on the journal. It returns the
	// result to deliver in its place. An error reverts the call.
	After func(ctx context.Context, f *FilterCall, r Result) (Result, error)
	// Ended is called with the outcome of each call whose Before was called,
	// however the call ended. It cannot change the outcome.
	Ended func(ctx context.Context, f *FilterCall, o Outcome)
	// Denied is called with the outcome of each call that was denied before
	// this filter's Before: by the grant, the policy, an approver or another
	// filter. It cannot change the outcome.
	Denied func(ctx context.Context, f *FilterCall, o Outcome)

	// Batch is called before the calls of a batch are admitted. An error denies
	// each of them that the policy does not deny anyway.
	Batch func(ctx context.Context, b *FilterBatch) error
	// BatchEnded is called when all calls of a batch have ended whose Batch was
	// called. It gets one outcome for each call, in the order of the batch.
	BatchEnded func(ctx context.Context, b *FilterBatch, outcomes []Outcome)
}

var filterName = regexp.MustCompile(`^[a-z][a-z0-9]*([._-][a-z0-9]+)*$`)

// Check returns an error if the filter has no name or no hook.
func (f Filter) Check() error {
	switch {
	case len(f.Name) > 64 || !filterName.MatchString(f.Name):
		return fmt.Errorf("filter %q: a name is lower-case letters and digits, with single dots, dashes or underscores between them, begins with a letter and has at most 64 characters", f.Name)
	case len(f.Hooks()) == 0:
		return fmt.Errorf("filter %q has no hook, so it could do nothing", f.Name)
	}
	return nil
}

// Hooks returns the names of the filter's hooks, in the order in which they are
// called.
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

// hook identifies the hook that receives a FilterCall.
type hook uint8

const (
	hookBefore hook = iota + 1
	hookAfter
	hookEnded
)

// FilterCall is one call as a hook of a filter sees it. Its methods return
// copies. It is valid until the hook returns, on the hook's own goroutine.
type FilterCall struct {
	p    *permitted
	pass *filterRun
	hook hook

	answer   *Result
	input    any
	replaces bool
	values   context.Context //nolint:containedctx // handed over by Within, and taken from here when the hook has returned
}

// Call returns the ID of the call.
func (f *FilterCall) Call() string { return f.p.id }

// Txn returns the ID of the call's transaction.
func (f *FilterCall) Txn() string { return f.pass.line.p.Recorder.Txn() }

// Session returns the ID of the call's session.
func (f *FilterCall) Session() string { return f.pass.line.p.Recorder.Session() }

// Tool returns the tool.
func (f *FilterCall) Tool() Tool { return f.p.tool }

// Class returns the effect class of this call.
func (f *FilterCall) Class() effect.Class { return f.p.class }

// Accesses returns the accesses that were decided before the call. A tool can
// request more while it runs.
func (f *FilterCall) Accesses() []perm.ResourceAccess { return slices.Clone(f.p.exact) }

// Input returns the canonical input. It can contain values that the policy
// redacts.
func (f *FilterCall) Input() json.RawMessage { return slices.Clone(f.p.input) }

// RedactedInput returns the input as it may be recorded and shown.
func (f *FilterCall) RedactedInput() json.RawMessage { return slices.Clone(f.p.veil.shownInput()) }

// Decision returns the decision about the call, as it is recorded. For a held
// call it is the decision of the time when it was held.
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

// Principal returns the principal that makes the call.
func (f *FilterCall) Principal() perm.Principal { return f.pass.line.p.Principal.Clone() }

// Labels returns the current labels of the session.
func (f *FilterCall) Labels() []string {
	labels, _ := f.pass.line.p.Facts.Labels()
	return slices.Clone(labels)
}

// Turn returns the number of the turn that the call belongs to, from 0. All
// calls of one batch belong to one turn.
func (f *FilterCall) Turn() int { return f.pass.turn }

// BatchPosition returns the position of the call in its batch, from 0, and the
// number of calls in the batch.
func (f *FilterCall) BatchPosition() (index, count int) {
	return f.p.batch.Index, max(f.p.batch.Count, 1)
}

// Released reports whether the call was held and its transaction commits now.
// The filters also saw it when it was held. Now a filter can only let it run or
// refuse it.
func (f *FilterCall) Released() bool { return f.p.released != nil }

// Resumed reports whether the call waited for an approval and continues. The
// approval covers its input, so a filter that replaced the input before does
// not replace it again.
func (f *FilterCall) Resumed() bool { return f.p.resume != nil }

// Now returns the current time of the runtime's clock.
func (f *FilterCall) Now() time.Time { return f.pass.line.p.Host.Now() }

// Properties returns a map in which filters can store what they need later in
// the same call. Use keys of your own types. The map is dropped when the call
// ends.
func (f *FilterCall) Properties() *sync.Map { return &f.pass.properties }

// SessionProperties returns a map that all calls of the session share. It
// exists in this process only. For counts that must survive a restart, use a
// policy limit, which counts from the journal.
func (f *FilterCall) SessionProperties() *sync.Map { return f.pass.line.properties() }

// Answer, in Before, ends the call with a result of the filter. The tool's code
// does not run. The call is done, has no effect, and its record names the
// filter. A result that does not fit the tool's output schema or the limits
// denies the call.
func (f *FilterCall) Answer(r Result) { f.answer = &r }

// Replace, in Before, gives the call another input, as Txn.Invoke accepts one.
// The runtime admits and decides it like any other input, then calls the
// filters after this one. An invalid input denies the call.
func (f *FilterCall) Replace(input any) { f.input, f.replaces = input, true }

// EndLoop, in Before and in After, tells the model loop that no further turn
// must follow. Outcome.EndLoop holds why. EndLoop does not end the call.
func (f *FilterCall) EndLoop(why string) {
	if f.hook != hookEnded {
		f.pass.endLoop(why)
	}
}

// SetContext, in Before, passes the values of a context to all later steps:
// later filters, the tool's code, After and Ended. It does not change the
// deadline of the call.
func (f *FilterCall) SetContext(ctx context.Context) { f.values = ctx }

// AddRedaction, in Before, applies hide to every text about the call before it
// is recorded or shown: errors, verification results, progress and the reason
// to end a loop. It does not apply to input and result: use After for the
// result. hide must be safe for concurrent use. If it panics, the runtime drops
// the whole text.
func (f *FilterCall) AddRedaction(hide func(text string) string) {
	if f.hook == hookBefore && hide != nil {
		f.p.veil.hide(hide)
	}
}

// reaction returns an error if Before requests something that it cannot have.
func (f *FilterCall) reaction() error {
	if f.answer != nil && f.replaces {
		return errors.New("it both answered and replaced the input: one of them can count")
	}
	return nil
}

// FilterBatch is a batch of calls as the hooks of a filter see it. Its methods
// return copies.
type FilterBatch struct {
	line  *Pipeline
	calls []Request
}

// Calls returns the requests, in order. The runtime has not validated them.
func (b *FilterBatch) Calls() []Request { return slices.Clone(b.calls) }

// Txn returns the ID of the transaction.
func (b *FilterBatch) Txn() string { return b.line.p.Recorder.Txn() }

// Session returns the ID of the session.
func (b *FilterBatch) Session() string { return b.line.p.Recorder.Session() }

// Principal returns the principal that makes the calls.
func (b *FilterBatch) Principal() perm.Principal { return b.line.p.Principal.Clone() }

// Turn returns the number of the turn that the batch belongs to, from 0.
func (b *FilterBatch) Turn() int { return b.calls[0].Turn }

// Now returns the current time of the runtime's clock.
func (b *FilterBatch) Now() time.Time { return b.line.p.Host.Now() }

// SessionProperties returns the same map as FilterCall.SessionProperties.
func (b *FilterBatch) SessionProperties() *sync.Map { return b.line.properties() }

func (l *Pipeline) properties() *sync.Map {
	if l.p.Properties == nil {
		return new(sync.Map)
	}
	return l.p.Properties
}

package filter

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// Filter is code of the host program around the calls of its runtime. It runs
// between the decision about a call and its write-ahead record, and between the
// result and its receiver. It can refuse what the policy allows, and never
// allow what the policy denies. Each hook may be nil. All hooks must be safe
// for concurrent use. See agent.Filters. This package and package otel
// below it have ready ones.
//
// A hook runs on the goroutine of its call, which waits for it. A hook that
// panics ends its call. Before the call has run, the call is denied. Afterwards
// it fails verification, and the runtime reverts it.
type Filter struct {
	Name string // shown, and recorded on the journal

	// Before is called when a call is permitted and is about to run or to be
	// held. An error denies the call, at stage "filter". Before can also answer
	// in the tool's place, replace the input or end the loop: see Call.
	Before func(ctx context.Context, f Call) error
	// After is called with the result of a call that has run, or that a later
	// filter answered, before the result is on the journal. It returns the
	// result to deliver in its place. An error reverts the call.
	After func(ctx context.Context, f Call, r tool.Result) (tool.Result, error)
	// Ended is called with the outcome of each call whose Before was called,
	// however the call ended. It cannot change the outcome.
	Ended func(ctx context.Context, f Call, o tool.Outcome)
	// Denied is called with the outcome of each call that was denied before
	// this filter's Before: by the grant, the policy, an approver or another
	// filter. It cannot change the outcome.
	Denied func(ctx context.Context, f Call, o tool.Outcome)

	// Batch is called before the calls of a batch are admitted. An error denies
	// each of them that the policy does not deny anyway.
	Batch func(ctx context.Context, b Batch) error
	// BatchEnded is called when all calls of a batch have ended whose Batch was
	// called. It gets one outcome for each call, in the order of the batch.
	BatchEnded func(ctx context.Context, b Batch, outcomes []tool.Outcome)
}

var filterName = regexp.MustCompile(`^[a-z][a-z0-9]*([._-][a-z0-9]+)*$`)

// Check returns an error if the filter has no valid name or no hook.
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

// Call is one call as a hook of a filter sees it. Its methods return copies. It
// is valid until the hook returns, on the hook's own goroutine.
type Call interface {
	// ID returns the ID of the call.
	ID() string

	// Txn returns the ID of the call's transaction.
	Txn() string

	// Session returns the ID of the call's session.
	Session() string

	// Tool returns the tool.
	Tool() tool.Tool

	// Class returns the effect class of this call.
	Class() effect.Class

	// Accesses returns the accesses that were decided before the call. A tool can
	// request more while it runs.
	Accesses() []perm.ResourceAccess

	// Input returns the canonical input. It can contain values that the policy
	// redacts.
	Input() json.RawMessage

	// RedactedInput returns the input as it may be recorded and shown.
	RedactedInput() json.RawMessage

	// Decision returns the decision about the call, as it is recorded. For a held
	// call it is the decision of the time when it was held.
	Decision() perm.DecisionRecord

	// Principal returns the principal that makes the call.
	Principal() perm.Principal

	// Labels returns the current labels of the session.
	Labels() []string

	// Turn returns the number of the turn that the call belongs to, from 0. All
	// calls of one batch belong to one turn.
	Turn() int

	// BatchPosition returns the position of the call in its batch, from 0, and the
	// number of calls in the batch.
	BatchPosition() (index, count int)

	// Released reports whether the call was held and its transaction commits now.
	// The filters also saw it when it was held. Now a filter can only let it run or
	// refuse it.
	Released() bool

	// Resumed reports whether the call waited for an approval and continues. The
	// approval covers its input, so a filter that replaced the input before does
	// not replace it again.
	Resumed() bool

	// Now returns the current time of the runtime's clock.
	Now() time.Time

	// Properties returns a map in which filters can store what they need later in
	// the same call. Use keys of your own types. The map is dropped when the call
	// ends.
	Properties() *sync.Map

	// SessionProperties returns a map that all calls of the session share. It
	// exists in this process only. For counts that must survive a restart, use a
	// policy limit, which counts from the journal.
	SessionProperties() *sync.Map

	// Answer, in Before, ends the call with a result of the filter. The tool's code
	// does not run. The call is done, has no effect, and its record names the
	// filter. A result that does not fit the tool's output schema or the limits
	// denies the call.
	Answer(r tool.Result)

	// Replace, in Before, gives the call another input, as Txn.Invoke accepts one.
	// The runtime admits and decides it like any other input, then calls the
	// filters after this one. An invalid input denies the call.
	Replace(input any)

	// EndLoop, in Before and in After, tells the model loop that no further turn
	// must follow. Outcome.EndLoop holds why. EndLoop does not end the call.
	EndLoop(why string)

	// SetContext, in Before, passes the values of a context to all later steps:
	// later filters, the tool's code, After and Ended. It does not change the
	// deadline of the call.
	SetContext(ctx context.Context)

	// AddRedaction, in Before, applies hide to every text about the call before it
	// is recorded or shown: errors, verification results, progress and the reason
	// to end a loop. It does not apply to input and result: use After for the
	// result. hide must be safe for concurrent use. If it panics, the runtime drops
	// the whole text.
	AddRedaction(hide func(text string) string)
}

// Batch is a batch of calls as the hooks of a filter see it. Its methods return
// copies.
type Batch interface {
	// Calls returns the requests, in order. The runtime has not validated them.
	Calls() []tool.Request

	// Txn returns the ID of the transaction.
	Txn() string

	// Session returns the ID of the session.
	Session() string

	// Principal returns the principal that makes the calls.
	Principal() perm.Principal

	// Turn returns the number of the turn that the batch belongs to, from 0.
	Turn() int

	// Now returns the current time of the runtime's clock.
	Now() time.Time

	// SessionProperties returns the same map as Call.SessionProperties.
	SessionProperties() *sync.Map
}

package rego

import (
	"context"
	"fmt"
	"sync"

	"github.com/remit-dev/remit/perm"
)

// Reloader decides by a policy that is read anew from its files whenever Reload
// is called, and at no other time: nothing watches the files. Until the new
// policy compiled and passed its own tests the old one decides.
type Reloader struct {
	options Options
	live    *SwappableEngine

	mu      sync.Mutex
	began   uint64 // number of the newest reload
	current uint64 // number of the reload whose policy is live
}

// NewReloader loads a policy, runs its tests and returns a Reloader that
// decides by it. The options are kept as they are: what they refer to is read
// again with every reload.
func NewReloader(ctx context.Context, o Options) (*Reloader, error) {
	e, err := proven(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Reloader{options: o, live: NewLive(e)}, nil
}

// Reload reads, compiles and tests the policy, and only then exchanges it. It
// reports whether another policy decides than before. With an error the old one
// stays. Of reloads at the same time, one that began earlier never replaces
// what a later one read.
func (r *Reloader) Reload(ctx context.Context) (changed bool, err error) {
	number := r.begin()
	e, err := proven(ctx, r.options)
	if err != nil {
		return false, fmt.Errorf("rego: the policy was not exchanged, %s still decides: %w", r.Revision(), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if number < r.current {
		return false, nil
	}
	r.current = number
	if e.Revision() == r.live.Revision() {
		return false, nil // it keeps what it remembers
	}
	r.live.Swap(e)
	return true, nil
}

func (r *Reloader) begin() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began++
	return r.began
}

// Engine returns the Engine that decides.
func (r *Reloader) Engine() *Engine { return r.live.Engine() }

// Revision names the policy that decides.
func (r *Reloader) Revision() string { return r.live.Revision() }

// Ensures reports whether the policy that decides has postconditions.
func (r *Reloader) Ensures() bool { return r.live.Ensures() }

// Redacts reports whether the policy that decides redacts anything.
func (r *Reloader) Redacts() bool { return r.live.Redacts() }

// ReadsURLs reports whether the current policy reads which URLs a call names and was given.
func (r *Reloader) ReadsURLs() bool { return r.live.ReadsURLs() }

// LabelsResults reports whether a label of the current policy depends on what a call returned.
func (r *Reloader) LabelsResults() bool { return r.live.LabelsResults() }

// Decide asks the policy that is current when it begins.
func (r *Reloader) Decide(ctx context.Context, q perm.Request) (perm.Decision, error) {
	return r.live.Decide(ctx, q)
}

// proven makes an Engine whose policy passed its own tests.
func proven(ctx context.Context, o Options) (*Engine, error) {
	if ctx.Err() != nil {
		return nil, cancelled(ctx)
	}
	e, err := New(o)
	if err != nil {
		return nil, err
	}
	report, err := e.Test(ctx)
	if err != nil {
		return nil, err
	}
	var found problems
	for _, t := range report.Failed() {
		text := "the policy's own test " + t.Name + " does not hold"
		if t.Text != "" {
			text += ": " + t.Text
		}
		found.add(t.At, "mend the rule, or the test if the rule is meant", "%s", text)
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	return e, nil
}

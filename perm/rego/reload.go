package rego

import (
	"context"
	"fmt"
	"sync"

	"github.com/remit-dev/remit/perm"
)

// Reloader decides by a policy that it reads from files. It reads them again
// only when Reload is called; it does not watch them. The old policy decides
// until the new one has compiled and passed its own tests.
type Reloader struct {
	options Options
	live    *SwappableEngine

	mu      sync.Mutex
	began   uint64 // number of the newest reload
	current uint64 // number of the reload whose policy is live
}

// NewReloader loads a policy, runs its tests and returns a Reloader for it. The
// Reloader keeps the options, and every reload reads their files again.
func NewReloader(ctx context.Context, o Options) (*Reloader, error) {
	e, err := testedEngine(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Reloader{options: o, live: NewSwappableEngine(e)}, nil
}

// Reload reads, compiles and tests the policy, and only then replaces it. It
// reports whether the policy changed. After an error the old policy remains. If
// reloads run concurrently, an earlier one never replaces the result of a later
// one.
func (r *Reloader) Reload(ctx context.Context) (changed bool, err error) {
	number := r.begin()
	e, err := testedEngine(ctx, r.options)
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
		return false, nil // the engine keeps its cache
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

// Engine returns the current Engine.
func (r *Reloader) Engine() *Engine { return r.live.Engine() }

// Revision returns the digest of the current policy.
func (r *Reloader) Revision() string { return r.live.Revision() }

// Ensures reports whether the current policy has postconditions.
func (r *Reloader) Ensures() bool { return r.live.Ensures() }

// Redacts reports whether the current policy redacts anything.
func (r *Reloader) Redacts() bool { return r.live.Redacts() }

// DecidesCommits reports whether the current policy has rules about commits.
func (r *Reloader) DecidesCommits() bool { return r.live.DecidesCommits() }

// ReadsURLs reports whether the current policy reads the URLs of a call, or
// whether they are user-provided.
func (r *Reloader) ReadsURLs() bool { return r.live.ReadsURLs() }

// ReadsValues reports whether the current policy reads where the values of
// arguments come from.
func (r *Reloader) ReadsValues() bool { return r.live.ReadsValues() }

// ReadsOnly is that of Engine.
func (*Reloader) ReadsOnly() bool { return true }

// LabelsResults reports whether a label of the current policy depends on the
// result of a call.
func (r *Reloader) LabelsResults() bool { return r.live.LabelsResults() }

// Decide decides with the policy that is current when it starts.
func (r *Reloader) Decide(ctx context.Context, q perm.Request) (perm.Decision, error) {
	return r.live.Decide(ctx, q)
}

// testedEngine returns an Engine whose policy passed its own tests.
func testedEngine(ctx context.Context, o Options) (*Engine, error) {
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

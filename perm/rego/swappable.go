package rego

import (
	"context"
	"sync/atomic"

	"github.com/remit-dev/remit/perm"
)

// SwappableEngine is an engine that can be replaced while it is in use. The
// Engine that was current at the start of a decision makes all of it. The zero
// SwappableEngine denies everything. A SwappableEngine must not be copied.
type SwappableEngine struct {
	current atomic.Pointer[Engine]
}

// NewSwappableEngine returns a SwappableEngine that starts with e.
func NewSwappableEngine(e *Engine) *SwappableEngine {
	l := &SwappableEngine{}
	l.current.Store(e)
	return l
}

// Swap makes e current and returns the previous Engine, which finishes its
// decisions. A nil Engine denies everything.
func (l *SwappableEngine) Swap(e *Engine) *Engine { return l.current.Swap(e) }

// Engine returns the current Engine, or nil.
func (l *SwappableEngine) Engine() *Engine { return l.current.Load() }

// Revision returns the digest of the current policy, or "".
func (l *SwappableEngine) Revision() string { return l.current.Load().Revision() }

// Ensures reports whether the current policy has postconditions.
func (l *SwappableEngine) Ensures() bool { return l.current.Load().Ensures() }

// Redacts reports whether the current policy redacts anything.
func (l *SwappableEngine) Redacts() bool { return l.current.Load().Redacts() }

// DecidesCommits reports whether the current policy has rules about commits.
func (l *SwappableEngine) DecidesCommits() bool { return l.current.Load().DecidesCommits() }

// ReadsURLs reports whether the current policy reads the URLs of a call, or
// whether they are user-provided.
func (l *SwappableEngine) ReadsURLs() bool { return l.current.Load().ReadsURLs() }

// ReadsValues reports whether the current policy reads where the values of
// arguments come from.
func (l *SwappableEngine) ReadsValues() bool { return l.current.Load().ReadsValues() }

// ReadsOnly is that of Engine.
func (*SwappableEngine) ReadsOnly() bool { return true }

// LabelsResults reports whether a label of the current policy depends on the
// result of a call.
func (l *SwappableEngine) LabelsResults() bool { return l.current.Load().LabelsResults() }

// Decide decides with the current Engine.
func (l *SwappableEngine) Decide(ctx context.Context, r perm.Request) (perm.Decision, error) {
	return l.current.Load().Decide(ctx, r)
}

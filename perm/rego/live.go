package rego

import (
	"context"
	"sync/atomic"

	"github.com/remit-dev/remit/perm"
)

// SwappableEngine is an Engine that can be exchanged while it is in use. A decision is
// made wholly by the Engine that was current when it began. The zero Live
// denies everything. A Live must not be copied.
type SwappableEngine struct {
	current atomic.Pointer[Engine]
}

// NewLive returns a Live that begins with e.
func NewLive(e *Engine) *SwappableEngine {
	l := &SwappableEngine{}
	l.current.Store(e)
	return l
}

// Swap makes e current and returns the Engine that was. The old one answered
// until now and finishes what it began. With nil, everything is denied.
func (l *SwappableEngine) Swap(e *Engine) *Engine { return l.current.Swap(e) }

// Engine returns the current Engine, nil when there is none.
func (l *SwappableEngine) Engine() *Engine { return l.current.Load() }

// Revision names the current policy, "" when there is none.
func (l *SwappableEngine) Revision() string { return l.current.Load().Revision() }

// Ensures reports whether the current policy has postconditions.
func (l *SwappableEngine) Ensures() bool { return l.current.Load().Ensures() }

// Redacts reports whether the current policy redacts anything.
func (l *SwappableEngine) Redacts() bool { return l.current.Load().Redacts() }

// ReadsURLs reports whether the current policy reads which URLs a call names and was given.
func (l *SwappableEngine) ReadsURLs() bool { return l.current.Load().ReadsURLs() }

// LabelsResults reports whether a label of the current policy depends on what a call returned.
func (l *SwappableEngine) LabelsResults() bool { return l.current.Load().LabelsResults() }

// Decide asks the current Engine.
func (l *SwappableEngine) Decide(ctx context.Context, r perm.Request) (perm.Decision, error) {
	return l.current.Load().Decide(ctx, r)
}

package perm

import (
	"context"
	"errors"
)

// ErrTimeout is wrapped by the error of an Engine that ran out of time. The
// request is denied, and no rule refused it: a later request may be answered.
var ErrTimeout = errors.New("the policy did not answer in time")

// Engine answers one request. Implementations are safe for concurrent use.
//
// A Decision is only worth its effect when the error is nil: callers MUST treat
// any error, and any effect but Allow, Ask and Hold, as a denial. An engine MUST
// return an error, never a milder decision, when it could not evaluate
// everything: a deadline, a cancelled context, a failed built-in.
type Engine interface {
	Decide(ctx context.Context, r Request) (Decision, error)
}

// EngineFunc is a function as an Engine, for tests and for small programs.
type EngineFunc func(ctx context.Context, r Request) (Decision, error)

// Decide calls f; a nil f denies.
func (f EngineFunc) Decide(ctx context.Context, r Request) (Decision, error) {
	if f == nil {
		return NewDecision(Deny, Details{Reasons: []Reason{{Text: "no engine is configured", Set: "deny"}}}), nil
	}
	return f(ctx, r)
}

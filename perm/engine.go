package perm

import (
	"context"
	"errors"
)

// ErrTimeout is wrapped by the error of an Engine that exceeded its time. The
// request is denied, although no rule denied it. A later request can succeed.
var ErrTimeout = errors.New("the policy did not answer in time")

// Engine decides one request. Implementations are safe for concurrent use, and
// do not change what the request refers to.
//
// The effect of a Decision counts only if the error is nil. Callers MUST treat
// any error, and any effect but Allow, Ask and Hold, as a denial. An engine
// MUST return an error, never a milder decision, if it could not evaluate every
// rule: after a deadline, a cancelled context or a failed built-in.
type Engine interface {
	Decide(ctx context.Context, r Request) (Decision, error)
}

// EngineFunc adapts a function to Engine, for tests and small programs.
type EngineFunc func(ctx context.Context, r Request) (Decision, error)

// Decide calls f. A nil f denies.
func (f EngineFunc) Decide(ctx context.Context, r Request) (Decision, error) {
	if f == nil {
		return NewDecision(Deny, Details{Reasons: []Reason{{Text: "no engine is configured", Set: "deny"}}}), nil
	}
	return f(ctx, r)
}

package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/remit-dev/remit/revert/effect"
)

// Verdict is a result and its findings. The zero Verdict cannot tell.
type Verdict struct {
	presence effect.Presence
	findings []string
}

// Applied states that the whole effect is present.
func Applied(findings ...string) Verdict {
	return Verdict{presence: effect.PresenceApplied, findings: slices.Clone(findings)}
}

// Partial states that a part of the effect is present.
func Partial(findings ...string) Verdict {
	return Verdict{presence: effect.PresencePartial, findings: slices.Clone(findings)}
}

// Absent states that nothing of the effect is present.
func Absent(findings ...string) Verdict {
	return Verdict{presence: effect.PresenceAbsent, findings: slices.Clone(findings)}
}

// CannotTell states that no decision is possible, and why.
func CannotTell(findings ...string) Verdict {
	return Verdict{presence: effect.PresenceUnknown, findings: slices.Clone(findings)}
}

// Presence returns how much of the effect is present.
func (v Verdict) Presence() effect.Presence { return v.presence.OrUnknown() }

// Findings returns the reasons, one short sentence each.
func (v Verdict) Findings() []string { return slices.Clone(v.findings) }

// Phase is when a verifier runs.
type Phase string

// The phases.
const (
	AfterCall   Phase = "call"
	Recovery    Phase = "recovery" // the output may be lost
	AfterRevert Phase = "undo"     // Absent is the expected result
)

// Subject is the input of a verifier.
type Subject struct {
	Phase     Phase
	Input     json.RawMessage // canonical JSON
	Output    json.RawMessage // canonical form of the tool's result; nil if lost
	Changes   []Change
	Notes     map[string]json.RawMessage // notes of the tool
	Resources ResourceView
}

// Change is one recorded effect of the call.
type Change struct {
	Resource string
	Kind     string
	Before   string // version token, "absent" for a missing resource
	After    string // version token
}

// ResourceView reads the current resources, and their content before the call.
// It contains only the resources of the call. Its methods are safe for
// concurrent use.
type ResourceView interface {
	// Version returns the current version token of a resource, or "absent" if
	// it does not exist.
	Version(ctx context.Context, resource string) (string, error)
	// Open opens the current content of a resource. It returns fs.ErrNotExist
	// if the resource does not exist.
	Open(ctx context.Context, resource string) (io.ReadCloser, error)
	// Before opens the content before the call changed the resource. It returns
	// fs.ErrNotExist if the resource did not exist, or the call did not change
	// it.
	Before(ctx context.Context, resource string) (io.ReadCloser, error)
}

// Verifier checks the resources of a call. It changes nothing, is safe for
// concurrent use, and returns CannotTell rather than guess.
type Verifier func(ctx context.Context, s Subject) Verdict

// Run calls a verifier on a separate goroutine. One that panics, or has not
// returned when ctx ends, cannot tell, like a nil verifier.
func Run(ctx context.Context, v Verifier, s Subject) Verdict {
	if v == nil {
		return Verdict{}
	}
	answer := make(chan Verdict, 1)
	go func() {
		var verdict Verdict
		defer func() {
			if p := recover(); p != nil {
				verdict = CannotTell(fmt.Sprintf("the verifier panicked (%T)", p))
			}
			answer <- verdict
		}()
		verdict = v(ctx, s)
	}()
	select {
	case verdict := <-answer:
		if ctx.Err() == nil {
			return verdict
		}
	case <-ctx.Done():
	}
	return CannotTell("the time for verifying was up")
}

// Output adapts a check of input against output. It decides only after a call:
// nil from fn is Applied, an error is Absent with the error as its finding. It
// cannot tell in the other phases.
func Output[In, Out any](fn func(in In, out Out) error) Verifier {
	return func(_ context.Context, s Subject) Verdict {
		if s.Phase != AfterCall || s.Output == nil {
			return CannotTell("only the output could tell, and there is none to look at")
		}
		var in In
		var out Out
		if err := json.Unmarshal(s.Input, &in); err != nil {
			return CannotTell("the input is not of the verifier's type")
		}
		if err := json.Unmarshal(s.Output, &out); err != nil {
			return CannotTell("the output is not of the verifier's type")
		}
		if err := fn(in, out); err != nil {
			return Absent(err.Error())
		}
		return Applied()
	}
}

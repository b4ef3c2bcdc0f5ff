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
	aside    bool // not about the effect: All and Any use the others, if there are any
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
	AfterCall Phase = "call"
	Recovery  Phase = "recovery" // the output may be lost
	AfterUndo Phase = "undo"     // Absent is the expected result
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
// nil from fn is Applied, an error is Absent with the error as its finding. In
// the other phases All and Any use only the verifiers of resources.
func Output[In, Out any](fn func(in In, out Out) error) Verifier {
	return func(_ context.Context, s Subject) Verdict {
		if s.Phase != AfterCall || s.Output == nil {
			return noOutput()
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

func noOutput() Verdict {
	v := CannotTell("only the output could tell, and there is none to look at")
	v.aside = true
	return v
}

// All combines verifiers. Applied needs all of them; Absent needs all of them.
// If one cannot tell, the result cannot tell. Any other mixture is Partial. All
// leaves out verdicts that are not about the effect in a phase, such as those
// of Output and Unchanged, unless there are no others.
func All(vs ...Verifier) Verifier {
	return func(ctx context.Context, s Subject) Verdict {
		asked, findings := ask(ctx, vs, s)
		counts := count(asked)
		v := Verdict{presence: effect.PresencePartial, findings: findings, aside: aside(asked)}
		switch {
		case len(asked) == 0:
			return CannotTell("nothing was asked")
		case counts[effect.PresenceApplied] == len(asked):
			v.presence = effect.PresenceApplied
		case counts[effect.PresenceAbsent] == len(asked):
			v.presence = effect.PresenceAbsent
		case counts[effect.PresenceUnknown] > 0:
			v.presence = effect.PresenceUnknown
		}
		return v
	}
}

// ask returns the verdicts that count, and all findings.
func ask(ctx context.Context, vs []Verifier, s Subject) (asked []Verdict, findings []string) {
	findings = []string{}
	for _, v := range vs {
		got := Run(ctx, v, s)
		asked = append(asked, got)
		findings = append(findings, got.findings...)
	}
	if !aside(asked) {
		asked = slices.DeleteFunc(asked, func(v Verdict) bool { return v.aside })
	}
	return asked, findings
}

// aside reports whether all verdicts are about something other than the effect.
func aside(all []Verdict) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(v Verdict) bool { return !v.aside })
}

func count(all []Verdict) map[effect.Presence]int {
	counts := map[effect.Presence]int{}
	for _, v := range all {
		counts[v.Presence()]++
	}
	return counts
}

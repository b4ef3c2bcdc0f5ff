package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Is is what a look at the world found. The zero Is is CannotTell.
type Is uint8

// The findings.
const (
	CannotTell Is = iota // no answer
	IsApplied            // the whole effect is there
	IsPartial            // a part of it is there
	IsAbsent             // nothing of it is there
)

// String returns the finding's name on the wire.
func (i Is) String() string {
	switch i {
	case IsApplied:
		return "applied"
	case IsPartial:
		return "partial"
	case IsAbsent:
		return "absent"
	case CannotTell:
		return "cannot_tell"
	default:
		return "cannot_tell"
	}
}

// Verdict is a finding and what it rests on. The zero Verdict cannot tell.
type Verdict struct {
	is       Is
	findings []string
	aside    bool // about something else than the effect: All and Any go by the others, if there are any
}

// Applied says that the whole effect is there.
func Applied(findings ...string) Verdict {
	return Verdict{is: IsApplied, findings: slices.Clone(findings)}
}

// Partial says that a part of the effect is there.
func Partial(findings ...string) Verdict {
	return Verdict{is: IsPartial, findings: slices.Clone(findings)}
}

// Absent says that nothing of the effect is there.
func Absent(findings ...string) Verdict {
	return Verdict{is: IsAbsent, findings: slices.Clone(findings)}
}

// Unclear says that no answer is possible, and why.
func Unclear(findings ...string) Verdict {
	return Verdict{is: CannotTell, findings: slices.Clone(findings)}
}

// Is returns what was found.
func (v Verdict) Is() Is { return v.is }

// Findings returns what it rests on, one short sentence each.
func (v Verdict) Findings() []string { return slices.Clone(v.findings) }

// Phase is when a verifier looks.
type Phase string

// The phases.
const (
	AfterCall Phase = "call"
	Recovery  Phase = "recovery" // the output may be lost
	AfterUndo Phase = "undo"     // Absent is what is hoped for
)

// Subject is what a verifier is asked about.
type Subject struct {
	Phase     Phase
	Input     json.RawMessage // canonical
	Output    json.RawMessage // canonical form of the tool's result; nil where it is lost
	Changes   []Change
	Notes     map[string]json.RawMessage // what the tool noted
	Resources ResourceView
}

// Change is one recorded effect of the call.
type Change struct {
	Resource string
	Kind     string
	Before   string // version token, "absent" where there was nothing
	After    string // version token
}

// ResourceView reads what is there now, and what was there before the call. It reaches
// only the resources of the call. Methods are safe for concurrent use.
type ResourceView interface {
	// Version returns the version token of a resource now; "absent" where it
	// does not exist.
	Version(ctx context.Context, resource string) (string, error)
	// Open reads the content of a resource now; fs.ErrNotExist where it does
	// not exist.
	Open(ctx context.Context, resource string) (io.ReadCloser, error)
	// Before reads the content that a resource had before the call changed it;
	// fs.ErrNotExist where it did not exist or the call did not change it.
	Before(ctx context.Context, resource string) (io.ReadCloser, error)
}

// Verifier looks at the world. It changes nothing, is safe for concurrent use,
// and answers CannotTell rather than guess.
type Verifier func(ctx context.Context, s Subject) Verdict

// Run calls a verifier on a goroutine of its own. One that panics, or has not
// answered when ctx ends, cannot tell, like no verifier at all.
func Run(ctx context.Context, v Verifier, s Subject) Verdict {
	if v == nil {
		return Verdict{}
	}
	answer := make(chan Verdict, 1)
	go func() {
		var verdict Verdict
		defer func() {
			if p := recover(); p != nil {
				verdict = Unclear(fmt.Sprintf("the verifier panicked (%T)", p))
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
	return Unclear("the time for verifying was up")
}

// Output adapts a check of input against output. It answers only after a call:
// nil from fn is Applied, an error is Absent with the error as its finding. In the
// other phases it leaves All and Any to those that look at the world.
func Output[In, Out any](fn func(in In, out Out) error) Verifier {
	return func(_ context.Context, s Subject) Verdict {
		if s.Phase != AfterCall || s.Output == nil {
			return noOutput()
		}
		var in In
		var out Out
		if err := json.Unmarshal(s.Input, &in); err != nil {
			return Unclear("the input is not of the verifier's type")
		}
		if err := json.Unmarshal(s.Output, &out); err != nil {
			return Unclear("the output is not of the verifier's type")
		}
		if err := fn(in, out); err != nil {
			return Absent(err.Error())
		}
		return Applied()
	}
}

func noOutput() Verdict {
	v := Unclear("only the output could tell, and there is none to look at")
	v.aside = true
	return v
}

// All asks every verifier. Applied needs all of them; Absent needs all of them;
// anything one cannot tell, none can; any other mixture is Partial. Those that
// have nothing to say in a phase, as Output and Unchanged say of themselves, are
// left out, unless there are no others.
func All(vs ...Verifier) Verifier {
	return func(ctx context.Context, s Subject) Verdict {
		asked, findings := ask(ctx, vs, s)
		counts := count(asked)
		v := Verdict{is: IsPartial, findings: findings, aside: aside(asked)}
		switch {
		case len(asked) == 0:
			return Unclear("nothing was asked")
		case counts[IsApplied] == len(asked):
			v.is = IsApplied
		case counts[IsAbsent] == len(asked):
			v.is = IsAbsent
		case counts[CannotTell] > 0:
			v.is = CannotTell
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

// aside reports whether all verdicts are about something else than the effect.
func aside(all []Verdict) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(v Verdict) bool { return !v.aside })
}

func count(all []Verdict) map[Is]int {
	counts := map[Is]int{}
	for _, v := range all {
		counts[v.is]++
	}
	return counts
}

package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/revert/effect"
)

// Any combines verifiers of an effect that shows in one of several places.
// Applied needs one of them; Absent needs all of them. If one cannot tell, the
// result cannot tell, unless another found the effect. Any other mixture is
// Partial. Any leaves out the same verdicts as All.
func Any(vs ...Verifier) Verifier {
	return func(ctx context.Context, s Subject) Verdict {
		asked, findings := ask(ctx, vs, s)
		counts := count(asked)
		v := Verdict{presence: effect.PresencePartial, findings: findings, aside: aside(asked)}
		switch {
		case len(asked) == 0:
			return CannotTell("nothing was asked")
		case counts[effect.PresenceApplied] > 0:
			v.presence = effect.PresenceApplied
		case counts[effect.PresenceAbsent] == len(asked):
			v.presence = effect.PresenceAbsent
		case counts[effect.PresenceUnknown] > 0:
			v.presence = effect.PresenceUnknown
		}
		return v
	}
}

// OutputSchema checks the output against a JSON schema (draft 2020-12, without
// external references). It decides only after a call: Applied if the output is
// valid, else Absent with the violations. It returns an error for a schema that
// does not compile.
func OutputSchema(doc json.RawMessage) (Verifier, error) {
	compiled, err := schema.Compile(doc)
	if err != nil {
		return nil, fmt.Errorf("verify: the output schema: %w", err)
	}
	return func(_ context.Context, s Subject) Verdict {
		if s.Phase != AfterCall || s.Output == nil {
			return noOutput()
		}
		v, err := canon.Parse(s.Output, canon.DefaultLimits())
		if err != nil {
			return Absent("the output is not JSON")
		}
		if err := compiled.ValidateAs("the output", "field", v); err != nil {
			return Absent(err.Error())
		}
		return Applied()
	}, nil
}

// FileContent checks whether a resource has exactly the content that the input
// requests. The function want returns both, the resource as canonical text. It
// decides in every phase. It returns Applied if the content is equal. It
// returns Absent if the resource is missing or as before the call, and Partial
// otherwise.
func FileContent[In any](want func(in In) (resource string, content []byte)) Verifier {
	return func(ctx context.Context, s Subject) Verdict {
		var in In
		if err := json.Unmarshal(s.Input, &in); err != nil {
			return CannotTell("the input is not of the verifier's type")
		}
		if s.Resources == nil {
			return CannotTell("there is no world to look at")
		}
		resource, content := want(in)
		now, err := s.Resources.Open(ctx, resource)
		same, gone, err := compare(now, err, content)
		switch {
		case err != nil:
			return CannotTell("it could not be read: " + err.Error())
		case gone:
			return Absent("it is not there")
		case same && !touched(ctx, s, resource):
			return Absent("it is as it was before, which had the same content")
		case same:
			return Applied()
		}
		return unlike(ctx, s.Resources, resource)
	}
}

// touched reports whether a resource that the call changed has another version
// than before. It is true for a resource that the call did not change: it
// already had the wanted content.
func touched(ctx context.Context, s Subject, resource string) bool {
	first, changed := before(s.Changes, resource)
	last := ""
	for _, c := range s.Changes {
		if c.Resource == resource {
			last = c.After
		}
	}
	if !changed || first == "" || first == last {
		return true
	}
	now, err := s.Resources.Version(ctx, resource)
	return err != nil || now != first
}

// unlike distinguishes a resource that the call did not change from one that is
// neither as before nor as wanted.
func unlike(ctx context.Context, w ResourceView, resource string) Verdict {
	before, err := w.Before(ctx, resource)
	if errors.Is(err, fs.ErrNotExist) {
		return Partial("it is there with other content")
	}
	if err != nil {
		return CannotTell("what was there before could not be read: " + err.Error())
	}
	defer func() { _ = before.Close() }()
	old, err := io.ReadAll(before)
	if err != nil {
		return CannotTell("what was there before could not be read: " + err.Error())
	}
	now, err := w.Open(ctx, resource)
	same, gone, err := compare(now, err, old)
	switch {
	case err != nil:
		return CannotTell("it could not be read: " + err.Error())
	case same && !gone:
		return Absent("it is as it was before")
	default:
		return Partial("it is there with other content")
	}
}

// compare reads only until it finds a difference.
func compare(r io.ReadCloser, err error, want []byte) (same, gone bool, _ error) {
	if errors.Is(err, fs.ErrNotExist) {
		return false, true, nil
	}
	if err != nil {
		return false, false, err
	}
	defer func() { _ = r.Close() }()
	have, err := io.ReadAll(io.LimitReader(r, int64(len(want))+1))
	return err == nil && bytes.Equal(have, want), false, err
}

// Unchanged checks that the call changed none of some resources. It returns
// Applied if none has another version than before, else Partial with the
// changed ones. A resource that the call never changed through a handle has no
// earlier version, and counts as unchanged. So the verdict is about the call,
// not about concurrent changes. Names are canonical text.
//
// It checks what must not happen. If nothing did, it does not show the effect
// itself: within All and Any the others decide. Alone it is Applied after a
// call, Absent after a revert, and cannot tell in recovery.
func Unchanged[In any](names func(in In) []string) Verifier {
	return func(ctx context.Context, s Subject) Verdict {
		var in In
		if err := json.Unmarshal(s.Input, &in); err != nil {
			return CannotTell("the input is not of the verifier's type")
		}
		var changed []string
		for _, name := range names(in) {
			first, touched := before(s.Changes, name)
			if !touched {
				continue
			}
			if s.Resources == nil {
				return CannotTell("there is no world to look at")
			}
			now, err := s.Resources.Version(ctx, name)
			if err != nil || first == "" || now == "" {
				return CannotTell("a version of " + name + " is not known")
			}
			if now != first {
				changed = append(changed, name+" changed")
			}
		}
		if len(changed) > 0 {
			return Partial(changed...)
		}
		return Verdict{presence: untouched(s.Phase), aside: true}
	}
}

func untouched(p Phase) effect.Presence {
	switch p {
	case AfterUndo:
		return effect.PresenceAbsent
	case Recovery:
		return effect.PresenceUnknown
	case AfterCall:
	}
	return effect.PresenceApplied
}

// before returns the version that a resource had before its first change.
func before(changes []Change, resource string) (version string, touched bool) {
	for _, c := range changes {
		if c.Resource == resource {
			return c.Before, true
		}
	}
	return "", false
}

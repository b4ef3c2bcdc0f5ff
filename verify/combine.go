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
)

// Any asks every verifier, for effects that show in one of several places.
// Applied needs one of them; Absent needs all of them; anything one cannot tell,
// none can, unless another found the effect; any other mixture is Partial. What
// All leaves out is left out here too.
func Any(vs ...Verifier) Verifier {
	return func(ctx context.Context, s Subject) Verdict {
		asked, findings := ask(ctx, vs, s)
		counts := count(asked)
		v := Verdict{is: IsPartial, findings: findings, aside: aside(asked)}
		switch {
		case len(asked) == 0:
			return Unclear("nothing was asked")
		case counts[IsApplied] > 0:
			v.is = IsApplied
		case counts[IsAbsent] == len(asked):
			v.is = IsAbsent
		case counts[CannotTell] > 0:
			v.is = CannotTell
		}
		return v
	}
}

// OutputSchema holds the output against a JSON schema (draft 2020-12, which may
// not refer to anything outside itself). It answers only after a call: Applied
// where the output fits, else Absent with what does not. A schema that does not
// compile is an error here, not at the first call.
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

// FileContent looks whether a resource has exactly the content that the input asks
// for; want names both, the resource as canonical text. It answers in every
// phase: Applied where the content is that; Absent where the resource is as it
// was before the call, or not there; Partial where it is something else.
func FileContent[In any](want func(in In) (resource string, content []byte)) Verifier {
	return func(ctx context.Context, s Subject) Verdict {
		var in In
		if err := json.Unmarshal(s.Input, &in); err != nil {
			return Unclear("the input is not of the verifier's type")
		}
		if s.Resources == nil {
			return Unclear("there is no world to look at")
		}
		resource, content := want(in)
		now, err := s.Resources.Open(ctx, resource)
		same, gone, err := compare(now, err, content)
		switch {
		case err != nil:
			return Unclear("it could not be read: " + err.Error())
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

// touched reports whether a resource that the call changed, in more than its
// content perhaps, has another version than before. What the call did not change
// counts as touched: it had what was wanted.
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

// unlike tells a resource that the call left alone from one that is neither what
// it was nor what it should be.
func unlike(ctx context.Context, w ResourceView, resource string) Verdict {
	before, err := w.Before(ctx, resource)
	if errors.Is(err, fs.ErrNotExist) {
		return Partial("it is there with other content")
	}
	if err != nil {
		return Unclear("what was there before could not be read: " + err.Error())
	}
	defer func() { _ = before.Close() }()
	old, err := io.ReadAll(before)
	if err != nil {
		return Unclear("what was there before could not be read: " + err.Error())
	}
	now, err := w.Open(ctx, resource)
	same, gone, err := compare(now, err, old)
	switch {
	case err != nil:
		return Unclear("it could not be read: " + err.Error())
	case same && !gone:
		return Absent("it is as it was before")
	default:
		return Partial("it is there with other content")
	}
}

// compare reads no more than it takes to see a difference.
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

// Unchanged looks whether resources that the call must leave alone are as they
// were: Applied where none has another version than before, else Partial with
// what changed. A resource that the call never changed through a handle has no
// version from before, and counts as unchanged: what is told is what the call
// did, not what others do meanwhile. Names are canonical text.
//
// It is about what must not happen, and so, where nothing did, says nothing of the
// effect itself: within All and Any the others decide. Alone it is Applied after a
// call, Absent after an undo, and cannot tell in recovery.
func Unchanged[In any](names func(in In) []string) Verifier {
	return func(ctx context.Context, s Subject) Verdict {
		var in In
		if err := json.Unmarshal(s.Input, &in); err != nil {
			return Unclear("the input is not of the verifier's type")
		}
		var changed []string
		for _, name := range names(in) {
			first, touched := before(s.Changes, name)
			if !touched {
				continue
			}
			if s.Resources == nil {
				return Unclear("there is no world to look at")
			}
			now, err := s.Resources.Version(ctx, name)
			if err != nil || first == "" || now == "" {
				return Unclear("a version of " + name + " is not known")
			}
			if now != first {
				changed = append(changed, name+" changed")
			}
		}
		if len(changed) > 0 {
			return Partial(changed...)
		}
		return Verdict{is: untouched(s.Phase), aside: true}
	}
}

func untouched(p Phase) Is {
	switch p {
	case AfterUndo:
		return IsAbsent
	case Recovery:
		return CannotTell
	case AfterCall:
	}
	return IsApplied
}

// before is the version that a resource had before the first change of it.
func before(changes []Change, resource string) (version string, touched bool) {
	for _, c := range changes {
		if c.Resource == resource {
			return c.Before, true
		}
	}
	return "", false
}

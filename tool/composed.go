package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
)

// WithParts declares that the tool runs other tools inside its calls. Needs
// bounds what the parts may touch together, and the runtime authorizes only the
// result of AccessFor before a call. If a part is hidden from a session, so is
// the tool. Only this module can call WithParts; see package tool/compose.
func (s Spec) WithParts(k callstate.ModuleKey, parts ...Tool) Spec {
	if k.Valid() {
		s.parts = slices.Clone(parts)
	}
	return s
}

// Sandboxed reports whether the tool only runs a program in the sandbox.
func (s Spec) Sandboxed() bool { return s.sandboxed }

// AdmitPart decodes and validates an input as a call of the tool would. It
// returns the input, the accesses that the call requests before it runs, and
// its effect class. Only this module can call it.
func (t Tool) AdmitPart(k callstate.ModuleKey, input json.RawMessage) (in json.RawMessage, ask []perm.ResourceAccess, class effect.Class, err error) {
	if !k.Valid() || t.t == nil {
		return nil, nil, effect.Pivot, ErrInvalid
	}
	value, err := t.t.read(input, canon.Limits{Bytes: mostBytes, Depth: mostDepth})
	if err != nil {
		return nil, nil, effect.Pivot, fmt.Errorf("%w: tool %s: %w", ErrInvalid, t.Name(), err)
	}
	exact, _, err := t.t.accesses(value)
	if err != nil {
		return nil, nil, effect.Pivot, fmt.Errorf("%w: tool %s: %w", ErrInvalid, t.Name(), err)
	}
	if len(exact) == 0 {
		exact = []perm.ResourceAccess{callAccess(t.Name())}
	}
	in = value.Canonical()
	return in, exact, t.classOf(in), nil
}

// ExecutePart runs the tool's code as a part of a call, and checks the result
// against the tool's output schema. Only this module can call it.
func (t Tool) ExecutePart(ctx context.Context, k callstate.ModuleKey, tc ctxperm.ToolContext, in json.RawMessage) (r Result, err error) {
	if !k.Valid() || t.t == nil {
		return Result{}, ErrInvalid
	}
	defer func() {
		if p := recover(); p != nil {
			r, err = Result{}, fmt.Errorf("tool %s: %w", t.Name(), &panicError{p})
		}
	}()
	if r, err = t.t.spec.Execute(ctx, tc, slices.Clone(in)); err == nil {
		err = r.failure()
	}
	if err == nil && t.t.output != nil {
		var v canon.Value
		if v, err = canon.Parse(r.JSON, canon.DefaultLimits()); err == nil {
			err = t.t.output.ValidateAs("the output", "field", v)
		}
		if err != nil {
			err = fmt.Errorf("the output does not fit the tool's own schema: %w", err)
		}
	}
	return r, err
}

// PartHadNoEffect reports whether a part that failed with err is known to have
// no effect except through handles.
func (t Tool) PartHadNoEffect(class effect.Class, err error) bool {
	var none *noEffectError
	var blocked *blockedError
	var composed *callstate.ComposedError
	switch {
	case t.t == nil, errors.Is(err, callstate.ErrOutcomeUnknown), errors.Is(err, callstate.ErrNotReverted):
		return false
	case class == effect.Pure:
		return true
	case t.t.spec.Confinement == Handles:
		return !reachesOut(t.t.bound)
	case errors.As(err, &composed):
		return composed.Nothing
	default:
		return errors.As(err, &none) || errors.As(err, &blocked)
	}
}

// ForPart returns the context of a part's own Revert. Only this module can call
// it.
func (rc RevertContext) ForPart(k callstate.ModuleKey, tc ctxperm.ToolContext) RevertContext {
	if k.Valid() {
		rc.tc = tc
	}
	return rc
}

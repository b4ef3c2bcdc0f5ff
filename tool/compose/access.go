package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// internals are what package tool hides from tool authors.
var internals = toolaccess.Of[tool.Tool, tool.Spec, tool.Registry, tool.RevertContext]()

var contexts = handleaccess.ContextsOf[ctxperm.ToolContext, ctxperm.Permit]()

// admit decodes and validates an input as a call of the tool would. It returns
// the input, the accesses that the call requests before it runs, and its effect
// class.
func admit(t tool.Tool, input json.RawMessage) (in json.RawMessage, ask []perm.ResourceAccess, class effect.Class, err error) {
	if t.IsZero() {
		return nil, nil, effect.Pivot, tool.ErrInvalid
	}
	a, err := internals.Admit(t, input, canon.Limits{Bytes: toolaccess.MaxBytes, Depth: toolaccess.MaxDepth})
	if err != nil {
		return nil, nil, effect.Pivot, fmt.Errorf("%w: tool %s: %w", tool.ErrInvalid, t.Name(), err)
	}
	if len(a.Exact) == 0 {
		a.Exact = []perm.ResourceAccess{toolaccess.Call(t.Name())}
	}
	return a.Canonical, a.Exact, a.Class, nil
}

// execute runs the tool's code as a part of a call, and checks the result
// against the tool's output schema.
func execute(ctx context.Context, t tool.Tool, tc ctxperm.ToolContext, in json.RawMessage) (r tool.Result, err error) {
	if t.IsZero() {
		return tool.Result{}, tool.ErrInvalid
	}
	defer func() {
		if p := recover(); p != nil {
			r, err = tool.Result{}, fmt.Errorf("tool %s: %w", t.Name(), &callstate.PanicError{Value: p})
		}
	}()
	if r, err = internals.Spec(t).Execute(ctx, tc, slices.Clone(in)); err == nil {
		err = r.Err()
	}
	if err == nil {
		err = internals.Compiled(t).CheckOutput(r.JSON)
	}
	return r, err
}

// hadNoEffect reports whether a part that failed with err is known to have no
// effect except through handles.
func hadNoEffect(t tool.Tool, class effect.Class, err error) bool {
	var none *callstate.NoEffectError
	var blocked *callstate.BlockedError
	var composed *callstate.ComposedError
	switch {
	case t.IsZero(), errors.Is(err, callstate.ErrOutcomeUnknown), errors.Is(err, callstate.ErrNotReverted):
		return false
	case class == effect.Pure:
		return true
	case internals.Spec(t).Confinement == tool.Handles:
		return !toolaccess.ReachesOut(internals.Compiled(t).Bound)
	case errors.As(err, &composed):
		return composed.Nothing
	default:
		return errors.As(err, &none) || errors.As(err, &blocked)
	}
}

package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/perm"
)

var contexts = handleaccess.ContextsOf[ctxperm.ToolContext, ctxperm.Permit]()

// Stateful makes a tool from Go types, as [CreateTyped] does, that holds a
// state for each session. The first call of a session begins with the state
// that begin returns. Every call gets the state that the last one returned, and
// returns the next one. The new state is recorded in the same step as the
// result, and is a change like that of a file. Reverting the call reverts the
// state too. If a later call changed the state, that is a conflict. A call that
// does not end done leaves the state unchanged.
//
// Calls of a session on the tool run one after the other. Another transaction
// of the session is denied, or waits, until the one that used the tool has
// ended. S must survive a round trip through JSON: Stateful refuses an
// interface, a channel, and a field that is not exported or is left out of the
// JSON. begin runs inside the first call and sees the tool's settings. It runs
// again if that call failed or was reverted.
//
// Declare a tool that acts on nothing else with [Effect](effect.Reversible),
// [Confined](Handles).
func Stateful[S, In, Out any](name, description string, needs []perm.ResourceAccess,
	begin func(ctx context.Context, tc ctxperm.ToolContext) (S, error),
	call func(ctx context.Context, tc ctxperm.ToolContext, in In, state S) (Out, S, error), opts ...Option,
) (Tool, error) {
	s, err := specOf[In, Out](name, description, needs)
	if err != nil {
		return Tool{}, err
	}
	if err = schema.CheckRoundTrip(reflect.TypeFor[S]()); err != nil {
		return Tool{}, fmt.Errorf("tool %q: state: %w", name, err)
	}
	s.holds = name
	if begin != nil && call != nil {
		s.Execute = stateful[S, In, Out]{name, begin, call}.execute
	}
	return s.with(opts)
}

type stateful[S, In, Out any] struct {
	name  string
	begin func(context.Context, ctxperm.ToolContext) (S, error)
	call  func(context.Context, ctxperm.ToolContext, In, S) (Out, S, error)
}

func (t stateful[S, In, Out]) execute(ctx context.Context, tc ctxperm.ToolContext, raw json.RawMessage) (Result, error) {
	var in In
	if err := canon.Decode(raw, &in); err != nil {
		return Result{}, NoEffect(err)
	}
	live := contexts.Call(tc)
	if live == nil {
		return Result{}, ctxperm.ErrClosed
	}
	cell, err := live.Cell(ctx, t.name)
	if err != nil {
		return Result{}, NoEffect(fmt.Errorf("the state of the tool: %w", err))
	}
	defer cell.Leave()
	before, err := t.before(ctx, tc, cell)
	if err != nil {
		return Result{}, err
	}
	out, after, err := t.call(ctx, tc, in, before)
	if err != nil {
		return Result{}, err
	}
	content, err := written(after)
	if err != nil {
		return Result{}, fmt.Errorf("the state that the call left: %w", err)
	}
	r, err := resultOf(out)
	if err != nil || r.Err() != nil {
		return r, err
	}
	return r, cell.Set(ctx, content)
}

// before reads the state that the last call left.
func (t stateful[S, In, Out]) before(ctx context.Context, tc ctxperm.ToolContext, cell *callstate.ToolState) (S, error) {
	var s S
	content := cell.Content()
	if content == nil {
		s, err := t.begin(ctx, tc)
		if err != nil {
			return s, fmt.Errorf("the state could not be begun: %w", err)
		}
		return s, nil
	}
	if err := canon.Decode(content, &s); err != nil {
		return s, NoEffect(fmt.Errorf("the state of the session is not of the type that the tool has now: %w; take the calls back that left it, or give the tool another name", err))
	}
	return s, nil
}

// written encodes a state, and checks that it decodes to the same value.
func written[S any](state S) (json.RawMessage, error) {
	content, err := canon.Marshal(state)
	if err != nil {
		return nil, err
	}
	var again S
	if err := canon.Decode(content, &again); err != nil {
		return nil, fmt.Errorf("it cannot be read back: %w", err)
	}
	back, err := canon.Marshal(again)
	if err != nil {
		return nil, fmt.Errorf("it cannot be read back: %w", err)
	}
	if string(back) != string(content) {
		return nil, errors.New("it is read back as something else")
	}
	return content, nil
}

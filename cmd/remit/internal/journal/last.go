package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// lastTxn finds the newest transaction that something is left of, or that nobody
// goes on with, "" where there is none, and the newer calls of others. An undo
// transaction has nothing of its own.
func lastTxn(ctx context.Context, rt *agent.Runtime) (found string, over []passedOver, err error) {
	stop, j := errors.New("found"), rt.Journal()
	err = state.EachTxn(ctx, j, func(id string) error {
		t, err := rt.Load(ctx, id)
		if err != nil {
			return err
		}
		is := t.Undoes+t.Redoes == "" && len(slices.DeleteFunc(t.EffectiveCalls(), beyond))+len(t.HeldCalls()) > 0
		if !is {
			is, err = abandoned(ctx, j, t)
		}
		if is && t.Undoes+t.Redoes != "" { // what it worked on is meant, if it did so here
			of, failed := rt.Load(ctx, t.Undoes+t.Redoes)
			if err = failed; err == nil && slices.Contains(of.UndoneBy, id) {
				id = of.ID
			}
		}
		if err != nil {
			return err
		}
		if !is {
			over = append(over, passedBy(t)...)
			return nil
		}
		found = id
		return stop
	})
	if errors.Is(err, stop) {
		err = nil
	}
	if found == "" {
		over = nil // nothing was chosen before them
	}
	return found, over, err
}

// beyond reports whether a revert of the call can do nothing: its records are erased, or
// all that is left of it is what it did outside the roots that were observed.
func beyond(c *revert.Call) bool {
	switch {
	case c.Phase == revert.PhaseErased:
		return true
	case !c.Observed() || c.Phase == revert.PhaseStarted:
		return false
	case c.Undo == nil || c.Undo.Reverted == nil:
		return len(c.Changes) == 0 && c.Class() == effect.Pure
	}
	return !slices.ContainsFunc(c.Undo.Reverted.Results, func(r effect.Result) bool {
		return !r.Outcome.Clean() && !strings.HasPrefix(r.Resource, "tool://")
	})
}

// lastUndo returns the newest undo of the folders at hand of which a redo can bring
// something back, and "" if there is none.
func lastUndo(ctx context.Context, rt *agent.Runtime) (found string, _ []passedOver, err error) {
	stop := errors.New("found")
	err = state.EachTxn(ctx, rt.Journal(), func(id string) error {
		t, err := rt.Load(ctx, id)
		if err != nil || t.Undoes == "" {
			return err
		}
		for _, of := range append([]string{t.Undoes}, t.AlsoReverts...) {
			subject, err := rt.Load(ctx, of)
			if err != nil {
				return err
			}
			here := slices.Contains(subject.UndoneBy, id)
			if here && (t.End == "" || subject.Redoable(id)) {
				found = id
				return stop
			}
		}
		return nil
	})
	if errors.Is(err, stop) {
		err = nil
	}
	return found, nil, err
}

// abandoned reports whether a transaction keeps others from what it may hold, though
// its process is gone and nothing waits in it.
func abandoned(ctx context.Context, j journal.Journal, t *revert.Txn) (bool, error) {
	waits := func(c *revert.Call) bool { return c.Phase == revert.PhasePending }
	holds := func(c *revert.Call) bool { return c.Started != nil && c.Class() != effect.Pure }
	if t.End != "" || slices.ContainsFunc(t.Calls, waits) {
		return false, nil
	}
	if t.Undoes+t.Redoes == "" && !slices.ContainsFunc(t.Calls, holds) {
		return false, nil
	}
	alive, err := j.Alive(ctx, t.Owner)
	return err == nil && !alive, err
}

// passedOver is a call that is newer than the last transaction with something to take
// back.
type passedOver struct {
	Txn  string `json:"txn"`
	Call string `json:"call"`
	Tool string `json:"tool"`
	Why  string `json:"why"`
}

// passedBy are the calls of a transaction that has nothing to take back.
func passedBy(t *revert.Txn) (over []passedOver) {
	if t.Undoes+t.Redoes != "" {
		return nil
	}
	for _, c := range slices.Backward(t.Calls) {
		over = append(over, passedOver{Txn: t.ID, Call: c.Ref.Call, Tool: c.Tool.Name, Why: nothingOf(c)})
	}
	return over
}

// nothingOf says why there is nothing to take back of a call.
func nothingOf(c *revert.Call) string {
	switch {
	case c.Phase == revert.PhaseErased:
		return "its records were erased"
	case c.IsReverted():
		return "it was taken back already"
	case c.Phase == revert.PhasePending:
		return "it waits for approval"
	case c.Observed() && c.Undo != nil:
		return "what was observed of it was taken back already; the rest is unknown"
	case c.Observed() && c.Phase == revert.PhaseDone:
		return "nothing was observed; its tool says that it only reads"
	case c.Phase == revert.PhaseDone:
		return "it changed nothing"
	case c.Phase == revert.PhaseFailed:
		return "it failed, and nothing of it is left"
	default:
		return "it is " + string(c.Phase)
	}
}

// mostPassed is how many calls that were passed over are named.
const mostPassed = 5

// writePassed names the newer calls that --last passed over.
func writePassed(p cli.Style, w io.Writer, over []passedOver, at *state.Workspace) {
	for _, c := range over[:min(len(over), mostPassed)] {
		_, _ = fmt.Fprintf(w, "%s passed over: call %s of %s, %s: %s\n", p.Doubt("·"), c.Call, c.Txn, cli.Printable(c.Tool), c.Why)
	}
	if n := len(over) - mostPassed; n > 0 {
		_, _ = fmt.Fprintf(w, "%s passed over: %s more; %s lists them\n", p.Doubt("·"), cli.Count(n, "newer call"), at.Hint("log"))
	}
}

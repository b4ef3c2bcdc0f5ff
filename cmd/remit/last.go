package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// lastTxn finds the newest transaction that something is left of, or that nobody
// goes on with, "" where there is none, and the newer calls of others. An undo
// transaction has nothing of its own.
func lastTxn(ctx context.Context, rt *agent.Runtime) (found string, over []passedOver, err error) {
	stop, j := errors.New("found"), rt.Journal()
	err = eachTxn(ctx, j, func(id string) error {
		t, err := rt.Load(ctx, id)
		if err != nil {
			return err
		}
		erased := func(c *revert.Call) bool { return c.Phase == revert.PhaseErased } // no way back is left
		is := t.Undoes+t.Redoes == "" && len(slices.DeleteFunc(t.Left(), erased))+len(t.Queue()) > 0
		if !is {
			is, err = abandoned(ctx, j, t)
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

// lastUndo returns the newest undo that no redo followed, and "" if there is none.
func lastUndo(ctx context.Context, rt *agent.Runtime) (found string, _ []passedOver, err error) {
	stop, again := errors.New("found"), map[string]bool{} // transactions, and undos, that a redo brought back since
	err = eachTxn(ctx, rt.Journal(), func(id string) error {
		t, err := rt.Load(ctx, id)
		switch {
		case err != nil:
			return err
		case t.Redoes != "" && t.Only != "":
			again[t.Only] = true
		case t.Redoes != "":
			again[t.Redoes] = true
		case t.Undoes != "" && !again[id] && !again[t.Undoes]:
			found = id
			return stop
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
	case c.Undone():
		return "it was taken back already"
	case c.Phase == revert.PhasePending:
		return "it waits for approval"
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

// passed names the newer calls that --last passed over.
func (p paint) passed(w io.Writer, over []passedOver) {
	for _, c := range over[:min(len(over), mostPassed)] {
		_, _ = fmt.Fprintf(w, "%s passed over: call %s of %s, %s: %s\n", p.doubt("·"), c.Call, c.Txn, printable(c.Tool), c.Why)
	}
	if n := len(over) - mostPassed; n > 0 {
		_, _ = fmt.Fprintf(w, "%s passed over: %s more; remit log lists them\n", p.doubt("·"), count(n, "newer call"))
	}
}

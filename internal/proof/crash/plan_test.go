package crash_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// plan is one transaction and the steps after it. A committed one is reverted
// and redone; an aborted one is redone.
type plan struct {
	calls []callKind
	abort bool
}

func (p plan) String() string {
	var names []string
	for _, k := range p.calls {
		names = append(names, k.name)
	}
	end := "commit"
	if p.abort {
		end = "abort"
	}
	return strings.Join(names, ",") + "/" + end
}

// stage is the progress of a client.
type stage uint8

const (
	calling stage = iota
	committing
	aborting
	committed // and the client knows it
	aborted
	reverting
	revertEnded
	redoing
	redone
)

// clientView is the knowledge of a client at some time.
type clientView struct {
	txn   string
	calls []tool.Status // of the ended calls
	stage stage

	partial bool // not all was reverted

	settled []revert.RecoveredCall // results of recoveries
}

func (t clientView) key() string {
	key := fmt.Sprint(t.calls, t.stage, t.partial)
	for _, s := range t.settled {
		key += s.Call + string(s.Outcome)
	}
	return key
}

func (t clientView) clone() clientView {
	t.calls, t.settled = slices.Clone(t.calls), slices.Clone(t.settled)
	return t
}

// live runs the plan in its own process, from the beginning to the end. It
// calls seen after each change of the world.
func (p plan) live(w *simState, seen func(what string, t clientView)) error {
	var t clientView
	rt, ctx, err := w.process()
	if err != nil {
		return err
	}
	w.watch(func(what string) { seen(what, t.clone()) })
	defer w.watch(nil)
	defer func() { _ = rt.Close() }()
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		return err
	}
	tx, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	t.txn = tx.ID()
	for i, k := range p.calls {
		out, err := tx.Invoke(ctx, k.tool, k.input(i))
		if err == nil != out.Status.OK() {
			return fmt.Errorf("call %d is %s, with the error %w", i, out.Status, err)
		}
		t.calls = append(t.calls, out.Status)
		seen("told", t.clone())
	}
	return p.end(ctx, rt, tx, &t, seen)
}

func (k callKind) input(i int) any {
	if k.args == nil {
		return tagOf(i)
	}
	return k.args
}

// tagOf returns the tag of a call outside handles.
func tagOf(i int) string { return fmt.Sprint("n", i) }

// end ends the transaction, reverts it and redoes it, as the plan says.
func (p plan) end(ctx context.Context, rt *agent.Runtime, tx *agent.Txn, t *clientView, seen func(string, clientView)) error {
	step := func(now, then stage, do func() (revert.Report, error)) error {
		last := t.stage
		t.stage = now
		rep, err := do()
		if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
			return fmt.Errorf("at stage %d: %w", now, err)
		}
		t.reported(rep, last, then)
		seen("told", t.clone())
		return nil
	}
	if p.abort {
		if err := step(aborting, aborted, func() (revert.Report, error) { return tx.Revert(ctx, revert.Options{}) }); err != nil {
			return err
		}
	} else {
		if err := step(committing, committed, func() (revert.Report, error) { return revert.Report{}, tx.Commit(ctx) }); err != nil {
			return err
		}
		if err := step(reverting, revertEnded, func() (revert.Report, error) { return rt.Revert(ctx, t.txn, revert.Options{}) }); err != nil {
			return err
		}
	}
	return step(redoing, redone, func() (revert.Report, error) { return rt.Redo(ctx, t.txn, "coder") })
}

// reported applies a report. If it says that there was nothing to do, the stage
// stays. A partial redo is neither undone nor redone.
func (t *clientView) reported(rep revert.Report, last, then stage) {
	switch {
	case t.stage == redoing && len(rep.Items) == 0, t.stage == reverting && rep.State == revert.TxnCommitted && len(rep.Items) == 0:
		then = last
	case t.stage == redoing && rep.State != revert.TxnCommitted:
		then = redoing
	default:
		t.partial = rep.State == revert.TxnRevertedPartial
	}
	t.stage = then
}

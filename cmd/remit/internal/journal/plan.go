package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
)

// Plan is what a revert of the newest work would do, as a person saw it.
type Plan struct {
	IDs    []string // transactions, in the order of their revert
	Digest string
	AtWork bool // a coding agent still works on a prompt; nothing was planned
	Some   bool // the revert changes something
}

// newestWork selects what remit revert reverts without an ID.
func newestWork() undoTarget { return undoTarget{target: target{last: true}, count: 1} }

func planOptions(a *cli.App) revert.Options {
	return revert.Options{By: userName(a), Overlaps: true}
}

// WritePlan writes what remit revert would do without an ID, as its --preview
// does. It changes nothing: if a coding agent still works on a prompt, the plan
// says so, and a person ends the prompt first.
func WritePlan(ctx context.Context, a *cli.App, p *state.Workspace, rt *agent.Runtime) (Plan, error) {
	work, err := promptAtWork(ctx, rt)
	if err != nil {
		return Plan{}, err
	}
	if work != nil {
		_, err := fmt.Fprintln(a.Out, "an agent still works on this:\n\n  "+promptWords(work))
		return Plan{AtWork: true}, err
	}
	var plan Plan
	var reps []revert.Report
	how, which := planOptions(a), newestWork()
	err = which.parts(ctx, rt, func(one part) error {
		r := revertRun{which: which.target, saw: func(rep revert.Report) { reps = append(reps, rep) }}
		if one.id != "" {
			plan.IDs = append(plan.IDs, one.id)
		}
		return r.runPart(ctx, a, p, rt, one, how, true)
	})
	if err != nil {
		return Plan{}, err
	}
	for _, rep := range reps {
		for _, i := range rep.Items {
			plan.Some = plan.Some || i.Outcome.Applies()
		}
	}
	text, err := json.Marshal(struct {
		IDs  []string
		Reps []revert.Report
	}{plan.IDs, reps})
	plan.Digest = string(canon.SumBytes(text))
	return plan, err
}

// ErrPlanChanged is returned if a revert would do something else than the person
// saw.
var ErrPlanChanged = errors.New("the plan has changed")

// RevertAs reverts what a plan says, and writes the reports as remit revert
// does. It returns ErrPlanChanged, and reverts nothing, if the plan is another
// one now.
func RevertAs(ctx context.Context, a *cli.App, p *state.Workspace, rt *agent.Runtime, saw Plan) error {
	silent := *a
	silent.Out = io.Discard
	now, err := WritePlan(ctx, &silent, p, rt)
	if err != nil {
		return err
	}
	if now.Digest != saw.Digest {
		return ErrPlanChanged
	}
	var undone []undonePart
	for _, id := range saw.IDs {
		r := revertRun{undone: &undone}
		if err = r.runPart(ctx, a, p, rt, part{id: id}, planOptions(a), false); err != nil {
			break
		}
	}
	writeRedoHint(a, p, undone)
	return err
}

// promptAtWork returns a prompt that a running process follows and that did
// something, nil if there is none.
func promptAtWork(ctx context.Context, rt *agent.Runtime) (*revert.Prompt, error) {
	open, err := rt.Journal().Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range open {
		t, err := rt.Load(ctx, o.Txn)
		if err != nil {
			return nil, err
		}
		if callview.AtWork(ctx, rt.Journal(), t) && len(t.EffectiveCalls()) > 0 {
			return t.Prompt, nil
		}
	}
	return nil, nil
}

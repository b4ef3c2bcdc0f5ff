package revert

import (
	"context"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/host"
)

// CauseRedo is the cause of a Reverting that takes an undo back.
const CauseRedo = "redo"

// Redo brings back what taking a transaction back had removed: an undo is itself
// made of changes, and this takes those back, oldest call first, by the same
// rules. What a tool's own Revert did cannot be done again and is reported as
// failed. Afterwards the transaction can be reverted once more, and what was left
// alone brought back by another redo. By names who asks,
// for the record.
func (r *Reverter) Redo(ctx context.Context, id, by string) (Report, error) {
	t, err := Load(ctx, r.Journal, id)
	if err != nil {
		return Report{}, err
	}
	if about := t.Undoes + t.Redoes; about != "" {
		return Report{}, fmt.Errorf("transaction %s worked on %s: %w", id, about, ErrUndo)
	}
	leave, err := r.enter(id)
	if err != nil {
		return Report{}, err
	}
	defer leave()
	if t.End == "" {
		return Report{}, fmt.Errorf("transaction %s has not ended: %w", id, ErrBusy)
	}
	rec, found, err := r.unfinished(ctx, t)
	if err != nil {
		return Report{Txn: id}, err
	}
	if found != nil && found.Undoes != "" {
		if t, err = r.endLink(ctx, rec, t); err != nil {
			return Report{Txn: id}, err
		}
		found = nil
	}
	return r.redo(ctx, t, rec, by, found != nil)
}

func (r *Reverter) redo(ctx context.Context, t *Txn, rec Recorder, by string, going bool) (Report, error) {
	rep := Report{Txn: t.ID, Items: []Item{}}
	if !going {
		if len(t.undone()) == 0 {
			rep.State = t.State()
			if t.End != "" && allErased(t.Calls) {
				return rep, noWayBack(t, t.Calls[0])
			}
			return rep, nil
		}
		var err error
		if rec, err = r.beginLink(ctx, t, &Begun{Redoes: t.ID}); err != nil {
			return rep, err
		}
	}
	w, err := r.Ways(ctx, t.Session)
	if err != nil {
		return rep, err
	}
	for _, c := range t.undone() {
		if err := context.Cause(ctx); err != nil {
			return rep, err
		}
		results, err := r.redoCall(ctx, w, rec, c, by)
		if err != nil {
			return rep, err
		}
		for _, res := range results {
			rep.Items = append(rep.Items, Item{Call: c.Ref.Call, Tool: c.Tool.Name, Result: res})
		}
	}
	if err := rec.Write(ctx, Write{Lines: []Line{{Body: &Committed{}}}, End: true, Durable: true}); err != nil {
		return rep, err
	}
	rep.Undo = rec.Txn()
	t, err = Load(ctx, r.Journal, t.ID)
	if err == nil {
		rep.State = t.State()
	}
	return rep, err
}

// redoCall takes the undo of one call back. The order of writes is that of
// takeBackCall, and so is what a crash does to it.
func (r *Reverter) redoCall(ctx context.Context, w Ways, rec Recorder, c *Call, by string) ([]Result, error) {
	ctx = context.WithoutCancel(ctx)
	if err := w.settleSteps(ctx, c.Redo); err != nil {
		return nil, err
	}
	steps, blobs, err := r.plan(ctx, w, c.taken(), manner{}, r.Journal)
	if err != nil {
		return nil, err
	}
	id := host.NewID(r.Host, "c_")
	if c.Redo != nil {
		id = c.Redo.Call
	}
	key := UndoKey(c.Undo.Reverting.Key)
	reverting := &Reverting{Of: c.Ref, Key: key, Cause: CauseRedo, By: by, Steps: steps}
	if err := r.writeReverting(ctx, rec, id, reverting, blobs); err != nil {
		return nil, err
	}
	results := []Result{}
	if c.outside {
		results = append(results, Result{Resource: c.toolResource(), Outcome: UndoFailed, Why: "what the tool's Revert did is not done again; call the tool"})
	}
	for _, s := range reverting.Steps {
		results = append(results, r.applyStep(ctx, w, s))
	}
	end := &Reverted{Of: c.Ref, Results: results, Complete: TakenBack(results) == "all"}
	return results, rec.Write(ctx, Write{Lines: []Line{{Call: id, Body: end}}, Durable: true})
}

// taken lists the changes with which a call was taken back, in all attempts, and
// numbered anew. What an attempt did that died, the next one found done already.
func (c *Call) taken() []Change {
	var out []Change
	add := func(s Step) {
		s.Change.N = len(out) + 1
		out = append(out, s.Change)
	}
	lost := map[string]Step{} // by resource: what a dead attempt was going to do
	for _, u := range c.attempts() {
		if !u.byPerson() {
			continue
		}
		outcome := map[string]UndoOutcome{}
		if u.Reverted != nil {
			for _, r := range u.Reverted.Results {
				outcome[r.Resource] = r.Outcome
			}
		}
		for _, s := range u.Reverting.Steps {
			resource := s.Change.Resource
			switch {
			case u.Reverted == nil && s.Plan == Restored:
				lost[resource] = s
			case outcome[resource] == Restored:
				add(s)
				delete(lost, resource)
			case outcome[resource] == Already && lost[resource].Plan == Restored:
				add(lost[resource])
				delete(lost, resource)
			}
		}
	}
	return out
}

// broughtBack folds the end of a redo into the call. Of what is there again the
// versions tell from here on, as before the undo; what is not can still be brought
// back.
func (c *Call) broughtBack(b *Reverted) {
	c.Redo = nil
	if b.Complete || c.Undo == nil {
		c.Undo, c.earlier = nil, slices.DeleteFunc(c.earlier, (*Undo).byPerson)
		return
	}
	again := map[string]bool{}
	for _, r := range b.Results {
		again[r.Resource] = r.Outcome.Clean()
	}
	for i, u := range c.earlier {
		if u.byPerson() {
			c.earlier[i] = u.without(again)
		}
	}
	c.Undo = c.Undo.without(again)
}

// without is an undo that did not touch some resources.
func (u *Undo) without(again map[string]bool) *Undo {
	rest := *u
	rest.Reverting.Steps = slices.DeleteFunc(slices.Clone(u.Reverting.Steps), func(s Step) bool { return again[s.Change.Resource] })
	if u.Reverted != nil && len(rest.Reverting.Steps) < len(u.Reverting.Steps) {
		end := *u.Reverted
		end.Complete = false
		end.Results = slices.DeleteFunc(slices.Clone(end.Results), func(r Result) bool { return again[r.Resource] })
		rest.Reverted = &end
	}
	return &rest
}

// attempts lists all takings back of the call, oldest first.
func (c *Call) attempts() []*Undo {
	if c.Undo == nil {
		return c.earlier
	}
	return append(slices.Clone(c.earlier), c.Undo)
}

// remaining lists the changes that no attempt has taken back yet. What became of
// the others since is no business of the call: calls below it may be gone as well.
func (c *Call) remaining() []Change {
	clean := map[string]bool{}
	for _, u := range c.attempts() {
		if u.Reverted == nil {
			continue
		}
		for _, r := range u.Reverted.Results {
			clean[r.Resource] = clean[r.Resource] || r.Outcome.Clean()
		}
	}
	return slices.DeleteFunc(slices.Clone(c.Changes), func(ch Change) bool { return clean[ch.Resource] })
}

// undone lists the calls that were taken back with their transaction, in the
// reverse of the order in which that is done. What a failed call took back by itself stays so.
func (t *Txn) undone() []*Call {
	var out []*Call
	for _, c := range slices.Backward(t.Calls) {
		if c.Phase == PhaseDone && c.Undo != nil && c.Undo.Reverted != nil && c.Undo.byPerson() && (c.outside || len(c.taken()) > 0) {
			out = append(out, c)
		}
	}
	out = undoOrder(out)
	slices.Reverse(out)
	return out
}

// byPerson reports whether somebody asked for the transaction to be undone:
// anything else belongs to what the transaction did.
func (u *Undo) byPerson() bool {
	return u.Reverting.Cause == "abort" || u.Reverting.Cause == "undo"
}

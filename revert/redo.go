package revert

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// causeRedo is the cause of a Reverting record that reverts a revert.
const causeRedo = "redo"

// Redo applies again what the revert of a transaction removed. A revert is
// itself made of changes: Redo reverts these, oldest call first, by the same
// rules. It reports effects of a tool's own Revert as failed, because they
// cannot be repeated. The transaction can then be reverted again, and another
// redo can apply what was left alone. by names the requester for the record.
//
// The ID of a revert transaction identifies what that one reverted, in all its
// transactions. If a later one reverted more of the same calls, it must be
// redone first.
func (r *Reverter) Redo(ctx context.Context, id, by string) (Report, error) {
	subjects, only, err := r.redoable(ctx, id)
	if err != nil {
		return Report{}, err
	}
	t := subjects[0]
	leave, err := r.acquire(t.ID)
	if err != nil {
		return Report{}, err
	}
	defer leave()
	var rec Recorder
	going := false
	for _, s := range subjects {
		if s.End == "" {
			return Report{}, fmt.Errorf("transaction %s has not ended, so nothing of it is reverted: %w", s.ID, ErrNotEnded)
		}
		link, found, err := r.unfinished(ctx, s)
		switch {
		case err != nil:
			return Report{Txn: t.ID}, err
		case found == nil:
		case found.Redoes == t.ID && found.Only == only:
			rec, going = link, true
		default:
			if _, err = r.endLink(ctx, link, found, s); err != nil {
				return Report{Txn: t.ID}, err
			}
		}
	}
	return r.redo(ctx, subjects, only, rec, by, going)
}

// redoable finds the transactions to redo, the named one first. only is the
// revert transaction to redo, if it is not all of them.
func (r *Reverter) redoable(ctx context.Context, id string) (subjects []*Txn, only string, err error) {
	t, err := r.Load(ctx, id)
	if err != nil {
		return nil, "", err
	}
	ids := []string{id}
	if about := t.Reverts + t.Redoes; about != "" {
		if t.Reverts == "" {
			return nil, "", fmt.Errorf("transaction %s worked on %s: %w", id, about, ErrIsRevertTxn)
		}
		only, ids = id, t.subjects()
	}
	for _, subject := range ids {
		s := t
		if subject != id {
			if s, err = r.Load(ctx, subject); err != nil {
				return nil, "", err
			}
		}
		if err := s.checkHere(only); err != nil {
			return nil, "", err
		}
		for _, c := range s.Calls {
			if later := c.takenAfter(only); only != "" && later != "" {
				return nil, "", fmt.Errorf("after %s, call %s was reverted by %s too; redo that one first: %w", only, c.Ref.Call, later, ErrIsRevertTxn)
			}
		}
		subjects = append(subjects, s)
	}
	return subjects, only, nil
}

func (r *Reverter) redo(ctx context.Context, subjects []*Txn, only string, rec Recorder, by string, going bool) (Report, error) {
	rep := Report{Txn: subjects[0].ID, Items: []ResourceResult{}}
	if err := r.reload(ctx, subjects); err != nil {
		return rep, err
	}
	t := subjects[0]
	begun, left := &record.Begun{Redoes: t.ID, Only: only}, 0
	for _, s := range subjects {
		left += len(s.revertedCalls(only))
		if s != t {
			begun.Also = append(begun.Also, s.ID)
		}
	}
	if !going {
		if left == 0 {
			rep.State = t.State()
			if t.End != "" && allErased(t.Calls) {
				return rep, errErasedTxn(t, t.Calls[0])
			}
			return rep, r.barrier(ctx)
		}
		err := r.reachable(ctx, subjects...)
		for _, s := range subjects {
			if err == nil {
				_, err = r.neighbors(ctx, s, s.revertedCalls(only))
			}
		}
		if err == nil {
			rec, err = r.beginLink(ctx, t, begun)
		}
		if err != nil {
			return rep, err
		}
		// Another process may have been faster, before the claims were ours.
		if err = r.reload(ctx, subjects); err != nil {
			return rep, err
		}
	}
	// Earlier transactions first: their dependent calls began later.
	m := revertMode{cause: causeRedo, by: by, kept: map[string]string{}}
	ordered := slices.SortedStableFunc(slices.Values(subjects), func(a, b *Txn) int { return a.Began.Compare(b.Began) })
	come := map[record.CallRef]bool{}
	for _, s := range ordered {
		for _, c := range s.revertedCalls(only) {
			come[c.Ref] = true
		}
	}
	for _, s := range ordered {
		if err := r.redoCalls(ctx, s, come, only, rec, m, &rep); err != nil {
			return rep, err
		}
	}
	//mutant:barrier
	if err := rec.Write(ctx, Write{Records: []CallRecord{{Body: &record.Committed{}}}, End: true, Durable: true}); err != nil {
		return rep, err
	}
	rep.RevertTxn = rec.Txn()
	err := r.reload(ctx, subjects)
	if err == nil {
		rep.State = subjects[0].State()
	}
	return rep, err
}

// reachable checks that transactions have an environment before anything is
// written: otherwise a revert or a redo stays open.
func (r *Reverter) reachable(ctx context.Context, txns ...*Txn) error {
	for _, t := range txns {
		if _, err := r.EnvironmentFor(ctx, t.Session); err != nil {
			return err
		}
	}
	return nil
}

// reload looks at transactions again, in place.
func (r *Reverter) reload(ctx context.Context, txns []*Txn) error {
	for i, t := range txns {
		fresh, err := r.latest(ctx, t)
		if err != nil {
			return err
		}
		txns[i] = fresh
	}
	return nil
}

func (r *Reverter) redoCalls(ctx context.Context, t *Txn, come map[record.CallRef]bool, only string, rec Recorder, m revertMode, rep *Report) error {
	w, err := r.EnvironmentFor(ctx, t.Session)
	if err != nil {
		return err
	}
	undone := t.revertedCalls(only)
	beside, err := r.neighbors(ctx, t, undone)
	if err != nil {
		return err
	}
	for _, c := range undone {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		m.upon = beside.obstaclesTo(c, come)
		results, steps, err := r.redoCall(ctx, w, rec, c, only, m)
		if err != nil {
			return err
		}
		m.keep(c, results)
		first := len(rep.Items)
		for _, res := range results {
			item := ResourceResult{Call: c.Ref.Call, Tool: c.Tool.Name, Result: res}
			if t.ID != rep.Txn {
				item.Txn = t.ID
			}
			rep.Items = append(rep.Items, item)
		}
		m.addChanges(rep.Items[first:], steps)
	}
	return nil
}

// redoCall reverts the revert of one call. It writes in the order of
// revertOneCall, so a crash has the same consequences.
func (r *Reverter) redoCall(ctx context.Context, w Environment, rec Recorder, c *Call, only string, m revertMode) ([]effect.Result, []effect.Step, error) {
	ctx = context.WithoutCancel(ctx)
	if err := w.settleTries(ctx, c); err != nil {
		return nil, nil, err
	}
	m.merges = m.merges.of(c, true)
	steps, blobs, err := r.plan(ctx, w, c.revertChanges(only), m, r.Journal)
	if err != nil {
		return nil, nil, err
	}
	id := host.NewID(r.Host, "c_")
	if c.Redo != nil {
		id = c.Redo.Call
	}
	key := RevertKey(c.Reversal.Reverting.Key)
	reverting := &record.Reverting{Of: c.Ref, Key: key, Cause: causeRedo, By: m.by, Steps: steps}
	if err := r.writeReverting(ctx, rec, id, reverting, blobs); err != nil {
		return nil, nil, err
	}
	results := []effect.Result{}
	if c.outside {
		results = append(results, effect.Result{Resource: c.toolResource(), Outcome: effect.Failed, Why: "a redo does not undo the tool's Revert; call the tool again"})
	}
	applied := r.applySteps(ctx, w, reverting.Steps)
	lines := r.states(w, c, reverting.Steps, applied)
	results = append(results, applied...)
	lines = append(lines, CallRecord{Call: id, Body: &record.Reverted{Of: c.Ref, Results: results, Complete: RevertSummary(results) == "all"}})
	//mutant:barrier
	return results, reverting.Steps, rec.Write(ctx, Write{Records: lines, Durable: true})
}

// revertChanges returns the changes with which a call was reverted, in all attempts,
// numbered anew. A change of an attempt that died is one that the next attempt
// found done.
func (c *Call) revertChanges(only string) []effect.Change {
	var out []effect.Change
	add := func(s effect.Step) {
		s.Change.N = len(out) + 1
		out = append(out, s.Change)
	}
	lost := map[string]effect.Step{} // by resource: the planned step of a dead attempt
	for _, u := range c.attempts() {
		if !u.redoneBy(only) {
			continue
		}
		outcome := map[string]effect.Outcome{}
		if u.Reverted != nil {
			for _, r := range u.Reverted.Results {
				outcome[r.Resource] = r.Outcome
			}
		}
		for _, s := range u.Reverting.Steps {
			resource := s.Change.Resource
			switch {
			case u.Reverted == nil && s.Plan.Applies():
				lost[resource] = s
			case outcome[resource].Applies():
				add(s)
				delete(lost, resource)
			case outcome[resource] == effect.Already && lost[resource].Plan.Applies():
				add(lost[resource])
				delete(lost, resource)
			}
		}
	}
	return out
}

// applyRedo folds the end of a redo into the call. For redone resources the
// versions decide from here on, as before the revert. The others can still be
// redone.
func (c *Call) applyRedo(b *record.Reverted, only string) {
	c.Redo = nil
	if b.Complete || c.Reversal == nil {
		rest := slices.DeleteFunc(c.attempts(), func(u *Reversal) bool { return u.redoneBy(only) || u.byPerson() && u.revertedNothing() })
		c.Reversal, c.earlier = nil, rest
		if n := len(rest); n > 0 {
			c.Reversal, c.earlier = rest[n-1], rest[:n-1]
		}
		return
	}
	again, doubt := map[string]bool{}, map[string]bool{}
	for _, r := range b.Results {
		again[r.Resource] = r.Outcome.Clean()
		if r.Resource != c.toolResource() && (r.Outcome == effect.Failed || r.Outcome == effect.Unknown) {
			doubt[r.Resource] = true
		}
	}
	for i, u := range c.earlier {
		if u.redoneBy(only) {
			c.earlier[i] = u.without(again).withDoubt(doubt)
		}
	}
	c.Reversal = c.Reversal.without(again).withDoubt(doubt)
}

// withDoubt returns a revert of which a failed redo may have redone some
// resources: it failed there before or after the change. These resources can be
// reverted if they are redone, and can be redone if they are not. Their
// versions decide at that time.
func (u *Reversal) withDoubt(doubt map[string]bool) *Reversal {
	u.doubt = maps.Clone(u.doubt)
	for _, s := range u.Reverting.Steps {
		if resource := s.Change.Resource; doubt[resource] {
			if u.doubt == nil {
				u.doubt = map[string]bool{}
			}
			u.doubt[resource] = true
		}
	}
	return u
}

// endDoubt folds the end of a revert into the earlier ones. If it restored a
// resource, the redo had redone that resource. If it found a resource already
// restored, the redo had not.
func (c *Call) endDoubt(b *record.Reverted) {
	for i, u := range c.earlier {
		back, rest := map[string]bool{}, maps.Clone(u.doubt)
		for _, r := range b.Results {
			if u.doubt[r.Resource] && r.Outcome.Clean() {
				back[r.Resource] = r.Outcome.Applies()
				delete(rest, r.Resource)
			}
		}
		if len(back) > 0 {
			c.earlier[i] = u.without(back)
			c.earlier[i].doubt = rest
		}
	}
}

// without returns a revert that did not touch some resources. It completes
// nothing then, even if an earlier one had reverted those.
func (u *Reversal) without(again map[string]bool) *Reversal {
	rest := *u
	rest.Reverting.Steps = slices.DeleteFunc(slices.Clone(u.Reverting.Steps), func(s effect.Step) bool { return again[s.Change.Resource] })
	if u.Reverted != nil && slices.Contains(slices.Collect(maps.Values(again)), true) {
		end := *u.Reverted
		end.Complete = false
		end.Results = slices.DeleteFunc(slices.Clone(end.Results), func(r effect.Result) bool { return again[r.Resource] })
		rest.Reverted = &end
	}
	return &rest
}

// attempts returns all reverts of the call, oldest first.
func (c *Call) attempts() []*Reversal {
	if c.Reversal == nil {
		return slices.Clone(c.earlier)
	}
	return append(slices.Clone(c.earlier), c.Reversal)
}

// Remaining returns the changes of the call that are not reverted.
func (c *Call) Remaining() []effect.Change { return c.remaining() }

// remaining returns the changes that no attempt has reverted yet. Later changes
// of the others do not concern the call: calls below it may be reverted as
// well.
func (c *Call) remaining() []effect.Change {
	clean := c.cleared()
	return slices.DeleteFunc(slices.Clone(c.Changes), func(ch effect.Change) bool { return clean[ch.Resource] })
}

// revertedCalls returns the calls that were reverted with their transaction, by the
// revert transaction only if it is named. They are in the reverse of the order
// of the revert. What a failed call reverted by itself stays reverted. What a
// person reverted of a call that failed, or of which the outcome is unknown, is
// redone like any other: its content is kept.
func (t *Txn) revertedCalls(only string) []*Call {
	var out []*Call
	for _, c := range slices.Backward(t.Calls) {
		ended := c.Phase == PhaseDone || c.Phase == PhaseFailed || c.Phase == PhaseUnknown
		if ended && c.Reversal != nil && c.Reversal.Reverted != nil && (c.outside && c.Reversal.redoneBy(only) || len(c.revertChanges(only)) > 0) {
			out = append(out, c)
		}
	}
	out = revertOrder(out)
	slices.Reverse(out)
	return out
}

// byPerson reports whether a person asked for the revert. Any other revert
// belongs to the transaction itself.
func (u *Reversal) byPerson() bool {
	return u.Reverting.Cause == "abort" || u.Reverting.Cause == "revert"
}

// redoneBy reports whether a redo restores what this revert removed. A redo
// covers all that a person asked to revert, or only one revert transaction.
func (u *Reversal) redoneBy(only string) bool {
	return u.byPerson() && (only == "" || u.Txn == only)
}

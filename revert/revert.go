package revert

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Options selects the calls to revert and how to treat conflicts. The zero
// value reverts the whole transaction and leaves conflicting resources
// unchanged.
type Options struct {
	// Calls are the only calls to revert, with their dependent calls in the
	// same transaction. Empty: all.
	Calls []string
	// Resources are the only resources to revert, with everything below them
	// and what they cannot be reverted without: a folder around them that a
	// call removed, and the other end of a move. Other effects of the calls
	// stay, also those that a tool's own Revert reverts. Empty: all.
	Resources []string
	// Cascade also reverts dependent calls of other ended transactions. Without
	// it their changes are conflicts that name them.
	Cascade bool
	// Force overwrites conflicting versions, and needs By: the record names who
	// wanted it. Each overwritten version is stored first, so Redo can restore it. Force does not overwrite content of a folder to be removed,
	// or resources that an open transaction claims.
	Force bool
	// By names the requester for the record. Required with Force.
	By string
	// NoMerge leaves a file alone that another actor changed at other lines.
	// Without it, a revert keeps those lines, and reverts the lines of the call.
	NoMerge bool
	// Overlaps adds to the report the texts of the lines that a call and another
	// actor both changed. An agent that may not read the file must not see them.
	Overlaps bool
	// Permit decides about each call before it is reverted. After an error the
	// call is left alone, and the report has the error's text. asking is false
	// in a preview, which asks no person. Use it for an agent that reverts by
	// itself: see Session.MayRevert of package agent. nil permits every call.
	Permit func(ctx context.Context, c Call, asking bool) error
	// PermitMerge decides about each merge of a file that a call changed. After
	// an error the file is a conflict with the error's text. See
	// Session.MayMerge of package agent. nil permits every merge.
	PermitMerge func(ctx context.Context, c Call, resource string) error
}

func (u Options) mode(cause string) revertMode {
	m := revertMode{
		cause: cause, by: u.By, force: u.Force, permit: once(u.Permit),
		merges: merging{never: u.NoMerge, permit: u.PermitMerge},
	}
	if u.Overlaps {
		m.overlaps = map[string][]effect.Overlap{}
	}
	return m
}

// once wraps permit so that it asks about each call at most once.
func once(permit func(ctx context.Context, c Call, asking bool) error) func(ctx context.Context, c Call, asking bool) error {
	if permit == nil {
		return nil
	}
	said := map[string]error{}
	return func(ctx context.Context, c Call, asking bool) error {
		if _, asked := said[c.Ref.Call]; !asked {
			said[c.Ref.Call] = permit(ctx, c, asking)
		}
		return said[c.Ref.Call]
	}
}

// allRefused returns the items of calls if all of them are refused. It returns
// none if one is permitted, or if that cannot be determined.
func (m revertMode) allRefused(ctx context.Context, calls []*Call) (items []ResourceResult) {
	m = m.begun()
	for _, c := range calls {
		if c.Phase == PhaseErased || c.unclear() {
			return nil
		}
		results := m.refused(ctx, c, true)
		if len(results) == 0 {
			return nil
		}
		for _, res := range results {
			items = append(items, ResourceResult{Call: c.Ref.Call, Tool: c.Tool.Name, Result: res})
		}
	}
	return items
}

// begun returns the mode for a revert that has found no obstacle yet.
func (m revertMode) begun() revertMode {
	m.frozen, m.kept, m.gone = map[string]string{}, map[string]string{}, map[string]string{}
	if m.upon = maps.Clone(m.upon); m.upon == nil {
		m.upon = map[string][]dependentNote{}
	}
	return m
}

// refused returns the results of a call that Permit refuses. Its changes then
// block calls before it.
func (m revertMode) refused(ctx context.Context, c *Call, asking bool) []effect.Result {
	if m.permit == nil {
		return nil
	}
	err := m.permit(ctx, *c, asking)
	if err == nil {
		return nil
	}
	var out []effect.Result
	told := map[string]bool{} // by resource: a call can have changed many thousands
	for _, ch := range m.only.remaining(c) {
		if !told[ch.Resource] {
			told[ch.Resource] = true
			out = append(out, effect.Result{Resource: ch.Resource, Outcome: effect.Failed, Why: err.Error()})
			on := dependentNote{why: "a later call, " + c.Ref.Call + ", changed it and must not be reverted; revert that call first", left: c.versionLeft(ch.Resource)}
			m.upon[ch.Resource] = append(m.upon[ch.Resource], on)
		}
	}
	if len(out) == 0 {
		out = []effect.Result{{Resource: c.toolResource(), Outcome: effect.Failed, Why: err.Error()}}
	}
	return out
}

// Revert reverts a transaction or calls of it. id is the ID of a transaction, or
// of a call that replaces how.Calls. The transaction must be abandoned or
// committed; the work happens in a new revert transaction. Revert lists the
// resources that conflict, fail or are unknown, and leaves them alone. It
// reverts the rest. Repeating it does nothing twice. The ID of an unfinished
// revert transaction identifies the transaction that it reverts. If another
// goroutine or a living process, including this one, works on the transaction,
// the error is ErrBusy; the owner uses Abort. If how limits the revert
// of an open transaction to calls or resources, it stays open.
//
// ctx ends the work between two calls. A call that has begun is completed.
func (r *Reverter) Revert(ctx context.Context, id string, how Options) (Report, error) {
	if how.Force && how.By == "" {
		return Report{}, errors.New("a forced revert needs Options.By: the record names who overwrote")
	}
	t, how, err := r.find(ctx, id, how, r.loadCalls)
	if err != nil {
		return Report{}, err
	}
	id = t.ID
	leave, err := r.acquire(id)
	if err != nil {
		return Report{}, err
	}
	defer leave()
	if t, err = r.latest(ctx, t); err != nil { // again, now that no other goroutine works on it
		return Report{}, err
	}
	rep, err := r.revertEnded(ctx, t, how)
	return rep.withHosts(t, how), err
}

// revertEnded reverts a transaction that no living process owns.
func (r *Reverter) revertEnded(ctx context.Context, t *Txn, how Options) (Report, error) {
	if t.End != "" {
		return r.revertTxn(ctx, t, how)
	}
	if t.mayRemainElsewhere() {
		return r.revertElsewhere(ctx, t, how)
	}
	t, err := r.adopt(ctx, t)
	if err != nil {
		return Report{}, err
	}
	return r.abort(ctx, t, how)
}

// find finds the transaction to revert, and reads it with load: as far as the
// revert of how.Calls needs it, or all.
func (r *Reverter) find(ctx context.Context, id string, how Options, load func(ctx context.Context, id string, calls []string) (*Txn, error)) (*Txn, Options, error) {
	t, err := load(ctx, id, how.Calls)
	if errors.Is(err, journal.ErrNotFound) {
		var txn string
		if txn, err = TxnOf(ctx, r.Journal, id); err == nil {
			t, err = load(ctx, txn, []string{id})
		}
		if err == nil {
			how.Calls = []string{id}
			if _, ok := t.Call(id); !ok { // it is a revert
				err = journal.ErrNotFound
			}
		}
	}
	if errors.Is(err, journal.ErrNotFound) {
		err = fmt.Errorf("transaction or call %s: %w", id, journal.ErrNotFound)
	}
	if err != nil {
		return nil, how, err
	}
	for _, c := range how.Calls {
		if _, ok := t.Call(c); !ok {
			return nil, how, fmt.Errorf("call %s of transaction %s: %w", c, t.ID, journal.ErrNotFound)
		}
	}
	about := t.Reverts + t.Redoes // at most one of them is set
	switch {
	case about == "":
		return t, how, nil
	case t.End != "" || how.limited():
		return nil, how, fmt.Errorf("transaction %s worked on %s: %w", t.ID, about, ErrIsRevertTxn)
	}
	of, err := r.Load(ctx, about)
	if err == nil {
		err = of.checkHere(id)
	}
	if err != nil {
		return nil, how, err
	}
	return r.find(ctx, about, how, load)
}

// revertTxn reverts calls of an ended transaction in a revert transaction: the
// unfinished one of an earlier attempt whose process died, or a new one.
func (r *Reverter) revertTxn(ctx context.Context, t *Txn, how Options) (Report, error) {
	rep := Report{Txn: t.ID} // t is nil after a failed read
	link, t, err := r.resumed(ctx, t)
	if err != nil {
		return rep, err
	}
	seen := newSeenChanges()
	s, err := r.scope(ctx, t, how, nil, seen)
	if err != nil {
		return Report{Txn: t.ID}, err
	}
	m := how.mode("revert")
	m.only = s.only
	if link.Txn() == "" {
		if items := m.allRefused(ctx, s.calls); len(items) > 0 || len(s.calls) == 0 { // nothing is reverted, and the journal records nothing
			return r.unchanged(ctx, t, append([]ResourceResult{}, items...))
		}
		if allErased(s.calls) {
			return Report{Txn: t.ID, State: t.State(), Items: []ResourceResult{}}, errErasedTxn(t, s.calls[0])
		}
		err = r.reachable(ctx, slices.Collect(maps.Values(s.txns))...)
		if err == nil {
			link, err = r.beginRevertTxn(ctx, t, s)
		}
		if err != nil {
			return Report{Txn: t.ID}, err
		}
	}
	// Another process may have been faster, before the claims were ours.
	if t, err = r.latest(ctx, t); err == nil {
		s, err = r.scope(ctx, t, how, &link, seen)
	}
	rep.RevertTxn = link.Txn()
	if err != nil {
		return rep, err
	}
	m.upon, m.only = s.upon, s.only
	if rep.Items, err = r.revertCalls(ctx, link, s.calls, m); err != nil {
		return rep, err // the link stays unfinished, and the next attempt continues it
	}
	for i, item := range rep.Items {
		if c := s.call(item.Call); c.Ref.Txn != t.ID {
			rep.Items[i].Txn = c.Ref.Txn
		}
	}
	//mutant:barrier
	if err := link.Write(ctx, Write{Records: []CallRecord{{Body: &record.Committed{}}}, End: true, Durable: true}); err != nil {
		return rep, err
	}
	if t, err = r.latest(ctx, t); err == nil { // its state can differ from that of these calls
		rep.State, err = r.stateOf(ctx, t)
	}
	return rep, err
}

// unchanged is the end of a revert that reverts nothing.
func (r *Reverter) unchanged(ctx context.Context, t *Txn, items []ResourceResult) (Report, error) {
	rep := Report{Txn: t.ID, Items: items}
	var err error
	if rep.State, err = r.stateOf(ctx, t); err != nil {
		return rep, err
	}
	return rep, r.barrier(ctx)
}

// barrier makes durable what was read. Its writer may have died before its
// barrier, and a caller who learns that nothing is left to do relies on it.
func (r *Reverter) barrier(ctx context.Context) error {
	//mutant:barrier
	return r.Journal.Append(ctx, journal.Batch{Durable: true})
}

// beginRevertTxn begins a revert transaction for all transactions of a scope. It
// includes what an attempt of another process left in the others.
func (r *Reverter) beginRevertTxn(ctx context.Context, t *Txn, s scope) (Recorder, error) {
	var also []string
	for _, id := range slices.Sorted(maps.Keys(s.txns)) {
		if id == t.ID {
			continue
		}
		rec, _, err := r.resumed(ctx, s.txns[id])
		if err == nil && rec.Txn() != "" {
			err = rec.Write(ctx, Write{Records: []CallRecord{{Body: &record.Committed{}}}, End: true}) // as in endLink
		}
		if err != nil {
			return Recorder{}, err
		}
		also = append(also, id)
	}
	return r.beginLink(ctx, t, &record.Begun{Reverts: t.ID, Also: also})
}

// resumed finds the revert transaction of an attempt that did not end. It ends
// an unfinished redo first, and reads t again.
func (r *Reverter) resumed(ctx context.Context, t *Txn) (Recorder, *Txn, error) {
	rec, found, err := r.unfinished(ctx, t)
	if err != nil || found == nil || found.Redoes == "" {
		return rec, t, err
	}
	t, err = r.endLink(ctx, rec, found, t)
	return Recorder{}, t, err
}

func reportOf(txn, undo string, items []ResourceResult) Report {
	rep := Report{Txn: txn, RevertTxn: undo, State: TxnReverted, Items: items}
	if len(rep.NotReverted()) > 0 {
		rep.State = TxnRevertedPartial
	}
	return rep
}

// revertCalls reverts calls in the given order. If a call with an unknown outcome
// may have touched a resource, revertCalls leaves that resource unchanged in the
// calls after it, because the correct version is unknown.
func (r *Reverter) revertCalls(ctx context.Context, rec Recorder, calls []*Call, m revertMode) ([]ResourceResult, error) {
	items, ways := []ResourceResult{}, map[string]Environment{}
	m = m.begun()
	for _, c := range calls {
		if err := context.Cause(ctx); err != nil {
			return items, err
		}
		w, ok := ways[c.Session]
		if !ok {
			var err error
			if w, err = r.EnvironmentFor(ctx, c.Session); err != nil {
				return items, err
			}
			ways[c.Session] = w
		}
		var results []effect.Result
		var steps []effect.Step
		var err error
		if c.Phase == PhaseErased {
			results = []effect.Result{c.erasedResult()}
		} else if c.unclear() {
			results = m.only.results(freeze(c, m.frozen))
		} else if results = m.refused(ctx, c, true); len(results) > 0 {
			steps = nil // none of it has begun
		} else if results, steps, err = r.revertOneCall(ctx, w, rec, c, m); err != nil {
			return items, err
		}
		m.keep(c, results)
		first := len(items)
		for _, res := range results {
			items = append(items, ResourceResult{Call: c.Ref.Call, Tool: c.Tool.Name, Result: res})
		}
		m.addChanges(items[first:], steps)
	}
	return items, nil
}

// force plans conflicting steps again, as if the current version were the one
// that the call left. The overwritten version is stored like any other.
func force(ctx context.Context, s Scheme, changes []effect.Change, steps []effect.Step, blobs []journal.Blob, keep journal.ContentStore) ([]effect.Step, []journal.Blob, error) {
	for i, step := range steps {
		if step.Plan != effect.Conflict {
			continue
		}
		var own []effect.Change
		for _, c := range changes {
			if slices.Contains(step.Of, c.N) {
				own = append(own, c)
			}
		}
		if len(own) == 0 {
			continue
		}
		last := &own[len(own)-1]
		now, err := s.Settle(ctx, *last)
		if err != nil {
			steps[i].Why += "; it could not be overwritten: " + err.Error()
			continue
		}
		if !now.Known() {
			continue // it stays a conflict
		}
		last.Post = now
		again, kept, err := s.Plan(ctx, own, keep)
		if err != nil {
			return nil, nil, err
		}
		if len(again) != 1 || again[0].Plan != effect.Restored {
			continue
		}
		if k, ok := s.(interface{ Keeps(s effect.Step) bool }); ok && !k.Keeps(again[0]) {
			steps[i].Why += "; not overwritten, because the current version could not be restored later"
			continue
		}
		again[0].Forced = true
		steps[i], blobs = again[0], append(blobs, kept...)
	}
	return steps, blobs, nil
}

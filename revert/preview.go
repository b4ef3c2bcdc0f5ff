package revert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/sparse"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// ErrInFlight is returned if calls have no end on the journal. Recover recovers
// them first.
var ErrInFlight = errors.New("the transaction has in-flight calls; run recover first")

// Preview returns what Revert would do now. It writes neither resources nor the
// journal. It returns one item for each resource, and for each call with
// effects outside handles. The report's State is the current state of the
// transaction.
func (r *Reverter) Preview(ctx context.Context, id string, how Options) (Report, error) {
	t, how, err := r.find(ctx, id, how, r.loadAll)
	if err != nil {
		return Report{}, err
	}
	if t.End == "" && t.mayRemainElsewhere() {
		t.abandonInFlight()
	} else if len(t.InFlight()) > 0 {
		return Report{}, fmt.Errorf("transaction %s: %w", t.ID, ErrInFlight)
	}
	s, err := r.scope(ctx, t, how, nil, newSeenChanges())
	if err != nil {
		return Report{}, err
	}
	m := how.mode("revert")
	m.upon, m.only = s.upon, s.only
	m = m.begun()
	rep := Report{Txn: t.ID, State: t.State(), Items: []ResourceResult{}, Dependents: s.dependents(t, how)}
	if t.End == "" {
		for _, c := range t.HeldCalls() {
			if !c.HasEffects() && how.drops(c) {
				rep.Items = append(rep.Items, c.droppedItem())
			}
		}
	}
	var known []*Call
	for _, c := range s.calls {
		if c.Phase == PhaseErased {
			rep.add(t, c, c.erasedResult())
			continue
		}
		if c.unclear() {
			rep.add(t, c, m.only.results(freeze(c, m.frozen))...)
			continue
		}
		if results := m.refused(ctx, c, false); results != nil {
			rep.add(t, c, results...)
			m.keep(c, results)
			continue
		}
		known = append(known, c)
	}
	err = r.preview(ctx, known, m, t, &rep)
	return rep.withHosts(t, how), err
}

func (r *Report) add(t *Txn, c *Call, results ...effect.Result) {
	for _, res := range results {
		item := ResourceResult{Call: c.Ref.Call, Tool: c.Tool.Name, Result: res}
		if c.Ref.Txn != t.ID {
			item.Txn = c.Ref.Txn
		}
		r.Items = append(r.Items, item)
	}
}

// preview plans all changes of several calls at once. It judges a resource as
// it is after the dependent calls are reverted. All calls share one namespace,
// so the transaction's environment serves all of them.
func (r *Reverter) preview(ctx context.Context, calls []*Call, m revertMode, t *Txn, rep *Report) error {
	w, err := r.EnvironmentFor(ctx, t.Session)
	if err != nil {
		return err
	}
	var made []positionedChange
	for _, c := range calls {
		if !m.leaves(ctx, w, c) {
			rep.add(t, c, c.predictOutside(ctx, w)...)
		}
		for _, ch := range m.only.remaining(c) {
			made = append(made, positionedChange{ch, c, c.at[ch.N-1]})
		}
	}
	slices.SortFunc(made, func(a, b positionedChange) int { return cmp.Compare(a.at, b.at) })
	changes := make([]effect.Change, len(made))
	for i := range made {
		changes[i] = made[i].change
		changes[i].N = i + 1
	}
	m.merges.calls = func(of []int) (some []*Call) {
		for _, n := range of {
			if c := made[n-1].call; !slices.Contains(some, c) {
				some = append(some, c)
			}
		}
		return some
	}
	steps, _, err := r.plan(ctx, w, changes, m, readOnlyJournal{r.Journal})
	if err != nil {
		return err
	}
	for _, s := range steps {
		last := made[slices.Max(s.Of)-1].call
		n := len(rep.Items)
		rep.add(t, last, effect.Result{Resource: s.Change.Resource, Outcome: s.Plan, Now: s.Change.Pre, Forced: s.Forced, Why: s.Why})
		if s.Plan.Applies() {
			rep.Items[n].Action = s.Change.Kind
		}
		if s.Plan == effect.Conflict {
			rep.Items[n].Overlaps = m.overlaps[s.Change.Resource]
		}
	}
	return nil
}

// positionedChange is a change with its call and its position on the journal.
type positionedChange struct {
	change effect.Change
	call   *Call
	at     int64
}

// predictOutside predicts the result for a call's effects outside handles.
func (c *Call) predictOutside(ctx context.Context, w Environment) []effect.Result {
	can, why := false, "no tools are available"
	if w.ToolReverter != nil {
		can, why = w.ToolReverter.CanRevert(ctx, *c)
	}
	outcome, needed := c.outsideOutcome(can)
	if !needed {
		return nil
	}
	res := effect.Result{Resource: c.toolResource(), Outcome: outcome}
	switch outcome {
	case effect.Failed:
		res.Why = c.noCompensation(why)
	case effect.Unknown:
		res.Why = c.unknownEffects()
	case effect.Restored, effect.Already, effect.Conflict, effect.Merged:
	}
	return []effect.Result{res}
}

// readOnlyJournal is a journal that stores nothing.
type readOnlyJournal struct{ journal.Journal }

// StoreContent reads the content for its digest.
func (l readOnlyJournal) StoreContent(_ context.Context, r io.Reader) (journal.Blob, error) {
	h := canon.NewHash() // like a real journal: content with zeros has its own digest
	if _, err := sparse.Copy(h, r, make([]byte, journal.InlineMax)); err != nil {
		return journal.Blob{}, err
	}
	return journal.StoredBlob(effect.BlobRef{Digest: string(h.Digest()), Size: h.Size()}), nil
}

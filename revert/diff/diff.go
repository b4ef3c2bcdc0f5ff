package diff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Viewer is an optional interface of a revert.Scheme that shows its changes.
type Viewer interface {
	// View returns the versions before and after a change. A ResourceVersion
	// without a type means that the resource did not exist.
	View(c effect.Change) (before, after ResourceVersion, err error)
	// Now returns the current version.
	Now(ctx context.Context, resource string) (ResourceVersion, error)
	// Open opens the current content.
	Open(ctx context.Context, resource string) (io.ReadCloser, error)
}

// Source holds the inputs of a diff.
type Source struct {
	Journal journal.Journal
	// EnvironmentFor returns the environment of a session, as in
	// revert.Reverter.
	EnvironmentFor func(ctx context.Context, session string) (revert.Environment, error)
}

// Diff holds the effects of a transaction or a call.
type Diff struct {
	Txn       string          // the transaction, or that of the call
	Call      string          // "" for a whole transaction
	State     revert.TxnState // of the transaction
	Deltas    []Delta         // by the time of their first change
	Untracked []UntrackedCall // effects that no difference of resources shows
	Held      []UntrackedCall // calls that wait for the commit: they have had no effect yet
	Erased    []string        // calls with erased records
}

// Delta is one resource that differs from before.
type Delta struct {
	Resource      string
	Calls         []string // that changed it, in order
	Before, After ResourceVersion
}

// UntrackedCall is a call that had, or may have had, effects outside handles.
type UntrackedCall struct {
	Call  string
	Tool  string
	Class effect.Class
}

// positionedChange is a change with its position on the journal.
type positionedChange struct {
	pos    int64
	change effect.Change
	call   string
}

// Of returns the diff of a transaction or a call. id can also identify a revert
// or a redo, or a call in one. The diff does not contain what the transaction
// reverted itself, such as failed calls and calls after a savepoint. If another
// actor changed a resource between two calls, it has two Deltas.
func (s Source) Of(ctx context.Context, id string) (Diff, error) {
	t, calls, d, err := s.find(ctx, id)
	if err != nil {
		return d, err
	}
	var effects []positionedChange
	if calls == nil {
		effects, d.Erased, err = s.revertedChanges(ctx, t, d.Call)
	} else {
		effects, err = s.done(ctx, t, calls)
		d.Untracked, d.Held, d.Erased = untrackedCalls(calls), held(t, calls), erased(calls)
	}
	if err != nil {
		return d, err
	}
	w, err := s.EnvironmentFor(ctx, t.Session)
	if err != nil {
		return d, err
	}
	if d.Deltas, err = deltas(w, effects); err != nil || len(effects) == 0 {
		return d, err
	}
	return d, s.fill(ctx, w, d.Deltas, effects[0].pos)
}

// find finds the transaction and the calls of an ID. It returns no calls for a
// revert or a redo.
func (s Source) find(ctx context.Context, id string) (*revert.Txn, []*revert.Call, Diff, error) {
	t, c, err := revert.LoadCall(ctx, s.Journal, id)
	if err == nil {
		return t, []*revert.Call{c}, Diff{Txn: t.ID, Call: id, State: t.State()}, nil
	}
	if !errors.Is(err, journal.ErrNotFound) {
		return nil, nil, Diff{}, err
	}
	d, txn := Diff{}, id
	for e, err := range s.Journal.Entries(ctx, journal.Query{Call: id, Kinds: []record.Kind{record.KindReverting}, Limit: 1}) {
		if err != nil {
			return nil, nil, d, err
		}
		txn, d.Call = e.Header.Txn, id
	}
	t, err = revert.Load(ctx, s.Journal, txn)
	if errors.Is(err, journal.ErrNotFound) {
		err = fmt.Errorf("transaction or call %s: %w", id, journal.ErrNotFound)
	}
	if err != nil {
		return nil, nil, d, err
	}
	d.Txn, d.State = t.ID, t.State()
	if d.Call != "" || t.Reverts+t.Redoes != "" {
		return t, nil, d, nil
	}
	return t, slices.Concat([]*revert.Call{}, t.Calls), d, nil
}

// done returns the effects of calls, without those that their transaction
// reverted.
func (s Source) done(ctx context.Context, t *revert.Txn, calls []*revert.Call) ([]positionedChange, error) {
	var out []positionedChange
	of := map[string]*revert.Call{}
	for _, c := range calls {
		of[c.Ref.Call] = c
	}
	n := map[string]int{}
	for e, err := range s.Journal.Entries(ctx, journal.Query{Txn: t.ID, Kinds: []record.Kind{record.KindChanged}}) {
		if err != nil {
			return nil, err
		}
		c, ok := of[e.Header.Call]
		if !ok || n[c.Ref.Call] == len(c.Changes) { // of a tool's own Revert
			continue
		}
		ch := c.Changes[n[c.Ref.Call]] // with the version that it actually left
		n[c.Ref.Call]++
		if !dropped(c, ch.Resource) {
			out = append(out, positionedChange{e.Pos, ch, c.Ref.Call})
		}
	}
	return out, nil
}

// dropped reports whether a call's transaction reverted its change of a
// resource itself, or proved that there was none.
func dropped(c *revert.Call, resource string) bool {
	if c.Reversal == nil {
		return c.Phase == revert.PhaseFailed
	}
	switch c.Reversal.Reverting.Cause {
	case "abort", "revert":
		return false // a person asked for it; the diff still shows what the call did
	}
	return c.Reversal.Reverted != nil && slices.ContainsFunc(c.Reversal.Reverted.Results, func(r effect.Result) bool {
		return r.Resource == resource && r.Outcome.Clean()
	})
}

// revertedChanges returns the changes of a revert or a redo to resources: of its whole
// transaction, or of one call.
func (s Source) revertedChanges(ctx context.Context, t *revert.Txn, call string) (out []positionedChange, erased []string, err error) {
	begun := map[string]*record.Reverting{}
	for e, err := range s.Journal.Entries(ctx, journal.Query{Txn: t.ID, Call: call}) {
		if err != nil {
			return nil, nil, err
		}
		if e.Erased != "" {
			if !slices.Contains(erased, e.Header.Call) {
				erased = append(erased, e.Header.Call)
			}
			continue
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return nil, nil, err
		}
		switch b := rec.Body.(type) {
		case *record.Reverting:
			begun[rec.Call] = b
		case *record.Changed:
			if begun[rec.Call] != nil {
				out = append(out, positionedChange{e.Pos, b.Change, rec.Call})
			}
		case *record.Reverted:
			for _, step := range restored(begun[rec.Call], b) {
				out = append(out, positionedChange{e.Pos, step.Change, rec.Call})
			}
		}
	}
	return out, erased, nil
}

func erased(calls []*revert.Call) []string {
	var out []string
	for _, c := range calls {
		if c.Phase == revert.PhaseErased {
			out = append(out, c.Ref.Call)
		}
	}
	return out
}

func restored(begun *record.Reverting, ended *record.Reverted) (steps []effect.Step) {
	if begun == nil {
		return nil
	}
	did := map[string]bool{}
	for _, r := range ended.Results {
		did[r.Resource] = r.Outcome.Applies()
	}
	for _, step := range begun.Steps {
		if step.Plan.Applies() && did[step.Change.Resource] {
			steps = append(steps, step)
		}
	}
	return steps
}

func untrackedCalls(calls []*revert.Call) []UntrackedCall {
	var out []UntrackedCall
	for _, c := range calls {
		if c.Phase != revert.PhaseErased && c.HasEffects() && !c.Confined() && c.Class() != effect.Pure {
			out = append(out, UntrackedCall{Call: c.Ref.Call, Tool: c.Tool.Name, Class: c.Class()})
		}
	}
	return out
}

func held(t *revert.Txn, calls []*revert.Call) []UntrackedCall {
	var out []UntrackedCall
	for _, c := range t.HeldCalls() {
		if slices.Contains(calls, c) && !c.HasEffects() {
			out = append(out, UntrackedCall{Call: c.Ref.Call, Tool: c.Tool.Name, Class: c.Class()})
		}
	}
	return out
}

// changeRun is a part of a resource's history without changes by other actors.
type changeRun struct{ effects []positionedChange }

// takes adds an effect that starts from a version of the run. Later effects
// were recorded and did not happen, or were reverted in between.
func (r *changeRun) takes(e positionedChange) bool {
	for i := len(r.effects) - 1; i >= 0; i-- {
		if r.effects[i].change.Post.Same(e.change.Pre) {
			r.effects = append(r.effects[:i+1:i+1], e)
			return true
		}
	}
	if len(r.effects) > 0 && r.effects[0].change.Pre.Same(e.change.Pre) {
		r.effects = []positionedChange{e}
		return true
	}
	return false
}

func runs(effects []positionedChange) []*changeRun {
	slices.SortStableFunc(effects, func(a, b positionedChange) int { return cmp.Compare(a.pos, b.pos) })
	var all []*changeRun
	last := map[string]*changeRun{}
	for _, e := range effects {
		if e.change.Pre.Same(e.change.Post) {
			continue
		}
		if r := last[e.change.Resource]; r != nil && r.takes(e) {
			continue
		}
		r := &changeRun{effects: []positionedChange{e}}
		last[e.change.Resource], all = r, append(all, r)
	}
	return all
}

func deltas(w revert.Environment, effects []positionedChange) ([]Delta, error) {
	var out []Delta
	for _, r := range runs(effects) {
		first, last := r.effects[0], r.effects[len(r.effects)-1]
		if first.change.Pre.Same(last.change.Post) {
			continue
		}
		d := Delta{Resource: first.change.Resource}
		for _, e := range r.effects {
			if !slices.Contains(d.Calls, e.call) {
				d.Calls = append(d.Calls, e.call)
			}
		}
		v, ok := viewer(w, first.change.Scheme)
		if !ok {
			d.Before, d.After = bare(first.change.Pre), bare(last.change.Post)
			out = append(out, d)
			continue
		}
		var err error
		if d.Before, _, err = v.View(first.change); err == nil {
			_, d.After, err = v.View(last.change)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Resource, err)
		}
		out = append(out, d)
	}
	return out, nil
}

func viewer(w revert.Environment, scheme string) (Viewer, bool) {
	for _, s := range w.Schemes {
		if s.Name() == scheme {
			v, ok := s.(Viewer)
			return v, ok
		}
	}
	return nil, false
}

// bare returns the version that is known without a Viewer.
func bare(t effect.Token) ResourceVersion {
	if t == effect.Absent {
		return ResourceVersion{Token: t}
	}
	return ResourceVersion{Token: t, Type: "resource"}
}

package revert

import (
	"context"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/host"
)

// ErrBusy is returned when a transaction belongs to a process that is still alive.
var ErrBusy = errors.New("it belongs to a living process")

// Reverter takes calls and transactions back and settles what a dead process
// left behind. Its fields are set once; its methods are safe for concurrent use
// on different transactions, and the journal's fences keep two reverters of one
// transaction apart.
type Reverter struct {
	Journal Journal
	Host    host.Host
	// Ways finds what is needed to take back the calls of one session: it may
	// be one of another process, on other roots.
	Ways func(ctx context.Context, session string) (Ways, error)
}

// Ways are the means of taking calls back.
type Ways struct {
	Schemes []Scheme
	Undoer  Undoer // nil: no tool can be found, so only handle changes are undone
	Prober  Prober // nil: nothing can be told but by versions
}

// UndoKey is the key under which a call is taken back; the same for each
// attempt, so that a service can tell a repeat.
func UndoKey(key string) string { return string(canon.Sum("remit/undo-key/v1", []byte(key))) }

// Revert takes a whole transaction back: an open one that this opening of the
// journal owns or whose owner is gone, or one that has committed, through a new
// undo transaction. What conflicts, fails or is unknown is left alone and
// listed; the rest is undone. Reverting again does nothing twice.
//
// ctx ends the work between two calls; what is begun is finished.
func (r *Reverter) Revert(ctx context.Context, id string) (Report, error) {
	t, err := Load(ctx, r.Journal, id)
	if err != nil {
		return Report{}, err
	}
	if t.End != "" {
		return r.undo(ctx, t)
	}
	if t.Owner != r.Journal.Owner() {
		if t, err = r.adopt(ctx, t); err != nil {
			return Report{}, err
		}
	}
	return r.abort(ctx, t)
}

// RevertTo takes back what a transaction did after a savepoint; it stays open.
func (r *Reverter) RevertTo(ctx context.Context, id, savepoint string) (Report, error) {
	t, err := Load(ctx, r.Journal, id)
	if err != nil {
		return Report{}, err
	}
	at, ok := t.mark(savepoint)
	if !ok {
		return Report{}, fmt.Errorf("savepoint %q of transaction %s: %w", savepoint, id, ErrNotFound)
	}
	rec := r.recorder(t).In(t.ID)
	items, err := r.takeBack(ctx, rec, t, at, "savepoint")
	if err != nil {
		return Report{Txn: id, State: Open, Items: items}, err
	}
	rep := Report{Txn: id, State: Open, Items: items}
	err = rec.Write(ctx, Write{Lines: []Line{{Body: &RevertedTo{Name: savepoint, Complete: rep.Complete()}}}, Durable: true})
	return rep, err
}

// TakeBack takes one call of an open transaction back, for a call that failed
// or did not verify.
func (r *Reverter) TakeBack(ctx context.Context, rec Recorder, call, cause string) ([]Result, error) {
	t, err := Load(ctx, r.Journal, rec.Txn())
	if err != nil {
		return nil, err
	}
	c, ok := t.Call(call)
	if !ok {
		return nil, fmt.Errorf("call %s: %w", call, ErrNotFound)
	}
	w, err := r.Ways(ctx, c.Session)
	if err != nil {
		return nil, err
	}
	return r.takeBackCall(ctx, w, rec, c, cause, nil)
}

// abort ends an open transaction by taking it back.
func (r *Reverter) abort(ctx context.Context, t *Txn) (Report, error) {
	rec := r.recorder(t).In(t.ID)
	if err := r.settleCalls(ctx, rec, t); err != nil {
		return Report{}, err
	}
	// Aborting needs no barrier of its own: the first reverting record makes it
	// durable, and without one nothing was done.
	if !t.Aborting {
		if err := rec.Write(ctx, Write{Lines: []Line{{Body: &Aborting{Why: "revert"}}}}); err != nil {
			return Report{}, err
		}
	}
	items, err := r.takeBack(ctx, rec, t, 0, "abort")
	if err != nil {
		return Report{}, err
	}
	rep := Report{Txn: t.ID, State: RevertedState, Items: items}
	if !rep.Complete() {
		rep.State = RevertedPartial
	}
	end := Write{Lines: []Line{{Body: &Aborted{Complete: rep.Complete()}}}, End: true, Durable: true}
	return rep, rec.Write(ctx, end)
}

// undo takes an ended transaction back by an undo transaction: the unfinished
// one of an earlier attempt whose process died, or a new one.
func (r *Reverter) undo(ctx context.Context, t *Txn) (Report, error) {
	rep := Report{Txn: t.ID, State: RevertedState, Items: []Item{}}
	if len(t.Left()) == 0 {
		return rep, nil
	}
	undo, err := r.beginUndo(ctx, t)
	if err != nil {
		return Report{}, err
	}
	rep.Undo = undo.Txn()
	if rep.Items, err = r.takeBack(ctx, undo, t, 0, "undo"); err != nil {
		return rep, err
	}
	if !rep.Complete() {
		rep.State = RevertedPartial
	}
	return rep, undo.Write(ctx, Write{Lines: []Line{{Body: &Committed{}}}, End: true, Durable: true})
}

func (r *Reverter) beginUndo(ctx context.Context, t *Txn) (Recorder, error) {
	if n := len(t.UndoneBy); n > 0 {
		last, err := Load(ctx, r.Journal, t.UndoneBy[n-1])
		if err != nil {
			return Recorder{}, err
		}
		if last.End == "" {
			if last.Owner != r.Journal.Owner() {
				if last, err = r.adopt(ctx, last); err != nil {
					return Recorder{}, err
				}
			}
			return r.recorder(last).In(last.ID), nil
		}
	}
	id := host.NewID(r.Host, "t_")
	rec := r.recorder(t).In(id)
	owner := r.Journal.Owner()
	// Both lines in one batch: an undo transaction that its subject does not
	// know of could not be found again.
	return rec, rec.Write(ctx, Write{
		Lines: []Line{{Body: &Begun{Owner: owner, Undoes: t.ID}}, {Txn: t.ID, Body: &UndoneBy{Txn: id}}},
		Take:  Take{To: Ownership{Txn: id, Owner: owner}}, Durable: true,
	})
}

// takeBack takes the calls from index at on back, newest first. A resource that
// a call of unknown outcome may have touched is left alone in the calls before
// it: nobody can say which version would be the right one.
func (r *Reverter) takeBack(ctx context.Context, rec Recorder, t *Txn, at int, cause string) ([]Item, error) {
	items, frozen := []Item{}, map[string]string{}
	w, err := r.Ways(ctx, t.Session)
	if err != nil {
		return items, err
	}
	for _, c := range t.Left() {
		if t.index(c) < at {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return items, err
		}
		var results []Result
		if c.Phase == PhaseUnknown {
			results = freeze(c, frozen)
		} else if results, err = r.takeBackCall(ctx, w, rec, c, cause, frozen); err != nil {
			return items, err
		}
		for _, res := range results {
			items = append(items, Item{Call: c.Ref.Call, Tool: c.Tool.Name, Result: res})
		}
	}
	return items, nil
}

func freeze(c *Call, frozen map[string]string) []Result {
	why := "the outcome of call " + c.Ref.Call + " is unknown: look at it, then settle it"
	out := []Result{{Resource: "tool://" + c.Tool.Name, Outcome: UndoUnknown, Why: why}}
	for _, ch := range c.Changes {
		frozen[ch.Resource] = c.Ref.Call
		out = append(out, Result{Resource: ch.Resource, Outcome: UndoUnknown, Why: why})
	}
	return out
}

// adopt makes this opening of the journal the owner of a transaction whose
// owner is gone.
func (r *Reverter) adopt(ctx context.Context, t *Txn) (*Txn, error) {
	alive, err := r.Journal.Alive(ctx, t.Owner)
	if err != nil {
		return nil, err
	}
	if alive {
		return nil, fmt.Errorf("transaction %s: %w; wait for it, or end that process", t.ID, ErrBusy)
	}
	me := r.Journal.Owner()
	err = r.recorder(t).In(t.ID).Write(ctx, Write{
		Lines: []Line{{Body: &Adopted{From: t.Owner, To: me}}},
		Take:  Take{From: t.Owner, To: Ownership{Txn: t.ID, Owner: me}}, Durable: true,
	})
	if err != nil {
		return nil, err
	}
	return Load(ctx, r.Journal, t.ID)
}

func (r *Reverter) recorder(t *Txn) Recorder { return NewRecorder(r.Journal, r.Host, t.Session) }

func (t *Txn) mark(name string) (at int, ok bool) {
	for i := len(t.Savepoints) - 1; i >= 0; i-- {
		if t.Savepoints[i].Name == name {
			return t.Savepoints[i].At, true
		}
	}
	return 0, false
}

func (t *Txn) index(c *Call) int {
	for i, other := range t.Calls {
		if other == c {
			return i
		}
	}
	return -1
}

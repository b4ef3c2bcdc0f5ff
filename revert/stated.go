package revert

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/kind"
	"github.com/remit-dev/remit/revert/record"
)

// journaled is a Scheme whose world is the journal itself: Apply only looks, and what a
// step that it calls Restored comes to is written with the end of the undo, so that it
// is there exactly when that is.
type journaled interface {
	Scheme
	State(s effect.Step) (record.State, error)
}

// states are the records of what the steps of an undo have restored on the journal.
func (r *Reverter) states(w Ways, c *Call, steps []effect.Step, results []effect.Result) (lines []Line) {
	for i, s := range steps {
		scheme, _ := w.scheme(s.Change.Scheme)
		j, ok := scheme.(journaled)
		if !ok || results[i].Outcome != effect.Restored {
			continue
		}
		b, err := j.State(s)
		if err != nil { // nobody is told then that it is there again
			results[i].Outcome, results[i].Why = effect.Failed, err.Error()
			continue
		}
		b.Of = c.Ref
		lines = append(lines, Line{Call: b.ID(r.Host), Body: &b})
	}
	return lines
}

// stateRef names a record of what a tool holds.
type stateRef struct {
	txn, id string
	content effect.BlobRef
}

// applyState folds one, of the transaction's own stream or of one that worked on it.
func (t *Txn) applyState(r record.Record, b *record.State) error {
	if b.Session != r.Session || b.Tool != record.StateTool(r.Call) || !b.Version.Known() {
		return fmt.Errorf("state %s is of tool %q and session %q, with the version %q", r.Call, b.Tool, b.Session, b.Version)
	}
	if c, ok := t.byID[b.Of.Call]; ok && b.Of.Txn == t.ID && b.Content != nil {
		c.states = append(c.states, stateRef{r.Txn, r.Call, *b.Content})
	}
	return nil
}

// addStates adds what a call left in the state of its tool: a session whose newest state
// that is begins anew.
func (e *erasing) addStates(c *Call) {
	for _, s := range c.states {
		e.names([]effect.BlobRef{s.content})
		e.add(s.txn, s.id, &record.Erased{Tool: c.Tool})
	}
}

// sweep erases the states that are past retention, but those that sessions go on from.
// Nothing reads any other one: what an undo needs, the records of its calls name.
func (r *Reverter) sweep(ctx context.Context, limit int64) error {
	e := &erasing{cause: eraseRetention}
	newest := map[[2]string]record.Entry{}
	old := func(s record.Entry) error {
		if s.Erased != "" || s.Pos > limit {
			return nil
		}
		rec, err := record.Unseal(s)
		if err != nil {
			return err
		}
		e.names(record.Blobs(rec.Body))
		e.add(s.Header.Txn, s.Header.Call, &record.Erased{Tool: record.ToolRef{Name: record.StateTool(s.Header.Call)}})
		return nil
	}
	for s, err := range r.Journal.Entries(ctx, journal.Query{Kinds: []kind.Kind{kind.State}}) {
		if err != nil {
			return err
		}
		cell := [2]string{s.Header.Session, record.StateTool(s.Header.Call)}
		if before, ok := newest[cell]; ok {
			if err := old(before); err != nil {
				return err
			}
		}
		newest[cell] = s
	}
	if len(e.calls) == 0 {
		return nil
	}
	return r.writeErased(ctx, e, "", nil, nil)
}

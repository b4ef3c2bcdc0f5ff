package revert

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/kind"
	"github.com/remit-dev/remit/revert/record"
)

// journalScheme is a Scheme whose world is the journal itself: Apply only looks, and what a
// step that it calls Restored comes to is written with the end of the undo, so that it
// is there exactly when that is.
type journalScheme interface {
	Scheme
	State(s effect.Step) (record.State, error)
}

// states are the records of what the steps of an undo have restored on the journal.
func (r *Reverter) states(w Environment, c *Call, steps []effect.Step, results []effect.Result) (lines []CallRecord) {
	for i, s := range steps {
		scheme, _ := w.scheme(s.Change.Scheme)
		j, ok := scheme.(journalScheme)
		if !ok || results[i].Outcome != effect.Restored {
			continue
		}
		b, err := j.State(s)
		if err != nil { // nobody is told then that it is there again
			results[i].Outcome, results[i].Why = effect.Failed, err.Error()
			continue
		}
		b.Of = c.Ref
		lines = append(lines, CallRecord{Call: b.ID(r.Host), Body: &b})
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
func (e *eraseStep) addStates(c *Call) {
	for _, s := range c.states {
		e.names([]effect.BlobRef{s.content})
		e.add(s.txn, s.id, &record.Erased{Tool: c.Tool})
	}
}

// stateAt is a state that a session went on from.
type stateAt struct {
	txn, call string // none: it is erased
	refs      []effect.BlobRef
}

// sweep erases the states that are past retention and that a later one which is past
// retention replaced. Nothing reads any of them: what an undo needs, the records of its
// calls name.
func (k *Retainer) sweep(ctx context.Context, limit int64) error {
	e := &eraseStep{cause: eraseRetention}
	for s, err := range k.reverter.Journal.Entries(ctx, journal.Query{Kinds: []kind.Kind{kind.State}, After: k.states}) {
		if err != nil {
			return err
		}
		if s.Pos > limit {
			break
		}
		if err := k.newState(e, s); err != nil {
			return err
		}
		if len(e.calls) >= batchCalls {
			if err := k.dropStates(ctx, e); err != nil {
				return err
			}
			e = &eraseStep{cause: eraseRetention}
		}
		k.states = s.Pos
	}
	return k.dropStates(ctx, e)
}

// newState takes a state for the newest of its session and tool, and adds the one
// before it to what goes.
func (k *Retainer) newState(e *eraseStep, s record.Entry) error {
	now := stateAt{}
	if s.Erased == "" {
		now.txn, now.call = s.Header.Txn, s.Header.Call
		rec, err := record.Unseal(s)
		if err != nil {
			return err
		}
		now.refs = record.Blobs(rec.Body)
	}
	cell := [2]string{s.Header.Session, record.StateTool(s.Header.Call)}
	before, ok := k.cells[cell]
	k.cells[cell] = now
	if ok && before.call != "" {
		e.names(before.refs)
		e.add(before.txn, before.call, &record.Erased{Tool: record.ToolRef{Name: cell[1]}})
	}
	return nil
}

// dropStates erases states. After a failure the next run reads all of them again.
func (k *Retainer) dropStates(ctx context.Context, e *eraseStep) error {
	if len(e.calls) == 0 {
		return nil
	}
	if err := k.reverter.writeErased(ctx, e, "", nil, nil); err != nil {
		k.states, k.cells = 0, map[[2]string]stateAt{}
		return err
	}
	k.erased(e)
	return nil
}

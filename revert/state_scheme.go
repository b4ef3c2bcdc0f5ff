package revert

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// journalScheme is a Scheme whose resources are in the journal itself: Apply
// only reads. The result of a step with outcome Restored is written in the same
// step as the end of the revert, so both are present or neither is.
type journalScheme interface {
	Scheme
	State(s effect.Step) (record.State, error)
}

// states returns the records of the states that the steps of a revert restored.
func (r *Reverter) states(w Environment, c *Call, steps []effect.Step, results []effect.Result) (lines []CallRecord) {
	for i, s := range steps {
		scheme, _ := w.scheme(s.Change.Scheme)
		j, ok := scheme.(journalScheme)
		if !ok || results[i].Outcome != effect.Restored {
			continue
		}
		b, err := j.State(s)
		if err != nil { // the caller then does not learn that the state is restored
			results[i].Outcome, results[i].Why = effect.Failed, err.Error()
			continue
		}
		b.Of = c.Ref
		lines = append(lines, CallRecord{Call: b.ID(r.Host), Body: &b})
	}
	return lines
}

// stateRef names a state record of a tool.
type stateRef struct {
	txn, id string
	content effect.BlobRef
}

// applyState folds a state record of the transaction's own stream, or of a
// link.
func (t *Txn) applyState(r record.Record, b *record.State) error {
	if b.Session != r.Session || b.Tool != r.StateTool() || !b.Version.Known() {
		return fmt.Errorf("state %s is of tool %q and session %q, with the version %q", r.Call, b.Tool, b.Session, b.Version)
	}
	if c, ok := t.byID[b.Of.Call]; ok && b.Of.Txn == t.ID && b.Content != nil {
		c.states = append(c.states, stateRef{r.Txn, r.Call, *b.Content})
	}
	return nil
}

// addStates adds the states that a call left in its tool. A session whose
// newest state is erased starts without state.
func (e *eraseStep) addStates(c *Call) {
	for _, s := range c.states {
		e.names([]effect.BlobRef{s.content})
		e.add(s.txn, s.id, &record.Erased{Tool: c.Tool})
	}
}

// stateAt is a state that a session continued from.
type stateAt struct {
	txn, call string // empty: the state is erased
	refs      []effect.BlobRef
}

// sweep erases states that are past retention, if a later state that is also
// past retention replaced them. Nothing reads any of them: the records of calls
// name the states that a revert needs.
func (k *Retainer) sweep(ctx context.Context, limit int64) error {
	e := &eraseStep{cause: eraseRetention}
	for s, err := range k.reverter.Journal.Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindState}, After: k.states}) {
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

// newState makes a state the newest of its session and tool, and adds the
// previous one to the erasure.
func (k *Retainer) newState(e *eraseStep, s record.Entry) error {
	now := stateAt{}
	if s.Erased == "" {
		now.txn, now.call = s.Header.Txn, s.Header.Call
		rec, err := record.Unseal(s)
		if err != nil {
			return err
		}
		now.refs = rec.Blobs()
	}
	cell := [2]string{s.Header.Session, s.Header.StateTool()}
	before, ok := k.cells[cell]
	k.cells[cell] = now
	if ok && before.call != "" {
		e.names(before.refs)
		e.add(before.txn, before.call, &record.Erased{Tool: record.ToolRef{Name: cell[1]}})
	}
	return nil
}

// dropStates erases states. After a failure the next run reads all of them
// again.
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

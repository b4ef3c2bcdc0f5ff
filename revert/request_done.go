package revert

import (
	"context"
	"errors"
	"slices"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// findDone sets the report of a request that a process carried out and did not
// answer, because it died: another attempt could repeat what a person took back
// since.
func (r *Reverter) findDone(ctx context.Context, q *Request) error {
	if len(q.takers) < 2 { // no process took it before
		return nil
	}
	undo, err := r.attemptOf(ctx, *q)
	if err != nil || undo == "" {
		return err
	}
	rep, err := r.pastReport(ctx, *q, undo)
	if err == nil {
		q.Report, q.State = &rep, journal.RequestDone
	}
	return err
}

// attemptOf returns the ended transaction in which an earlier taker carried out
// a request: a revert or redo transaction, or the subject itself, if it was open
// and is reverted.
func (r *Reverter) attemptOf(ctx context.Context, q Request) (string, error) {
	if !q.Redo {
		aborted := journal.Query{Txn: q.Txn, Kinds: []record.Kind{record.KindAborted}, After: q.size, Limit: 1}
		for e, err := range r.Journal.Entries(ctx, aborted) {
			return e.Header.Txn, err
		}
	}
	found := ""
	for e, err := range r.Journal.Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindBegun}, About: []string{q.Txn}, After: q.size}) {
		if err != nil {
			return "", err
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return "", err
		}
		b, ok := rec.Body.(*record.Begun)
		of := b.Reverts
		if ok && q.Redo {
			of = b.Redoes
		}
		if !ok || of != q.Txn || !slices.Contains(q.takers[:len(q.takers)-1], b.Owner) {
			continue
		}
		t, err := r.Load(ctx, e.Header.Txn)
		if err != nil {
			return "", err
		}
		if found = ""; t.End != "" { // otherwise the next attempt continues it
			found = e.Header.Txn
		}
	}
	return found, nil
}

// pastReport is the report of a revert or redo from its records.
func (r *Reverter) pastReport(ctx context.Context, q Request, undo string) (Report, error) {
	t, err := r.Load(ctx, q.Txn)
	if err != nil {
		return Report{}, err
	}
	rep := Report{Txn: q.Txn, State: t.State(), Items: []ResourceResult{}}
	if undo != q.Txn {
		rep.RevertTxn = undo
	}
	subjects, steps := map[string]*Txn{q.Txn: t}, map[string][]effect.Step{}
	kinds := []record.Kind{record.KindReverting, record.KindReverted}
	for e, err := range r.Journal.Entries(ctx, journal.Query{Txn: undo, Kinds: kinds, After: q.size}) {
		if err != nil {
			return rep, err
		}
		rec, err := record.Unseal(e)
		if errors.Is(err, record.ErrErased) {
			continue
		}
		if err != nil {
			return rep, err
		}
		switch b := rec.Body.(type) {
		case *record.Reverting:
			if undo != q.Txn || b.Cause == "abort" {
				steps[e.Header.Call] = b.Steps
			}
		case *record.Reverted:
			if _, asked := steps[e.Header.Call]; !asked {
				continue // the call had failed, and reverted itself
			}
			if subjects[b.Of.Txn] == nil {
				if subjects[b.Of.Txn], err = r.Load(ctx, b.Of.Txn); err != nil {
					return rep, err
				}
			}
			rep.addPast(subjects[b.Of.Txn], b, steps[e.Header.Call])
		}
	}
	var how Options
	if q.Target != q.Txn && !q.Redo {
		how.Calls = []string{q.Target}
	}
	return rep.withHosts(t, how).PerResource(), nil
}

// addPast adds the items of one reverted call of t.
func (rep *Report) addPast(t *Txn, b *record.Reverted, steps []effect.Step) {
	first := len(rep.Items)
	for _, res := range b.Results {
		item := ResourceResult{Call: b.Of.Call, Result: res}
		if c, ok := t.Call(b.Of.Call); ok {
			item.Tool = c.Tool.Name
		}
		if t.ID != rep.Txn {
			item.Txn = t.ID
		}
		rep.Items = append(rep.Items, item)
	}
	revertMode{}.addChanges(rep.Items[first:], steps)
}

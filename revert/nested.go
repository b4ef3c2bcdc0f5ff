package revert

import (
	"context"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// NestedTxn is a nested transaction: its calls are reverted alone, or become
// calls of the enclosing transaction. It has no stream, owner or claims of its
// own: the owner of the outermost transaction owns it.
type NestedTxn struct {
	record.Nested
	Ended    bool
	Reverted bool
}

func (t *Txn) nest(b *record.Nested) error {
	if _, known := t.nested(b.ID); known || b.ID == "" {
		return fmt.Errorf("nested transaction %q began twice", b.ID)
	}
	if in, known := t.nested(b.In); b.In != "" && (!known || in.Ended) {
		return fmt.Errorf("nested transaction %s began in %s, which is not open", b.ID, b.In)
	}
	t.Nested = append(t.Nested, NestedTxn{Nested: *b})
	return nil
}

func (t *Txn) endNest(b *record.NestEnded) error {
	n, known := t.nested(b.ID)
	if !known || n.Ended {
		return fmt.Errorf("nested transaction %s ended, and was not open", b.ID)
	}
	n.Ended, n.Reverted = true, b.Reverted
	return nil
}

func (t *Txn) nested(id string) (*NestedTxn, bool) {
	i := slices.IndexFunc(t.Nested, func(n NestedTxn) bool { return n.ID == id })
	if i < 0 {
		return nil, false
	}
	return &t.Nested[i], true
}

// inNest reports whether a call is in a nested transaction, or in one inside
// it.
func (t *Txn) inNest(c *Call, id string) bool {
	for at := c.nest(); at != ""; {
		if at == id {
			return true
		}
		n, known := t.nested(at)
		if !known {
			return false
		}
		at = n.In
	}
	return false
}

// RevertNested reverts a nested transaction with those inside it, and nothing
// else. Later changes by calls outside it are conflicts. None of its own calls
// may be in flight; others may.
func (r *Reverter) RevertNested(ctx context.Context, id, nest string) (Report, error) {
	t, err := r.Load(ctx, id)
	if err != nil {
		return Report{}, err
	}
	if n, known := t.nested(nest); !known || n.Ended {
		return Report{}, fmt.Errorf("nested transaction %s of transaction %s: %w", nest, id, journal.ErrNotFound)
	}
	rec := r.recorder(t).In(t.ID)
	outside := func(c *Call) bool { return !t.inNest(c, nest) }
	dropped, err := r.drop(ctx, t, slices.DeleteFunc(t.HeldCalls(), outside), record.Dropped{Cause: "nest"})
	rep := Report{Txn: id, State: TxnOpen, Items: dropped}
	if err != nil {
		return rep, err
	}
	inside := slices.DeleteFunc(t.EffectiveCalls(), outside)
	items, err := r.revertCalls(ctx, rec, inside, revertMode{cause: "nest", upon: t.dependentsOn(inside)})
	rep.Items = append(rep.Items, items...)
	if err != nil {
		return rep, err
	}
	var w Write
	for _, n := range slices.Backward(t.Nested) { // inner ones first
		if !n.Ended && t.within(n, nest) {
			w.Records = append(w.Records, CallRecord{Body: &record.NestEnded{ID: n.ID, Reverted: true, Complete: rep.Complete()}})
		}
	}
	w.Durable = true
	return rep, rec.Write(ctx, w)
}

// NestedResources returns the resources of one scheme that the calls of a
// nested transaction, or of one inside it, changed, sorted by text.
func (t *Txn) NestedResources(nest, scheme string) (resources []string) {
	for _, c := range t.Calls {
		for _, ch := range c.Changes {
			if ch.Scheme == scheme && t.inNest(c, nest) {
				resources = append(resources, ch.Resource)
			}
		}
	}
	slices.Sort(resources)
	return slices.Compact(resources)
}

// nest returns the ID of a call's nested transaction.
func (c *Call) nest() string {
	switch {
	case c.Held != nil:
		return c.Held.Nest
	case c.Started != nil:
		return c.Started.Nest
	default:
		return ""
	}
}

// within reports whether a nested transaction is another one, or inside it.
func (t *Txn) within(n NestedTxn, id string) bool {
	for {
		if n.ID == id {
			return true
		}
		in, known := t.nested(n.In)
		if !known {
			return false
		}
		n = *in
	}
}

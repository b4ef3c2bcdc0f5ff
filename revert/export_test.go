package revert

import "context"

// BatchCalls is the number of calls that one step of a prune erases.
const BatchCalls = batchCalls

// LoadCalls reads a transaction for the revert of some of its calls.
func (r *Reverter) LoadCalls(ctx context.Context, id string, calls ...string) (*Txn, error) {
	return r.loadCalls(ctx, id, calls)
}

// LoadCall reads one call of an open transaction.
func (r *Reverter) LoadCall(ctx context.Context, txn, call string) (*Call, error) {
	return r.loadCall(ctx, txn, call)
}

// Latest looks at a transaction again.
func (r *Reverter) Latest(ctx context.Context, t *Txn) (*Txn, error) { return r.latest(ctx, t) }

// StateOf returns the state of a transaction, which may be a part.
func (r *Reverter) StateOf(ctx context.Context, t *Txn) (TxnState, error) { return r.stateOf(ctx, t) }

// IsPart reports whether only some calls of the transaction were read.
func (t *Txn) IsPart() bool { return t.part != nil }

// ToRevert returns the calls that a revert of some calls reverts.
func (t *Txn) ToRevert(calls ...string) (ids []string) {
	for _, c := range t.only(calls) {
		ids = append(ids, c.Ref.Call)
	}
	return ids
}

// Folded returns the transaction without what says how it was read.
func (t *Txn) Folded() Txn {
	u := *t
	u.seen, u.away, u.erased, u.redoing = seen{}, false, false, false
	return u
}

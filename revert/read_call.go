package revert

import (
	"context"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// ReadCall reads a call of a transaction by its own records, so that the cost
// does not follow the size of the transaction. The result has no revert of the
// call. ReadCall reads the whole transaction if other records tell how the call
// stands: if the call was held, or if its records were erased or are damaged.
func ReadCall(ctx context.Context, j journal.Journal, txn, call string) (*Call, error) {
	t, held := newTxn(txn, nil), false
	t.Owner = "unread"
	err := t.read(ctx, j, journal.Query{Txn: txn, Call: call}, &t.seen.own, func(e record.Entry, r record.Record) error {
		held = held || r.Kind == record.KindHeld
		return t.applyCall(e, r)
	})
	if c, ok := t.Call(call); ok && err == nil && !held && !t.erased {
		return c, nil
	}
	_, c, err := LoadCall(ctx, j, call)
	return c, err
}

package revert

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Opening is what the first record of a transaction says. It costs one record,
// where Load costs those of every call.
type Opening struct {
	Session string
	About   string // the transaction that this one reverts or redoes; empty: none
}

// LoadOpening reads the opening of a transaction. The error is
// journal.ErrNotFound if there is none.
func LoadOpening(ctx context.Context, j journal.Journal, id string) (Opening, error) {
	if id == "" {
		return Opening{}, fmt.Errorf("the empty transaction id: %w", journal.ErrNotFound)
	}
	for e, err := range j.Entries(ctx, journal.Query{Txn: id, Kinds: []record.Kind{record.KindBegun}, Limit: 1}) {
		if err != nil {
			return Opening{}, err
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return Opening{}, err
		}
		b, ok := rec.Body.(*record.Begun)
		if !ok {
			return Opening{}, fmt.Errorf("%w: entry %d is not the beginning of transaction %s", record.ErrDamaged, e.Pos, id)
		}
		return Opening{Session: rec.Session, About: b.Reverts + b.Redoes}, nil
	}
	return Opening{}, fmt.Errorf("transaction %s: %w", id, journal.ErrNotFound)
}

// TxnOf returns the ID of the transaction of a call, without reading it. The
// error is journal.ErrNotFound if no transaction has the call.
func TxnOf(ctx context.Context, j journal.Journal, call string) (string, error) {
	if call != "" {
		for e, err := range j.Entries(ctx, journal.Query{Call: call}) {
			if err != nil {
				return "", err
			}
			if e.Header.Txn != "" { // labels from a result belong to the session
				return e.Header.Txn, nil
			}
		}
	}
	return "", fmt.Errorf("call %s: %w", call, journal.ErrNotFound)
}

package state

import (
	"context"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// EachTxn calls fn with the ids of all transactions, newest first.
func EachTxn(ctx context.Context, j journal.Journal, fn func(id string) error) error {
	for e, err := range j.Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindBegun}, Newest: true}) {
		if err != nil {
			return err
		}
		if err := fn(e.Header.Txn); err != nil {
			return err
		}
	}
	return nil
}

// EachOwnTxn calls fn with the ids of the transactions whose files belong to this
// node, newest first. In a journal of one machine these are all.
func EachOwnTxn(ctx context.Context, rt *agent.Runtime, fn func(id string) error) error {
	away := map[string]bool{}
	for e, err := range rt.Journal().Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindBegun}, Newest: true}) {
		if err != nil {
			return err
		}
		session := e.Header.Session
		if _, known := away[session]; !known {
			if away[session], err = rt.OnOtherNode(ctx, session); err != nil {
				return err
			}
		}
		if away[session] {
			continue
		}
		if err := fn(e.Header.Txn); err != nil {
			return err
		}
	}
	return nil
}

// Interrupted calls fn with each abandoned transaction of this node, oldest first,
// until fn returns true.
func Interrupted(ctx context.Context, rt *agent.Runtime, fn func(t *revert.Txn) (stop bool, err error)) error {
	open, err := rt.Journal().Unfinished(ctx)
	if err != nil {
		return err
	}
	for _, o := range open {
		alive, err := rt.Journal().Alive(ctx, o.Owner)
		if err != nil {
			return err
		}
		if alive {
			continue
		}
		t, err := rt.Load(ctx, o.Txn)
		if err != nil {
			return err
		}
		away, err := rt.OnOtherNode(ctx, t.Session)
		if err != nil {
			return err
		}
		if away {
			continue
		}
		if stop, err := fn(t); stop || err != nil {
			return err
		}
	}
	return nil
}

// OwnerGone reports whether a transaction is open and its owner process has
// ended.
func OwnerGone(ctx context.Context, j journal.Journal, id string) bool {
	t, err := revert.Load(ctx, j, id)
	if err != nil || t.End != "" {
		return false
	}
	alive, err := j.Alive(ctx, t.Owner)
	return err == nil && !alive
}

package callview

import (
	"context"
	"slices"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// SessionRecord returns the record of a session, nil if there is none.
func SessionRecord(ctx context.Context, j journal.Journal, session string) (*record.Session, error) {
	return FirstSession(ctx, j, journal.Query{Session: session, Kinds: []record.Kind{record.KindSession}, Limit: 1}, func(*record.Session) bool { return true })
}

// FirstSession returns the first session record for which is returns true, nil
// if there is none.
func FirstSession(ctx context.Context, j journal.Journal, q journal.Query, is func(*record.Session) bool) (*record.Session, error) {
	for e, err := range j.Entries(ctx, q) {
		if err != nil {
			return nil, err
		}
		if e.Erased != "" {
			continue
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return nil, err
		}
		if body, ok := rec.Body.(*record.Session); ok && is(body) {
			return body, nil
		}
	}
	return nil, nil
}

// AtWork reports whether a running process follows the prompt of a transaction,
// and more of it than a call that waits.
func AtWork(ctx context.Context, j journal.Journal, t *revert.Txn) bool {
	if t.End != "" || t.Prompt == nil || slices.ContainsFunc(t.Calls, (*revert.Call).Waits) {
		return false
	}
	alive, err := j.Alive(ctx, t.Owner)
	return err == nil && alive // otherwise a revert refuses what it must not touch
}

package agent

import (
	"context"
	"fmt"
	"sync"

	"github.com/remit-dev/remit/revert"
)

// register is what the journal says of grants that are not of one session alone:
// what was revoked, here or by another process. It reads what came since it last
// looked.
type register struct {
	journal revert.Journal

	mu      sync.Mutex // never held across a wait
	pos     int64
	revoked map[string]string // why, in words
}

func (r *register) look(ctx context.Context) error {
	r.mu.Lock()
	after := r.pos
	r.mu.Unlock()
	for e, err := range r.journal.Entries(ctx, revert.Query{Kinds: []revert.Kind{revert.KindRevoked}, After: after}) {
		if err != nil {
			return err
		}
		rec, err := revert.Unseal(e)
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.note(rec)
		r.pos = max(r.pos, e.Pos)
		r.mu.Unlock()
	}
	return nil
}

// note is called with the lock.
func (r *register) note(rec revert.Record) {
	if b, ok := rec.Body.(*revert.Revoked); ok {
		if r.revoked == nil {
			r.revoked = map[string]string{}
		}
		if _, before := r.revoked[b.Grant]; !before {
			r.revoked[b.Grant] = wordsOf(b)
		}
	}
}

func wordsOf(b *revert.Revoked) string {
	if b.Why == "" {
		return "by " + b.By
	}
	return fmt.Sprintf("by %s: %s", b.By, b.Why)
}

// gone looks whether a grant was revoked.
func (r *register) gone(ctx context.Context, id string) (revoked bool, why string, err error) {
	if err := r.look(ctx); err != nil {
		return false, "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	why, revoked = r.revoked[id]
	return revoked, why, nil
}

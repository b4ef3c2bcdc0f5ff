package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// grantRegistry holds what the journal says about grants beyond one session:
// which are revoked, and which approvals are remembered, here or by another
// process. Each look reads the records since the last one.
type grantRegistry struct {
	journal  journal.Journal
	lookLock *host.Lock   // lock of a look
	begun    atomic.Int64 // number of looks that began
	whole    int64        // number of the last completed look, under lookLock

	mu      sync.Mutex // never held across a wait
	pos     int64
	revoked map[string]string    // reason of the revocation, by grant
	kept    []rememberedApproval // in the order of the journal
}

// look reads the new records. If several callers wait during a look, one of
// them looks again for all: a look that began later sees the records that
// existed when they came.
func (r *grantRegistry) look(ctx context.Context) error {
	before := r.begun.Load()
	if err := r.lookLock.Lock(ctx); err != nil {
		return err
	}
	defer r.lookLock.Unlock()
	if r.whole > before {
		return nil
	}
	n := r.begun.Add(1)
	if err := r.read(ctx); err != nil {
		return err
	}
	r.whole = n
	return nil
}

func (r *grantRegistry) read(ctx context.Context) error {
	r.mu.Lock()
	after := r.pos
	r.mu.Unlock()
	// A look is short, and a context that can end needs goroutines that watch
	// it.
	for e, err := range r.journal.Entries(context.WithoutCancel(ctx), journal.Query{Kinds: []record.Kind{record.KindRevoked, record.KindRemembered}, After: after}) {
		if err != nil {
			return err
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return err
		}
		r.note(e.Pos, rec)
	}
	return nil
}

// note processes a record, once.
func (r *grantRegistry) note(pos int64, rec record.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pos <= r.pos {
		return
	}
	r.pos = pos
	switch b := rec.Body.(type) {
	case *record.Revoked:
		if r.revoked == nil {
			r.revoked = map[string]string{}
		}
		if _, before := r.revoked[b.Grant]; !before {
			r.revoked[b.Grant] = wordsOf(b)
		}
	case *record.Remembered:
		r.kept = append(r.kept, rememberedApproval{Remembered: b, session: rec.Session})
	}
}

func wordsOf(b *record.Revoked) string {
	if b.Why == "" {
		return "by " + b.By
	}
	return fmt.Sprintf("by %s: %s", b.By, b.Why)
}

// gone reports whether a grant was revoked.
func (r *grantRegistry) gone(ctx context.Context, id string) (revoked bool, why string, err error) {
	if err := r.look(ctx); err != nil {
		return false, "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	why, revoked = r.revoked[id]
	return revoked, why, nil
}

// validApprovals returns the remembered approvals that are not revoked, newest first.
func (r *grantRegistry) validApprovals(ctx context.Context) ([]rememberedApproval, error) {
	if err := r.look(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []rememberedApproval
	for _, k := range slices.Backward(r.kept) {
		if _, gone := r.revoked[k.ID]; !gone {
			out = append(out, k)
		}
	}
	return out, nil
}

// of returns the session whose stream holds a remembered approval.
func (r *grantRegistry) of(ctx context.Context, id string) (session string, err error) {
	if err := r.look(ctx); err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.kept {
		if k.ID == id {
			return k.session, nil
		}
	}
	return "", journal.ErrNotFound
}

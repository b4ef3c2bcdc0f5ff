package hooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// waiting is a call that waits for an approval, often alone in its transaction.
type waiting struct {
	txn  *agent.Txn
	call string
}

// Recover settles the calls of an earlier process, and commits the prompts that
// it left open: the person has seen what they did. A call that waits alone stays
// open for its approval. Of prompts in which calls wait beside others, the first
// session that opens continues its own one, and commits the rest. Call Recover
// before the first session.
func (w *Workspace) Recover(ctx context.Context, now time.Time) ([]revert.RecoveredCall, error) {
	rec, err := w.Runtime.Recover(ctx)
	for _, id := range rec.Abandoned {
		waits, alone, one := w.waits(ctx, id, now)
		switch {
		case one == nil && !waits:
			one = w.commitID(ctx, id)
			if errors.Is(one, tool.ErrDenied) && !errors.Is(one, agent.ErrPartialRevert) {
				one = nil // a person rejected it, so it is reverted
			}
		case one == nil && !alone:
			w.left = append(w.left, id)
		}
		if one != nil {
			err = errors.Join(err, fmt.Errorf("transaction %s stays open: %w", id, one))
		}
	}
	return rec.Settled, err
}

// waits reports whether a call of a transaction can still be approved, and
// whether that is its only call.
func (w *Workspace) waits(ctx context.Context, id string, now time.Time) (waits, alone bool, err error) {
	t, err := revert.Load(ctx, w.Runtime.Journal(), id)
	if err != nil {
		return false, false, err
	}
	for _, c := range t.Calls {
		waits = waits || approvable(t, c) && now.Before(c.Asked.Expires)
	}
	return waits, len(t.Calls) == 1, nil
}

func approvable(t *revert.Txn, c *revert.Call) bool {
	return c.Phase == revert.PhasePending && !t.Committing && !t.Aborting
}

func (w *Workspace) commitID(ctx context.Context, id string) error {
	tx, err := w.Runtime.ResumeTxn(ctx, id)
	if err != nil {
		return err
	}
	return w.commit(ctx, tx)
}

func (w *Workspace) takeLeft() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := w.left
	w.left = nil
	return left
}

// findWaiting finds the calls of the session that wait since an earlier process,
// or since the client had the session open before. The runtime checks them
// against the journal and the policy when the client repeats them.
func (one *session) findWaiting(ctx context.Context, e Event) error {
	failed := one.continuesLeft(ctx, e)
	j := one.space.Runtime.Journal()
	open, err := j.Unfinished(ctx)
	if err != nil {
		return errors.Join(failed, err)
	}
	for _, o := range open {
		if o.Txn == txnID(one.txn) {
			continue
		}
		begun, err := revert.LoadOpening(ctx, j, o.Txn)
		if err == nil && begun.Session == one.agent.ID() && begun.About == "" {
			_, err = one.adopt(ctx, o.Txn)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

func (one *session) continuesLeft(ctx context.Context, e Event) (failed error) {
	for _, id := range one.space.takeLeft() {
		if err := one.continues(ctx, e, id); err != nil {
			failed = errors.Join(failed, fmt.Errorf("transaction %s of an earlier process: %w", id, err))
		}
	}
	return failed
}

func txnID(tx *agent.Txn) string {
	if tx == nil {
		return ""
	}
	return tx.ID()
}

// continues goes on with a prompt of an earlier process, if it is the one of
// the event. Otherwise the prompt ends: its transaction holds files that other
// sessions may want.
func (one *session) continues(ctx context.Context, e Event, id string) error {
	t, err := revert.Load(ctx, one.space.Runtime.Journal(), id)
	if err != nil {
		return err
	}
	p := t.Prompt
	if t.Session != one.agent.ID() || p == nil || e.Prompt != "" && printableID(e.Prompt) != p.ID {
		return one.ends(ctx, t)
	}
	tx, err := one.adopt(ctx, id)
	if err == nil {
		one.txn, one.prompt = tx, prompt{p.ID, p.Text, e.Prompt != ""}
	}
	return err
}

// ends commits a transaction of an earlier process. What waits in it cannot be
// approved any more.
func (one *session) ends(ctx context.Context, t *revert.Txn) error {
	if t.Session == one.agent.ID() {
		for _, c := range t.Calls {
			if c.Phase == revert.PhasePending {
				one.asked[waitingDigest(c)] = true
			}
		}
	}
	return one.space.commitID(ctx, t.ID)
}

// adopt continues a transaction of this session in which calls wait.
func (one *session) adopt(ctx context.Context, id string) (*agent.Txn, error) {
	t, err := revert.Load(ctx, one.space.Runtime.Journal(), id)
	if err != nil {
		return nil, err
	}
	var tx *agent.Txn
	for _, c := range t.Calls {
		if !approvable(t, c) {
			continue
		}
		if tx == nil {
			if tx, err = one.agent.ResumeTxn(ctx, id); err != nil {
				return nil, err
			}
		}
		one.waiting[waitingDigest(c)] = waiting{tx, c.Ref.Call}
	}
	return tx, nil
}

// waitingDigest is use.digest of a call on record.
func waitingDigest(c *revert.Call) string { return callDigest(c.Asked.Tool.Name, c.Asked.Input) }

// callDigest identifies a call by its tool and canonical arguments.
func callDigest(name string, args []byte) string {
	return string(canon.Sum("remit/hooks/call", []byte(name), args))
}

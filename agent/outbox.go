package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// outbox is the in-memory state of the held calls of a transaction. The journal
// holds the calls and their order.
type outbox struct {
	some  atomic.Bool // a call was held
	begun bool        // the commit has begun, under the lock of the transaction
	sent  bool        // a released call can have had an effect, under the lock of the transaction

	mu       sync.Mutex // never held across a wait
	released []tool.Outcome
}

// Released returns the outcomes of the held calls that Commit released in this
// process, in order. A call that was released twice has two outcomes.
func (tx *Txn) Released() []tool.Outcome {
	tx.outbox.mu.Lock()
	defer tx.outbox.mu.Unlock()
	return slices.Clone(tx.outbox.released)
}

// noticeHeld remembers that there is a held call.
func (tx *Txn) noticeHeld(out tool.Outcome) {
	if out.Status == tool.StatusHeld {
		tx.root().outbox.some.Store(true)
	}
}

// root returns the outermost transaction.
func (tx *Txn) root() *Txn {
	for tx.up != nil {
		tx = tx.up
	}
	return tx
}

// reopenOutbox restores the state of held calls that another process held, or
// had begun to release.
func (tx *Txn) reopenOutbox(t *revert.Txn) {
	tx.outbox.begun = t.Committing
	for _, c := range t.Calls {
		if c.Held != nil {
			tx.outbox.some.Store(true)
			tx.outbox.sent = tx.outbox.sent || c.HasEffects()
		}
	}
}

// release runs the held calls of a transaction that commits. The caller holds
// turn. It reads the calls from the journal each time, because a person can
// have resolved a call or removed one from the queue. decided is the record that
// permits the commit; release returns it if it did not write it.
func (tx *Txn) release(ctx context.Context, decided []revert.CallRecord) ([]revert.CallRecord, error) {
	if !tx.outbox.some.Load() {
		return decided, nil
	}
	t, err := revert.Load(ctx, tx.s.rt.journal, tx.ID())
	if err != nil {
		return nil, err
	}
	queue := t.HeldCalls()
	if len(queue) == 0 {
		return decided, nil
	}
	// Set even if the write below fails: nothing may join a transaction whose
	// commit is decided.
	tx.outbox.begun = true
	if !t.Committing {
		// No barrier: the barrier of the first release covers it, and nothing
		// happens before.
		if err := tx.rec.Write(ctx, revert.Write{Records: append(decided, revert.CallRecord{Body: &record.Committing{}})}); err != nil {
			return nil, err
		}
	}
	for _, c := range queue {
		if err := tx.releaseOne(ctx, c); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (tx *Txn) releaseOne(ctx context.Context, c *revert.Call) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("%w: call %s: %w", ErrNotReleased, c.Ref.Call, err)
	}
	if err := tx.s.rt.open(); err != nil {
		return fmt.Errorf("%w: call %s: %w", ErrNotReleased, c.Ref.Call, err)
	}
	line, err := tx.lineOf(ctx, c)
	if err != nil {
		return fmt.Errorf("%w: call %s: %w", ErrNotReleased, c.Ref.Call, err)
	}
	// A started release continues if its caller disconnects. Otherwise its
	// effect would be unknown.
	out := line.Release(context.WithoutCancel(ctx), c, tx.s.state.turn())
	tx.outbox.mu.Lock()
	tx.outbox.released = append(tx.outbox.released, out)
	tx.outbox.mu.Unlock()
	switch out.Status {
	case tool.StatusDone:
		tx.outbox.sent = true
		return nil
	case tool.StatusUnknown, tool.StatusVerifyFailed:
		tx.outbox.sent = tx.outbox.sent || out.Reverted != "all"
	default: // known to have had no effect
	}
	return fmt.Errorf("%w: %w", ErrNotReleased, out.Err())
}

// lineOf returns the pipeline of a held call. Its session can be a delegated
// one with its own grant.
func (tx *Txn) lineOf(ctx context.Context, c *revert.Call) (*pipeline.Pipeline, error) {
	if c.Session == tx.s.id {
		return tx.line, nil
	}
	s, err := tx.s.rt.sessionByID(ctx, c.Session)
	if err != nil {
		return nil, err
	}
	return tx.inside(s, c.Held.Nest).line, nil
}

// dropped returns the reservations of a held call.
func (rt *Runtime) dropped(session, call string) {
	if st := rt.sessionStates.get(session); st != nil {
		st.counters.records(rt.services.Host.Now(), []revert.CallRecord{{Call: call, Body: &record.Dropped{}}})
	}
}

// queue counts a held call: it is in flight until its transaction ends, and its
// sums are reserved. The caller holds the lock.
func (t *sessionCounters) queue(call string, b *record.Held) {
	c := t.calls[call]
	if c == nil {
		c = &reservedCall{tool: b.Tool.Name, sums: amounts(b.Counts), reserved: true}
		t.change(b.Tool.Name, func(n *toolCount) {
			n.name(maps.Keys(c.sums))
			n.reserve(c.sums, 1)
		})
		t.calls[call] = c
	}
	c.queued = true
}

// unqueue counts a call that is no longer in the queue by the status of its
// last release, or not at all if there was none. The caller holds the lock.
func (t *sessionCounters) unqueue(call string) {
	c := t.calls[call]
	switch {
	case c == nil || !c.queued:
	case c.tried == "":
		t.drop(call)
	default:
		c.status = c.tried
		t.commit(call)
	}
}

// requeue notes a release without effect: the call waits again, and is counted
// when it ends.
func (c *reservedCall) requeue(s tool.Status, at time.Time, spent bool) {
	c.tried, c.at, c.start, c.spent = s, at, time.Time{}, c.spent || spent
}

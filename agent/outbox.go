package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// outbox is what a transaction knows of the calls that wait for its commit. Which
// they are, and in which order, the journal says.
type outbox struct {
	some  atomic.Bool // a call was held
	begun bool        // the commit has begun, under turn
	sent  bool        // something was released that may have had an effect, under turn

	mu       sync.Mutex // never held across a wait
	released []tool.Outcome
}

// Released lists the outcomes of the calls that were held and that Commit released
// in this process, in order. One that was tried again is there again.
func (tx *Txn) Released() []tool.Outcome {
	tx.outbox.mu.Lock()
	defer tx.outbox.mu.Unlock()
	return slices.Clone(tx.outbox.released)
}

// noticeHeld remembers that there is something to release.
func (tx *Txn) noticeHeld(out tool.Outcome) {
	if out.Status == tool.StatusHeld {
		tx.root().outbox.some.Store(true)
	}
}

// root is the transaction that all others are in.
func (tx *Txn) root() *Txn {
	for tx.up != nil {
		tx = tx.up
	}
	return tx
}

// reopenOutbox takes over what another process held, or had begun to release.
func (tx *Txn) reopenOutbox(t *revert.Txn) {
	tx.outbox.begun = t.Committing
	for _, c := range t.Calls {
		if c.Held != nil {
			tx.outbox.some.Store(true)
			tx.outbox.sent = tx.outbox.sent || c.HasEffects()
		}
	}
}

// release runs the held calls of a transaction that commits. It is called under
// turn. What it has to do is read from the journal each time: a person may have said
// what became of a call, or taken one out of the queue.
func (tx *Txn) release(ctx context.Context) error {
	if !tx.outbox.some.Load() {
		return nil
	}
	t, err := revert.Load(ctx, tx.s.rt.journal, tx.ID())
	if err != nil {
		return err
	}
	queue := t.HeldCalls()
	if len(queue) == 0 {
		return nil
	}
	// Whether the record is there or not when this fails: nothing may be added to
	// what is decided to be committed.
	tx.outbox.begun = true
	if !t.Committing {
		// No barrier: that of the first release carries it, and nothing happens before.
		if err := tx.rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Body: &record.Committing{}}}}); err != nil {
			return err
		}
	}
	for _, c := range queue {
		if err := tx.releaseOne(ctx, c); err != nil {
			return err
		}
	}
	return nil
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
	// One that has begun is not given up because its caller went away: nobody could
	// say what it did.
	out := line.Release(context.WithoutCancel(ctx), c, tx.s.standing.turn())
	tx.outbox.mu.Lock()
	tx.outbox.released = append(tx.outbox.released, out)
	tx.outbox.mu.Unlock()
	switch out.Status {
	case tool.StatusDone:
		tx.outbox.sent = true
		return nil
	case tool.StatusUnknown, tool.StatusVerifyFailed:
		tx.outbox.sent = tx.outbox.sent || out.Reverted != "all"
	default: // it is known to have had no effect
	}
	return fmt.Errorf("%w: %w", ErrNotReleased, out.Err())
}

// lineOf finds the line of a held call: its session may be one that this one was
// handed on to, with a grant of its own.
func (tx *Txn) lineOf(ctx context.Context, c *revert.Call) (*tool.Pipeline, error) {
	if c.Session == tx.s.id {
		return tx.line, nil
	}
	s, _, err := tx.s.rt.sessionByID(ctx, c.Session)
	if err != nil {
		return nil, err
	}
	return tx.inside(s, c.Held.Nest).line, nil
}

// dropped gives back what a held call had reserved.
func (rt *Runtime) dropped(session, call string) {
	if st := rt.standings.get(session); st != nil {
		st.tally.records(rt.host.Now(), []revert.CallRecord{{Call: call, Body: &record.Dropped{}}})
	}
}

// queue counts a call that is held: it is in flight until its transaction ends, and
// what it adds to sums is reserved. It is called with the lock.
func (t *sessionCounters) queue(call string, b *record.Held) {
	c := t.calls[call]
	if c == nil {
		c = &reservedCall{tool: b.Tool.Name, sums: amounts(b.Counts), stands: true}
		tc := t.of(b.Tool.Name)
		tc.name(maps.Keys(c.sums))
		tc.reserve(c.sums, 1)
		t.calls[call] = c
	}
	c.queued = true
}

// unqueue counts a call that will not be released any more: as what its last
// attempt came to, and not at all where there was none. It is called with the lock.
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

// requeue notes an attempt without effect: the call waits again, and is counted
// when it ends.
func (c *reservedCall) requeue(s tool.Status, at time.Time, spent bool) {
	c.tried, c.at, c.start, c.spent = s, at, time.Time{}, c.spent || spent
}

package revert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// ErrBusy is returned if a transaction belongs to a living process.
var ErrBusy = errors.New("a running process owns the transaction")

// ErrIsRevertTxn is returned for a revert of a revert or redo transaction.
var ErrIsRevertTxn = errors.New("revert or redo that one instead")

// Reverter reverts calls and transactions and recovers what a dead process left
// in flight. Set its fields once. Its methods are safe for concurrent use: if
// two callers revert the same transaction, here or in two processes, one is
// refused.
type Reverter struct {
	Journal journal.Journal
	Host    Host
	// EnvironmentFor returns the environment to revert the calls of one
	// session, possibly of another process with other roots.
	EnvironmentFor func(ctx context.Context, session string) (Environment, error)
	// Named returns the folders of a session that differ from the recorded ones
	// because a person named them. A revert there says nothing about the
	// recorded folders; see LoadAt. nil: there are none.
	Named func(ctx context.Context, session string) ([]record.Root, error)
	// OnDrop is called with each held call that will not be released, and its
	// session. nil: none.
	OnDrop func(session, call string)

	mu      sync.Mutex // never held across a wait
	busy    map[string]bool
	adopted map[string]ownership // unfinished transactions that this reverter took over
}

// ownership says why the reverter took a transaction over.
type ownership struct{ toCaller bool } // to a caller who adds calls to it; else only to end it

// Environment holds what a revert needs: the schemes, the tool reverter and the
// prober of one session.
type Environment struct {
	Namespace    string // two sessions with the same Namespace have the same resources
	Schemes      []Scheme
	ToolReverter ToolReverter // nil: no tool is available, so only changes through handles are reverted
	Prober       Prober       // nil: only versions tell the presence of an effect

	// WaitIdle waits until no operation of an ended call runs in this process,
	// and returns an error if that takes too long. nil: there is never one.
	WaitIdle func(ctx context.Context, call string) error
}

// waitIdle waits until the call is idle, before its effects are read or settled.
func (w Environment) waitIdle(ctx context.Context, c *Call) error {
	if w.WaitIdle == nil {
		return nil
	}
	return w.WaitIdle(ctx, c.Ref.Call)
}

// RevertKey returns the key of the revert of a call. It is the same for each
// attempt, so a service can recognize a repetition.
//
//nolint:revive // calls have a key too
func RevertKey(key string) string { return string(canon.Sum("remit/revert-key/v1", []byte(key))) }

// Abort reverts and ends an open transaction that this opening of the journal
// owns. If how limits the revert to calls or resources, it stays open. The caller makes
// sure that none of its calls is running.
func (r *Reverter) Abort(ctx context.Context, id string, how Options) (Report, error) {
	t, how, err := r.find(ctx, id, how, r.loadAll)
	if err != nil {
		return Report{}, err
	}
	leave, err := r.acquire(t.ID)
	if err != nil {
		return Report{}, err
	}
	defer leave()
	if t, err = r.latest(ctx, t); err != nil { // read again, now that no other goroutine works on it
		return Report{}, err
	}
	if t.End != "" || t.Owner != r.Journal.Owner() {
		return Report{}, fmt.Errorf("transaction %s: %w", id, journal.ErrNotOwner)
	}
	rep, err := r.abort(ctx, t, how)
	return rep.withHosts(t, how), err
}

// TakeOwnership makes this opening of the journal the owner of an abandoned
// transaction, and recovers its calls in flight. The caller can then add calls.
func (r *Reverter) TakeOwnership(ctx context.Context, id string) (*Txn, error) {
	leave, err := r.acquire(id)
	if err != nil {
		return nil, err
	}
	defer leave()
	t, err := r.Load(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case t.End != "" || t.Aborting || t.Reverts+t.Redoes != "":
		return nil, fmt.Errorf("transaction %s accepts no more calls: %w", id, journal.ErrNotOwner)
	case len(t.Named) > 0:
		return nil, fmt.Errorf("transaction %s began in another folder, and can only be reverted here: %w", id, ErrOtherFolder)
	}
	if t, err = r.adopt(ctx, t); err != nil {
		return nil, err
	}
	if err := r.settleCalls(ctx, r.recorder(t).In(id), t); err != nil {
		return nil, err
	}
	r.adoptedFor(id, ownership{toCaller: true})
	return t, nil
}

// RevertTo reverts the calls of an open transaction of this opening after a
// savepoint. The transaction stays open. by names the requester. The caller
// makes sure that none of its calls is running.
func (r *Reverter) RevertTo(ctx context.Context, id, savepoint, by string) (Report, error) {
	t, err := r.Load(ctx, id)
	if err != nil {
		return Report{}, err
	}
	at, ok := t.mark(savepoint)
	switch {
	case !ok:
		return Report{}, fmt.Errorf("savepoint %q of transaction %s: %w", savepoint, id, journal.ErrNotFound)
	case t.Committing:
		return Report{}, fmt.Errorf("transaction %s has begun to commit, and can only be reverted as a whole: %w", id, journal.ErrNotOwner)
	}
	rec := r.recorder(t).In(t.ID)
	before := func(c *Call) bool { return slices.Index(t.Calls, c) < at }
	// Held calls go first: they must not be released after the calls before
	// them are reverted.
	dropped, err := r.drop(ctx, t, slices.DeleteFunc(t.HeldCalls(), before), record.Dropped{Cause: "savepoint", By: by})
	if err != nil {
		return Report{Txn: id, Items: dropped}, err
	}
	items, err := r.revertCalls(ctx, rec, slices.DeleteFunc(t.EffectiveCalls(), before), revertMode{cause: "savepoint", by: by})
	items = append(dropped, items...)
	if err != nil {
		return Report{Txn: id, Items: items}, err
	}
	rep := Report{Txn: id, State: TxnOpen, Items: items}
	//mutant:barrier
	err = rec.Write(ctx, Write{Records: []CallRecord{{Body: &record.RevertedTo{Name: savepoint, Complete: rep.Complete()}}}, Durable: true})
	return rep, err
}

// RevertCall reverts one call of an open transaction, after it failed or did
// not verify.
func (r *Reverter) RevertCall(ctx context.Context, rec Recorder, call, cause string) ([]effect.Result, error) {
	if err := rec.Flush(ctx); err != nil {
		return nil, err
	}
	c, err := r.loadCall(ctx, rec.Txn(), call)
	if err != nil {
		return nil, err
	}
	w, err := r.EnvironmentFor(ctx, c.Session)
	if err != nil {
		return nil, err
	}
	results, _, err := r.revertOneCall(ctx, w, rec, c, revertMode{cause: cause})
	return results, err
}

// abort reverts and ends an open transaction, or reverts calls of it.
func (r *Reverter) abort(ctx context.Context, t *Txn, how Options) (Report, error) {
	rec := r.recorder(t).In(t.ID)
	if err := r.settleCalls(ctx, rec, t); err != nil {
		return Report{Txn: t.ID}, err
	}
	if how.limited() {
		return r.revertPart(ctx, t, how)
	}
	// Aborting needs no barrier of its own: the first Reverting record makes it
	// durable, and without one nothing was done.
	if !t.Aborting {
		if err := rec.Write(ctx, Write{Records: []CallRecord{{Body: &record.Aborting{Why: "revert"}}}}); err != nil {
			return Report{Txn: t.ID}, err
		}
	}
	dropped, err := r.drop(ctx, t, t.HeldCalls(), how.drop("abort"))
	if err != nil {
		return Report{Txn: t.ID, Items: dropped}, err
	}
	items, err := r.revertCalls(ctx, rec, t.EffectiveCalls(), how.mode("abort"))
	items = append(dropped, items...)
	if err != nil {
		return Report{Txn: t.ID, Items: items}, err
	}
	rep := reportOf(t.ID, "", items)
	//mutant:barrier
	end := Write{Records: []CallRecord{{Body: &record.Aborted{Complete: rep.Complete()}}}, End: true, Durable: true}
	if err := rec.Write(ctx, end); err != nil {
		return Report{Txn: t.ID, Items: items}, err
	}
	return rep, nil
}

// revertPart reverts calls or resources of an open transaction, which stays
// open.
func (r *Reverter) revertPart(ctx context.Context, t *Txn, how Options) (Report, error) {
	stays := func(c *Call) bool { return !how.drops(c) }
	dropped, err := r.drop(ctx, t, slices.DeleteFunc(t.HeldCalls(), stays), how.drop("revert"))
	if err != nil {
		return Report{Txn: t.ID, Items: dropped}, err
	}
	m, calls := how.mode("revert"), t.EffectiveCalls()
	if len(how.Calls) > 0 {
		calls = t.only(how.Calls)
	}
	m.only = how.filter()
	items, err := r.revertCalls(ctx, r.recorder(t).In(t.ID), m.only.within(calls), m)
	return Report{Txn: t.ID, State: TxnOpen, Items: append(dropped, items...)}, err
}

// drops reports whether the revert drops a held call. A held call has changed
// no resource.
func (u Options) drops(c *Call) bool {
	return len(u.Resources) == 0 && (len(u.Calls) == 0 || slices.Contains(u.Calls, c.Ref.Call))
}

// unclear reports whether the effect of the call cannot be determined. The
// versions tell it for a confined call, and in the roots of an observed one,
// even if the call ended as unknown because an obstacle prevented its revert.
func (c *Call) unclear() bool {
	switch c.Phase {
	case PhaseUnknown:
		return !c.Confined() && !c.Observed()
	case PhaseStarted:
		return true // its end could not be written
	case PhaseInvalid, PhaseDenied, PhasePending, PhaseHeld, PhaseDropped, PhaseDone, PhaseFailed, PhaseErased:
	}
	return false
}

func freeze(c *Call, frozen map[string]string) []effect.Result {
	why := "the outcome of call " + c.Ref.Call + " is unknown: check the resources that it may have touched"
	out := []effect.Result{{Resource: "tool://" + c.Tool.Name, Outcome: effect.Unknown, Why: why}}
	for _, ch := range c.Changes {
		frozen[ch.Resource] = c.Ref.Call
		out = append(out, effect.Result{Resource: ch.Resource, Outcome: effect.Unknown, Why: why})
	}
	return out
}

// acquire refuses a second goroutine that reverts the same transaction.
func (r *Reverter) acquire(txn string) (leave func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	//mutant:check
	if r.busy[txn] {
		return nil, fmt.Errorf("transaction %s is already being reverted: %w", txn, ErrBusy)
	}
	if r.busy == nil {
		r.busy = map[string]bool{}
	}
	r.busy[txn] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.busy, txn)
	}, nil
}

// adopt makes this opening of the journal the owner of an abandoned
// transaction. It needs no barrier: every effect of the new owner has a barrier
// after this record, and a power failure ends the new owner too.
func (r *Reverter) adopt(ctx context.Context, t *Txn) (*Txn, error) {
	if took, _ := r.ownershipOf(t.ID); took && t.Owner == r.Journal.Owner() {
		return t, nil
	}
	alive, err := r.ownerAlive(ctx, t.Owner)
	if err != nil {
		return nil, err
	}
	//mutant:check
	if alive {
		return nil, fmt.Errorf("transaction %s: %w; wait for it, or end that process", t.ID, ErrBusy)
	}
	me := r.Journal.Owner()
	err = r.recorder(t).In(t.ID).Write(ctx, Write{
		Records: []CallRecord{{Body: &record.Adopted{From: t.Owner, To: me}}},
		Take:    journal.OwnerChange{From: t.Owner, To: journal.Ownership{Txn: t.ID, Owner: me}},
	})
	if errors.Is(err, journal.ErrNotOwner) {
		return nil, fmt.Errorf("transaction %s was just taken over: %w; try again", t.ID, ErrBusy)
	}
	if err != nil {
		return nil, err
	}
	r.adoptedFor(t.ID, ownership{})
	return r.latest(ctx, t)
}

func (r *Reverter) adoptedFor(txn string, a ownership) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.adopted == nil {
		r.adopted = map[string]ownership{}
	}
	r.adopted[txn] = a
}

// ownershipOf reports whether this reverter took the transaction over, and whether a
// caller adds calls to it.
func (r *Reverter) ownershipOf(txn string) (ownershipOf, given bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ownershipOf := r.adopted[txn]
	return ownershipOf, a.toCaller
}

func (r *Reverter) recorder(t *Txn) Recorder { return NewRecorder(r.Journal, r.Host, t.Session) }

func (t *Txn) mark(name string) (at int, ok bool) {
	for i := len(t.Savepoints) - 1; i >= 0; i-- {
		if t.Savepoints[i].Name == name {
			return t.Savepoints[i].At, true
		}
	}
	return 0, false
}

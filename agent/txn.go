package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// Txn is a transaction: calls that commit or revert together. A Txn is safe for
// concurrent use. Ending it waits for the calls in flight.
type Txn struct {
	s       *Session
	prompt  *revert.Prompt // nil: none
	rec     revert.Recorder
	line    *pipeline.Pipeline
	lock    *txnLock
	counts  *txnFacts
	managed bool
	ended   bool // under lock
	going   bool // a revert has begun, under lock: no other operation is possible
	marks   []string
	outbox  outbox
	asked   atomic.Bool // its commit waited for an answer, so it is decided whatever the policy is now

	nests nestedTxns // open nested transactions
	up    *Txn       // enclosing transaction; nil: none
	nest  string     // ID as a nested transaction
}

func newTxn(s *Session, rec revert.Recorder, open map[string]disk.Root, p *revert.Prompt) *Txn {
	return makeTxn(s, rec, open, p, nil, "")
}

func makeTxn(s *Session, rec revert.Recorder, open map[string]disk.Root, p *revert.Prompt, up *Txn, nest string) *Txn {
	rec = rec.Watched(s.state.records)
	tx := &Txn{s: s, prompt: p, rec: rec, lock: newTxnLock(s.rt.services.Host), counts: &txnFacts{session: s, txn: rec.Txn()}, up: up, nest: nest}
	var beside *pipeline.Pipeline
	if up != nil {
		beside, tx.counts.up = up.line, up.counts
	}
	tx.line = pipeline.New(pipeline.Config{
		Services: s.rt.services, Tools: s.tools, Grant: s.state.grant, Principal: s.principal, Client: s.client, Data: s.data, Prompt: promptFacts(p), Recorder: rec, Roots: open,
		ResourceView: s.rt.resourceView(open), Facts: tx.counts, Memory: approvalStore{s}, Properties: &s.state.properties, Limits: s.limits, Nest: nest, Beside: beside,
	})
	return tx
}

// ID returns the transaction's ID on the journal.
func (tx *Txn) ID() string { return tx.rec.Txn() }

// Invoke runs one call. input is a tool.Args, raw JSON, or a string for a
// free-form tool. The outcome always says how the call ended. The error is nil
// exactly if the call is done or held. Otherwise it matches a sentinel for
// errors.Is: tool.ErrDenied, tool.ErrInvalid, tool.ErrFailed,
// tool.ErrUnknown...
func (tx *Txn) Invoke(ctx context.Context, name string, input any, opts ...CallOption) (tool.Outcome, error) {
	c := configured(opts)
	return tx.invoke(ctx, pipeline.Request{Request: tool.Request{
		Tool: name, Input: input, Turn: tx.s.state.nextTurn(), Progress: c.progress, OnStart: c.begun, Asked: c.asked,
	}}, c.id, c.named)
}

// refused returns the outcome of a call that did not reach a pipeline.
func (tx *Txn) refused(name string, s tool.Status, why error) tool.Outcome {
	return tool.Outcome{
		Tool: name, Txn: tx.ID(), Status: s, Changes: []tool.Change{}, Output: []byte("null"),
		Error: &tool.Problem{What: "the call did not begin", Why: why.Error()}, Text: "The call did not begin, and had no effect: " + why.Error(),
	}
}

// closedError says why a transaction takes no more calls here, although it has
// not ended. It is also ErrTxnEnded.
type closedError string

func (e closedError) Error() string        { return string(e) }
func (e closedError) Is(target error) bool { return target == ErrTxnEnded }

// usable returns an error if the transaction takes no more calls. The caller
// holds lock.
func (tx *Txn) usable() error {
	switch {
	case tx.ended:
		return fmt.Errorf("transaction %s: %w", tx.ID(), ErrTxnEnded)
	case tx.going:
		return closedError("transaction " + tx.ID() + " is being reverted, and can only be reverted")
	case tx.line.JournalFailed():
		return closedError("the journal refused a record of transaction " + tx.ID() + ", so this process makes no more calls in it and does not commit it")
	case tx.root().outbox.begun:
		return fmt.Errorf("the commit of transaction %s has begun, and it takes no more calls; commit it again, or revert it: %w", tx.ID(), ErrNotReleased)
	}
	return nil
}

// Savepoint sets a savepoint for RevertTo. Setting a name again moves it.
func (tx *Txn) Savepoint(ctx context.Context, name string) error {
	return tx.exclusive(ctx, func() error {
		if err := cmp.Or(tx.whole("a savepoint"), tx.usable()); err != nil {
			return err
		}
		if name == "" || len(name) > 64 {
			return fmt.Errorf("a savepoint's name has 1 to 64 characters: %w", tool.ErrInvalid)
		}
		if err := tx.rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Body: &record.Savepoint{Name: name}}}}); err != nil {
			return err
		}
		tx.marks = append(tx.marks, name)
		return nil
	})
}

// RevertTo reverts the calls after a savepoint. The transaction stays open. If
// the revert is not complete, the error is ErrPartialRevert.
func (tx *Txn) RevertTo(ctx context.Context, name string) (rep revert.Report, err error) {
	err = tx.exclusive(ctx, func() error {
		if err := cmp.Or(tx.whole("a savepoint"), tx.usable()); err != nil {
			return err
		}
		if !slices.Contains(tx.marks, name) {
			return fmt.Errorf("there is no savepoint %q; there is %s: %w", name, listed(tx.marks), tool.ErrInvalid)
		}
		err := tx.whileIdle(func() (err error) {
			rep, err = tx.s.rt.services.Reverter.RevertTo(context.WithoutCancel(ctx), tx.ID(), name, tx.s.principal.ID)
			return err
		})
		if err == nil { // later savepoints are gone too
			tx.marks = tx.marks[:lastIndex(tx.marks, name)+1]
		}
		return partial(rep, err)
	})
	return rep, err
}

// Commit ends the transaction and keeps its effects. Session.Revert can still
// revert them. Commit first releases the held calls, one after the other in the
// order in which they were held; Released returns their outcomes. The first one
// that does not end done stops the commit, with ErrNotReleased and the error of
// that call. The transaction is then open and takes no other call. Committing
// again continues with that call if it is known to have had no effect or if its
// tool is idempotent, and otherwise after it. Revert drops the unreleased calls
// and reverts the rest, as far as possible. Reverting the call removes it from
// the queue.
//
// Before that, the policy decides about the commit, if it has rules about
// commits and the transaction has an effect. If it asks or denies, the error is
// a *CommitError. A transaction whose commit was denied is reverted.
func (tx *Txn) Commit(ctx context.Context) error {
	if tx.managed {
		return errManaged
	}
	return tx.commit(ctx)
}

// Revert reverts the transaction as how says. The zero Options revert all of it
// and end it. If how names calls or resources, it reverts only those, with what
// depends on them, and the transaction stays open. If how.By is empty, the session's
// principal is recorded. If the revert is not complete, the error is
// ErrPartialRevert.
func (tx *Txn) Revert(ctx context.Context, how revert.Options) (rep revert.Report, err error) {
	whole := len(how.Calls)+len(how.Resources) == 0
	switch {
	case whole && tx.managed:
		return revert.Report{}, errManaged
	case tx.up != nil && whole && !how.Cascade && !how.Force && how.By == "" && how.Permit == nil:
		return tx.revert(ctx)
	}
	how.By = cmp.Or(how.By, tx.s.principal.ID)
	err = tx.exclusive(ctx, func() error {
		if err := tx.whole("taking calls back"); err != nil {
			return err
		}
		back := func() (err error) {
			rep, err = tx.s.rt.services.Reverter.Abort(context.WithoutCancel(ctx), tx.ID(), how)
			return err
		}
		if !whole {
			err := tx.whileIdle(back)
			return partial(rep, err)
		}
		tx.going = true
		if err := tx.closeNested(ctx); err != nil {
			return err
		}
		err := back()
		if err == nil {
			tx.end()
		}
		return partial(rep, err)
	})
	return rep, err
}

func (tx *Txn) commit(ctx context.Context) error {
	if tx.up != nil {
		return tx.commitNested(ctx)
	}
	return tx.exclusive(ctx, func() error {
		if err := tx.usable(); err != nil && !errors.Is(err, ErrNotReleased) {
			return err
		}
		// Another process can revert the transaction then, and does not see
		// what still runs in this one.
		return tx.whileIdle(func() error {
			if err := tx.line.WaitIdle(ctx); err != nil {
				return fmt.Errorf("%w; commit again, or revert", err)
			}
			decided, err := tx.decideCommit(ctx)
			if err != nil {
				return err
			}
			if decided, err = tx.release(ctx, decided); err != nil {
				return err
			}
			err = tx.rec.Commit(ctx, decided...)
			if err == nil {
				tx.end()
			}
			return err
		})
	})
}

func (tx *Txn) revert(ctx context.Context) (rep revert.Report, err error) {
	if tx.up != nil {
		return tx.revertNested(ctx)
	}
	err = tx.exclusive(ctx, func() error {
		// A revert continues if its caller disconnects.
		tx.going = true
		if err := tx.closeNested(ctx); err != nil {
			return err
		}
		rep, err = tx.s.rt.services.Reverter.Abort(context.WithoutCancel(ctx), tx.ID(), revert.Options{By: tx.s.principal.ID})
		if err == nil {
			tx.end()
		}
		return partial(rep, err)
	})
	return rep, err
}

func (tx *Txn) end() {
	tx.ended = true
	if tx.up != nil {
		tx.up.nests.drop(tx)
		return
	}
	tx.s.rt.live.drop(tx.ID())
}

// exclusive runs fn with no call in flight.
func (tx *Txn) exclusive(ctx context.Context, fn func() error) error {
	leave, err := tx.lock.alone(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if tx.ended {
		return fmt.Errorf("transaction %s: %w", tx.ID(), ErrTxnEnded)
	}
	return fn()
}

func lastIndex(marks []string, name string) int {
	for i := len(marks) - 1; i >= 0; i-- {
		if marks[i] == name {
			return i
		}
	}
	return -1
}

func listed(marks []string) string {
	if len(marks) == 0 {
		return "none"
	}
	return strings.Join(marks, ", ")
}

// openTxns are the transactions that this runtime began and that have not
// ended.
type openTxns struct {
	mu  sync.Mutex // never held across a wait
	txn map[string]*Txn
}

func (l *openTxns) add(tx *Txn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.txn == nil {
		l.txn = map[string]*Txn{}
	}
	l.txn[tx.ID()] = tx
}

func (l *openTxns) get(id string) (*Txn, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tx, ok := l.txn[id]
	return tx, ok
}

func (l *openTxns) drop(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.txn, id)
}

// width bounds the concurrent calls of one transaction.
const width = 64

// txnLock lets many calls run, or one end of the transaction, never both. It
// consists of locks that wait with a context, so a call that does not return
// does not block callers forever.
type txnLock struct {
	entry *host.Lock // held for exclusive use, and briefly to share
	slots chan struct{}
	host  host.Host
}

func newTxnLock(h host.Host) *txnLock {
	return &txnLock{entry: host.NewLock(h, "txn.turn"), slots: make(chan struct{}, width), host: h}
}

func (t *txnLock) share(ctx context.Context) (func(), error) {
	if err := t.entry.Lock(ctx); err != nil {
		return nil, err
	}
	defer t.entry.Unlock()
	if err := t.take(ctx); err != nil {
		return nil, err
	}
	return func() { <-t.slots }, nil
}

func (t *txnLock) alone(ctx context.Context) (func(), error) {
	if err := t.entry.Lock(ctx); err != nil {
		return nil, err
	}
	for i := range width {
		if err := t.take(ctx); err != nil {
			t.give(i)
			t.entry.Unlock()
			return nil, err
		}
	}
	return func() {
		t.give(width)
		t.entry.Unlock()
	}, nil
}

func (t *txnLock) take(ctx context.Context) error {
	if err := t.host.Point(ctx, "txn.slot"); err != nil {
		return err
	}
	select {
	case t.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *txnLock) give(n int) {
	for range n {
		<-t.slots
	}
}

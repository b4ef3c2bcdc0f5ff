package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// Txn is a transaction: calls that commit or are taken back together. It is safe
// for concurrent use; ending it waits for the calls in flight.
type Txn struct {
	s       *Session
	rec     revert.Recorder
	line    *tool.Pipeline
	turn    *txnLock
	counts  *txnFacts
	managed bool
	ended   bool // under turn
	going   bool // being taken back, under turn: nothing else can be done with it any more
	marks   []string
	outbox  outbox

	nests nestedTxns // open ones inside it
	up    *Txn       // that it is in; nil: none
	nest  string     // its name in there
}

func newTxn(s *Session, rec revert.Recorder, open map[string]disk.Root) *Txn {
	return makeTxn(s, rec, open, nil, "")
}

func makeTxn(s *Session, rec revert.Recorder, open map[string]disk.Root, up *Txn, nest string) *Txn {
	rec = rec.Watched(s.standing.tally.records)
	tx := &Txn{s: s, rec: rec, turn: newTurn(s.rt.host), counts: &txnFacts{session: s, txn: rec.Txn()}, up: up, nest: nest}
	var beside *tool.Pipeline
	if up != nil {
		beside, tx.counts.up = up.line, up.counts
	}
	tx.line = tool.PipelineConfig{
		Nest: nest, Beside: beside,
		Key: callstate.NewKey(), Host: s.rt.host, Tools: s.tools, Engine: s.rt.engine, Approver: s.rt.approver, Wait: s.rt.wait, Waiting: s.rt.onWaiting, Asker: s.rt.asker,
		Grant: s.standing.grant, Principal: s.principal, Client: s.client, Recorder: rec, Reverter: s.rt.reverter, Roots: open, Drivers: s.rt.drivers,
		World: s.rt.world(open), Facts: tx.counts, Memory: approvalStore{s}, Limits: s.limits, Waits: &s.rt.waits, Progress: s.rt.progress,
		Filters: s.rt.filters, Properties: &s.standing.properties, Panicked: s.rt.panicked,
	}.Pipeline()
	return tx
}

// ID names the transaction on the journal.
func (tx *Txn) ID() string { return tx.rec.Txn() }

// Invoke runs one call. Input is a tool.Args, raw JSON, or a string for a
// free-form tool. The outcome always says how the call ended; the error is nil
// exactly when it is done or held, and else tells the outcomes apart by
// errors.Is: tool.ErrDenied, tool.ErrInvalid, tool.ErrFailed, tool.ErrUnknown...
func (tx *Txn) Invoke(ctx context.Context, name string, input any, opts ...CallOption) (tool.Outcome, error) {
	c := configured(opts)
	return tx.invoke(ctx, tool.Request{Tool: name, Input: input, Turn: tx.s.standing.nextTurn(), Progress: c.progress, OnStart: c.begun, Asked: c.asked}, c.given, c.named)
}

// refused is the outcome of a call that no line ever saw.
func (tx *Txn) refused(name string, s tool.Status, why error) tool.Outcome {
	return tool.Outcome{
		Tool: name, Txn: tx.ID(), Status: s, Changes: []tool.Change{}, Output: []byte("null"),
		Error: &tool.Problem{What: "the call did not begin", Why: why.Error()}, Text: "The call did not begin, and had no effect: " + why.Error(),
	}
}

// usable is called under turn.
func (tx *Txn) usable() error {
	switch {
	case tx.ended:
		return fmt.Errorf("transaction %s: %w", tx.ID(), ErrTxnEnded)
	case tx.going:
		return fmt.Errorf("transaction %s is being taken back and can only be reverted: %w", tx.ID(), ErrTxnEnded)
	case tx.line.JournalFailed():
		return fmt.Errorf("the journal does not hold all that transaction %s did, so it can only be reverted: %w", tx.ID(), ErrTxnEnded)
	case tx.root().outbox.begun:
		return fmt.Errorf("the commit of transaction %s has begun, and it takes no more calls; commit it again, or revert it: %w", tx.ID(), ErrNotReleased)
	}
	return nil
}

// Savepoint names this point, for RevertTo. Setting a name again moves it.
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

// RevertTo takes back what was done after a savepoint; the transaction stays
// open. A report that is not complete comes with ErrPartialRevert.
func (tx *Txn) RevertTo(ctx context.Context, name string) (rep revert.Report, err error) {
	err = tx.exclusive(ctx, func() error {
		if err := cmp.Or(tx.whole("a savepoint"), tx.usable()); err != nil {
			return err
		}
		if !slices.Contains(tx.marks, name) {
			return fmt.Errorf("there is no savepoint %q; there is %s: %w", name, listed(tx.marks), tool.ErrInvalid)
		}
		err := tx.whileIdle(func() (err error) {
			rep, err = tx.s.rt.reverter.RevertTo(context.WithoutCancel(ctx), tx.ID(), name, tx.s.principal.ID)
			return err
		})
		if err == nil { // later savepoints went with what they stood behind
			tx.marks = tx.marks[:lastIndex(tx.marks, name)+1]
		}
		return partial(rep, err)
	})
	return rep, err
}

// Commit ends the transaction; its effects stay, and can still be taken back by
// Session.Revert. Calls that were held are released first, one after the other in
// the order in which they were held; Released tells what became of them. The first
// one that does not end done stops the commit, with ErrNotReleased beside the error
// of that call. The transaction is then open and takes no other call: committing
// again goes on, with that call if it is known to have had no effect, or if its tool
// is idempotent, and else past it; Revert lets go of what was not released and takes
// back the rest, as far as it can be; Undo of the call takes it out of the queue.
func (tx *Txn) Commit(ctx context.Context) error {
	if tx.managed {
		return ErrManaged
	}
	return tx.commit(ctx)
}

// Revert takes the whole transaction back and ends it. A report that is not
// complete comes with ErrPartialRevert.
func (tx *Txn) Revert(ctx context.Context) (revert.Report, error) {
	if tx.managed {
		return revert.Report{}, ErrManaged
	}
	return tx.revert(ctx)
}

// Undo takes the transaction back as how says. Where how names calls it takes back
// only those, with what lies on them, and the transaction stays open. Where how
// names nobody the session's principal asks. A report that is not complete comes
// with ErrPartialRevert.
func (tx *Txn) Undo(ctx context.Context, how revert.Options) (rep revert.Report, err error) {
	whole := len(how.Calls) == 0
	how.By = cmp.Or(how.By, tx.s.principal.ID)
	if whole && tx.managed {
		return revert.Report{}, ErrManaged
	}
	err = tx.exclusive(ctx, func() error {
		if err := tx.whole("taking calls back"); err != nil {
			return err
		}
		back := func() (err error) {
			rep, err = tx.s.rt.reverter.Abort(context.WithoutCancel(ctx), tx.ID(), how)
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
		// Who takes the transaction back then may be another process, which knows
		// nothing of what is still going on in this one.
		return tx.whileIdle(func() error {
			if err := tx.line.WaitIdle(ctx); err != nil {
				return fmt.Errorf("%w; commit again, or revert", err)
			}
			if err := tx.release(ctx); err != nil {
				return err
			}
			err := tx.rec.Commit(ctx)
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
		// Taking back is not given up half-way because its caller went away.
		tx.going = true
		if err := tx.closeNested(ctx); err != nil {
			return err
		}
		rep, err = tx.s.rt.reverter.Abort(context.WithoutCancel(ctx), tx.ID(), revert.Options{By: tx.s.principal.ID})
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
	leave, err := tx.turn.alone(ctx)
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

// openTxns are the transactions that this runtime began and that have not ended.
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

// width is how many calls of one transaction run at once at most.
const width = 64

// txnLock lets many calls run, or one end of the transaction, never both. It is
// made of locks that wait with a context, so that nobody is stuck behind a call
// that does not return.
type txnLock struct {
	entry *host.Lock // taken to be alone, and for a moment to share
	slots chan struct{}
	host  host.Host
}

func newTurn(h host.Host) *txnLock {
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

package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/toolstate"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// ErrNestedOpen says that a nested transaction is neither committed nor
// reverted.
var ErrNestedOpen = errors.New("a transaction inside it is open")

// nestedTxns are the open nested transactions of a transaction.
type nestedTxns struct {
	mu     sync.Mutex // never held across a wait
	open   []*Txn
	closed bool // no other can begin
}

func (n *nestedTxns) add(tx *Txn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.open = append(n.open, tx)
	return true
}

func (n *nestedTxns) drop(tx *Txn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = slices.DeleteFunc(n.open, func(o *Txn) bool { return o == tx })
}

func (n *nestedTxns) list() []*Txn {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.open)
}

// close prevents new nested transactions. Unless all is set, it does so only if
// none is open.
func (n *nestedTxns) close(all bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.open) > 0 && !all {
		return false
	}
	n.closed = true
	return true
}

func (n *nestedTxns) reopen() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = false
}

// BeginNested begins a nested transaction for calls of a session: this session,
// or one that it delegated to. The calls have the principal and the grant of
// that session. Revert reverts the nested transaction alone. Commit makes it a
// part of this transaction. Reverting this transaction reverts it too, whether
// it has ended or not. A crash leaves it open inside an open transaction:
// Runtime.ResumeTxn restores it, see Nested.
//
// A running call can begin a nested transaction, and must end it before it
// returns. Concurrent calls see its effects: if they change the same resources
// later, its revert has a conflict.
func (tx *Txn) BeginNested(ctx context.Context, s *Session) (*Txn, error) {
	if !tx.s.above(s) {
		return nil, fmt.Errorf("the session is neither that of transaction %s nor was handed on from it: %w", tx.ID(), tool.ErrInvalid)
	}
	if err := s.CheckValid(ctx); err != nil {
		return nil, fmt.Errorf("nest: %w", err)
	}
	in := tx.inside(s, host.NewID(s.rt.services.Host, "n_"))
	if !tx.nests.add(in) {
		return nil, fmt.Errorf("transaction %s: %w", tx.ID(), ErrTxnEnded)
	}
	// No barrier: the first durable record of its calls makes it durable too.
	body := &record.Nested{ID: in.nest, In: tx.nest, Session: s.id}
	s.state.moves.noteNested(tx.ID(), 1)
	if err := tx.rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Session: s.id, Body: body}}}); err != nil {
		s.state.moves.noteNested(tx.ID(), -1)
		tx.nests.drop(in)
		return nil, fmt.Errorf("nest: %w", err)
	}
	if s.id != tx.s.id { // another process can have it
		if err := s.catchUp(ctx, tx.ID()); err != nil {
			_, back := in.revert(context.WithoutCancel(ctx))
			return nil, errors.Join(fmt.Errorf("nest: %w", err), back)
		}
	}
	return in, nil
}

// UpdateNested runs fn in a nested transaction, as Session.Update does. It
// commits if fn returns nil, reverts if fn returns an error or panics, and
// leaves the transaction open if the error is tool.ErrPending.
func (tx *Txn) UpdateNested(ctx context.Context, s *Session, fn func(tx *Txn) error) error {
	in, err := tx.BeginNested(ctx, s)
	if err != nil {
		return err
	}
	_, err = in.manage(ctx, fn)
	return err
}

// Nested returns the open nested transactions of this one, oldest first.
func (tx *Txn) Nested() []*Txn { return tx.nests.list() }

// NestedID returns the ID of a nested transaction, or "" for a transaction that
// is not nested. ID returns the ID of the outermost one.
func (tx *Txn) NestedID() string { return tx.nest }

// above reports whether a session is s, or has a delegation from s.
func (s *Session) above(other *Session) bool {
	if other == nil || other.rt != s.rt {
		return false
	}
	for st := other.state; st != nil; st = st.from {
		if st == s.state {
			return true
		}
	}
	return false
}

// inside makes a nested transaction of tx.
func (tx *Txn) inside(s *Session, nest string) *Txn {
	rec := revert.NewRecorder(s.rt.journal, s.rt.services.Host, s.id).In(tx.ID())
	return makeTxn(s, rec, s.roots, tx.prompt, tx, nest)
}

// commitNested makes the calls of a nested transaction part of the enclosing
// one.
func (tx *Txn) commitNested(ctx context.Context) error {
	return tx.exclusive(ctx, func() error {
		if err := tx.usable(); err != nil {
			return err
		}
		return tx.whileIdle(func() error {
			t, err := revert.Load(ctx, tx.s.rt.journal, tx.ID())
			if err != nil {
				return err
			}
			for _, c := range t.Calls {
				if c.Phase == revert.PhasePending && c.Asked.Nest == tx.nest {
					return fmt.Errorf("call %s of it waits for approval: %w", c.Ref.Call, tool.ErrPending)
				}
			}
			// No barrier: until the outermost transaction commits, either state
			// can be reverted.
			body := &record.NestEnded{ID: tx.nest}
			if err := tx.rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Body: body}}}); err != nil {
				return err
			}
			tx.end()
			return nil
		})
	})
}

// revertNested reverts a nested transaction alone.
func (tx *Txn) revertNested(ctx context.Context) (rep revert.Report, err error) {
	err = tx.exclusive(ctx, func() error {
		tx.going = true
		if err := tx.closeNested(ctx); err != nil {
			return err
		}
		leave, err := tx.lockToolStates(ctx)
		if err != nil {
			return err
		}
		defer leave()
		rep, err = tx.s.rt.services.Reverter.RevertNested(context.WithoutCancel(ctx), tx.ID(), tx.nest)
		if err == nil {
			tx.end()
		}
		return partial(rep, err)
	})
	return rep, err
}

// lockToolStates locks each tool state that calls of the nested transaction left.
// Concurrent calls continue, and one of them can be using the same state.
func (tx *Txn) lockToolStates(ctx context.Context) (leave func(), err error) {
	t, err := revert.Load(ctx, tx.s.rt.journal, tx.ID())
	if err != nil {
		return nil, err
	}
	return tx.line.LockResources(ctx, tx.nest, t.NestedResources(tx.nest, toolstate.SchemeName))
}

// whileIdle runs fn while no nested transaction is open. If fn ends the
// transaction, none can begin afterwards. The caller holds the lock of the transaction.
func (tx *Txn) whileIdle(fn func() error) error {
	if !tx.nests.close(false) {
		return fmt.Errorf("transaction %s: %w: commit or revert it first", tx.ID(), ErrNestedOpen)
	}
	err := fn()
	if !tx.ended && !tx.outbox.begun {
		tx.nests.reopen()
	}
	return err
}

// closeNested ends the nested transactions of a transaction that is reverted.
// It waits for their calls in flight and prevents later ones. The caller holds
// turn.
func (tx *Txn) closeNested(ctx context.Context) error {
	tx.nests.close(true)
	for _, in := range tx.nests.list() {
		leave, err := in.lock.alone(ctx)
		if err != nil {
			return err
		}
		in.ended = true
		err = in.closeNested(ctx)
		leave()
		if err != nil {
			return err
		}
		tx.nests.drop(in)
	}
	return nil
}

// whole refuses an operation that only an outermost transaction supports.
func (tx *Txn) whole(what string) error {
	if tx.nest == "" {
		return nil
	}
	return fmt.Errorf("%s is of the whole transaction; inside it, nest again: %w", what, tool.ErrInvalid)
}

// holder returns the open transaction of a call: this one, or a nested one.
func (tx *Txn) holder(nest string) (*Txn, bool) {
	if tx.nest == nest {
		return tx, true
	}
	for _, in := range tx.nests.list() {
		if found, ok := in.holder(nest); ok {
			return found, true
		}
	}
	return nil, false
}

// renest restores the nested transactions that were open when their process
// ended.
func (tx *Txn) renest(ctx context.Context, t *revert.Txn) error {
	for _, n := range t.Nested {
		in, ok := tx.holder(n.In)
		if n.Ended || !ok {
			continue
		}
		s, err := tx.s.rt.sessionByID(ctx, n.Session)
		if err != nil {
			return err
		}
		in.nests.add(in.inside(s, n.ID))
	}
	return nil
}

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

// ErrNestedOpen says that a transaction inside this one has neither joined it nor
// been taken back.
var ErrNestedOpen = errors.New("a transaction inside it is open")

// nestedTxns are the open transactions inside one.
type nestedTxns struct {
	mu     sync.Mutex // never held across a wait
	open   []*Txn
	closed bool // no other may begin
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

// close lets no other begin. Unless all is set it does so only where none is
// open.
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

// BeginNested begins a transaction inside this one, for calls of a session: this one, or
// one that it was handed on to, whose principal and grant they have. What it does
// is taken back alone by Revert, or stays as part of this transaction by Commit;
// taking this one back takes it along, whether it has ended or not. A crash leaves
// it open inside an open transaction: Runtime.ResumeTxn finds it again, see Nests.
//
// A call may begin one while it runs, and must end it before it returns. Its
// effects are no secret from calls beside it: what they put on top of them is a
// conflict when it is taken back.
func (tx *Txn) BeginNested(ctx context.Context, s *Session) (*Txn, error) {
	if !tx.s.above(s) {
		return nil, fmt.Errorf("the session is neither that of transaction %s nor was handed on from it: %w", tx.ID(), tool.ErrInvalid)
	}
	if err := s.Stands(ctx); err != nil {
		return nil, fmt.Errorf("nest: %w", err)
	}
	in := tx.inside(s, host.NewID(s.rt.host, "n_"))
	if !tx.nests.add(in) {
		return nil, fmt.Errorf("transaction %s: %w", tx.ID(), ErrTxnEnded)
	}
	// No barrier: the first durable record of its calls makes it durable too.
	body := &record.Nested{ID: in.nest, In: tx.nest, Session: s.id}
	if err := tx.rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Body: body}}}); err != nil {
		tx.nests.drop(in)
		return nil, fmt.Errorf("nest: %w", err)
	}
	return in, nil
}

// UpdateNested runs fn in a transaction inside this one, as Session.Update does: it stays
// where fn returns nil, is taken back where fn returns an error or panics, and is
// left open where the error is tool.ErrPending.
func (tx *Txn) UpdateNested(ctx context.Context, s *Session, fn func(tx *Txn) error) error {
	in, err := tx.BeginNested(ctx, s)
	if err != nil {
		return err
	}
	_, err = in.manage(ctx, fn)
	return err
}

// Nested lists the open transactions inside this one, oldest first.
func (tx *Txn) Nested() []*Txn { return tx.nests.list() }

// NestedID names a transaction that is inside another; ID names the whole. It is
// empty for one that is not.
func (tx *Txn) NestedID() string { return tx.nest }

// above reports whether a session is s, or holds what s handed on.
func (s *Session) above(other *Session) bool {
	if other == nil || other.rt != s.rt {
		return false
	}
	for st := other.standing; st != nil; st = st.from {
		if st == s.standing {
			return true
		}
	}
	return false
}

// inside makes a transaction inside tx.
func (tx *Txn) inside(s *Session, nest string) *Txn {
	rec := revert.NewRecorder(s.rt.journal, s.rt.host, s.id).In(tx.ID())
	return makeTxn(s, rec, s.roots, tx, nest)
}

// commitNested makes the calls of a nested transaction those of what it is in.
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
			// No barrier: until the whole commits it can be taken back either way.
			body := &record.NestEnded{ID: tx.nest}
			if err := tx.rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Body: body}}}); err != nil {
				return err
			}
			tx.end()
			return nil
		})
	})
}

// revertNested takes a nested transaction back, alone.
func (tx *Txn) revertNested(ctx context.Context) (rep revert.Report, err error) {
	err = tx.exclusive(ctx, func() error {
		tx.going = true
		if err := tx.closeNested(ctx); err != nil {
			return err
		}
		leave, err := tx.turns(ctx)
		if err != nil {
			return err
		}
		defer leave()
		rep, err = tx.s.rt.reverter.RevertNested(context.WithoutCancel(ctx), tx.ID(), tx.nest)
		if err == nil {
			tx.end()
		}
		return partial(rep, err)
	})
	return rep, err
}

// turns takes the turn for each state that calls of the nested transaction left: calls
// beside it may go on, and one of them may be working on the same state.
func (tx *Txn) turns(ctx context.Context) (leave func(), err error) {
	t, err := revert.Load(ctx, tx.s.rt.journal, tx.ID())
	if err != nil {
		return nil, err
	}
	return tx.line.LockResources(ctx, tx.nest, t.NestedResources(tx.nest, toolstate.SchemeName))
}

// whileIdle runs fn while nothing is open inside the transaction, and keeps it so
// where fn ends the transaction. It is called under turn.
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

// closeNested ends what is open inside a transaction that is taken back: their calls in
// flight are waited for, and later ones refused. It is called under turn.
func (tx *Txn) closeNested(ctx context.Context) error {
	tx.nests.close(true)
	for _, in := range tx.nests.list() {
		leave, err := in.turn.alone(ctx)
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

// whole refuses what only a transaction that is in no other can do.
func (tx *Txn) whole(what string) error {
	if tx.nest == "" {
		return nil
	}
	return fmt.Errorf("%s is of the whole transaction; inside it, nest again: %w", what, tool.ErrInvalid)
}

// holder finds the open transaction of a call: this one, or one inside it.
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

// renest finds again what was open inside a transaction when its process ended.
func (tx *Txn) renest(ctx context.Context, t *revert.Txn) error {
	for _, n := range t.Nested {
		in, ok := tx.holder(n.In)
		if n.Ended || !ok {
			continue
		}
		s, _, err := tx.s.rt.sessionByID(ctx, n.Session)
		if err != nil {
			return err
		}
		in.nests.add(in.inside(s, n.ID))
	}
	return nil
}

package mcp

import (
	"context"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Calls that name no transaction join the current transaction of the session. A
// client relies on the one that it began until it ends it. The journal holds
// what the server knows of it. If another program ended it, no call runs before
// the client was told.

// The journal marks of a transaction that began as the current one, and of one
// that its client ended.
const (
	markCurrent = "remit.dev/current"
	markParting = "remit.dev/current-ends"
)

// currentTxn is the transaction of calls that name none. The zero currentTxn
// means that there is none.
type currentTxn struct {
	txn  string
	gone bool // another program ended it
}

// err returns why calls that name no transaction do not run.
func (c currentTxn) err() error {
	if !c.gone {
		return nil
	}
	return fmt.Errorf("transaction %q, which this session began as its current one, is not open any more, and its client did not end it: nothing was run. Ask txn_status for it; then calls that name no transaction are by themselves again", c.txn)
}

// isCurrent reports whether a transaction began as the current one of its
// session.
func isCurrent(t *revert.Txn) bool { return marked(t, markCurrent) }

func marked(t *revert.Txn, name string) bool {
	return slices.ContainsFunc(t.Savepoints, func(m revert.Savepoint) bool { return m.Name == name })
}

// currentOf finds the session's transaction that last began as the current one.
func currentOf(ctx context.Context, j journal.Journal, session string) (c currentTxn, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("mcp: the current transaction of session %s: %w", session, err)
		}
	}()
	for e, err := range j.Entries(ctx, journal.Query{Session: session, Kinds: []record.Kind{record.KindSavepoint}, Newest: true}) {
		if err != nil {
			return c, err
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return c, err
		}
		if mark, ok := rec.Body.(*record.Savepoint); !ok || mark.Name != markCurrent {
			continue
		}
		t, err := revert.Load(ctx, j, rec.Txn)
		if err != nil {
			return c, err
		}
		if open := t.End == "" && !t.Aborting; open || !marked(t, markParting) {
			return currentTxn{txn: t.ID, gone: !open}, nil
		}
		break
	}
	return c, nil
}

// makeCurrent marks a transaction as the current one. The mark is durable, so
// that the client continues in it after a power failure too.
func (c *call) makeCurrent(ctx context.Context, tx *agent.Txn) error {
	if err := tx.Savepoint(ctx, markCurrent); err != nil {
		return err
	}
	if err := c.s.rt.Journal().Append(ctx, journal.Batch{Durable: true}); err != nil {
		return fmt.Errorf("the journal could not be written: %w", err)
	}
	c.st.setCurrent(currentTxn{txn: tx.ID()})
	return nil
}

// recordCurrentEnd records that the client itself ends its current transaction.
// If the record fails, the transaction ends all the same, and the client is
// told once more.
func (c *call) recordCurrentEnd(ctx context.Context, txn string) {
	if c.st.currentTxn().txn != txn {
		return
	}
	if tx, err := c.st.session.ResumeTxn(ctx, txn); err == nil {
		_ = tx.Savepoint(context.WithoutCancel(ctx), markParting)
	}
}

func (st *clientSession) setCurrent(c currentTxn) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.current = c
	st.openTxns[c.txn] = true
}

func (st *clientSession) currentTxn() currentTxn {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.current
}

// lost notes that a transaction is not open although its client can believe it
// is.
func (st *clientSession) lost(txn string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.removeTxn(txn)
	if st.current.txn == txn {
		st.current.gone = true
	}
}

// markReported notes that the client knows the state of a transaction.
func (st *clientSession) markReported(txn string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.current.txn == txn && st.current.gone {
		st.current = currentTxn{}
	}
}

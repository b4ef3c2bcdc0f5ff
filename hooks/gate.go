package hooks

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/tool"
)

// commit commits a transaction. If its commit waits for an approval, that is no
// error: the transaction stays open, and commitWaiting ends it after the answer.
// So it does if the policy could not decide.
func (w *Workspace) commit(ctx context.Context, tx *agent.Txn) error {
	err := tx.Commit(context.WithoutCancel(ctx))
	var gate *agent.CommitError
	if !errors.As(err, &gate) || errors.Is(err, tool.ErrDenied) {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uncommitted = append(w.uncommitted, tx)
	if errors.Is(err, tool.ErrPending) {
		return nil
	}
	return err
}

// commitWaiting commits again what waited for an approval when it should have
// committed. What has no answer waits on.
func (w *Workspace) commitWaiting(ctx context.Context) (err error) {
	w.mu.Lock()
	all := w.uncommitted
	w.uncommitted = nil
	w.mu.Unlock()
	for _, tx := range all {
		one := w.commit(ctx, tx)
		if !errors.Is(one, agent.ErrTxnEnded) { // a person has reverted it
			err = errors.Join(err, one)
		}
	}
	return err
}

package agent

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// stands reads which answer to a call counts, after this one is on the journal.
// Another process can have answered between the checks and the write. It
// revokes the remembered approvals of an approval that does not count.
func (rt *Runtime) stands(ctx context.Context, r Answer, digest string, kept ...revert.CallRecord) error {
	_, c, err := revert.LoadCall(ctx, rt.journal, r.Call)
	if err != nil {
		return fmt.Errorf("the answer is on the journal; whether it counts: %w", err)
	}
	switch a := c.Answered; {
	case a == nil || a.Digest != digest: // it has gone on, or asks something else by now
		return nil
	case r.Approved && !a.Approved:
		for _, k := range kept {
			if b, ok := k.Body.(*record.Remembered); ok {
				if err := rt.Revoke(ctx, b.ID, r.By, "the call was refused at the same time"); err != nil {
					return err
				}
			}
		}
		return fmt.Errorf("call %s was refused by %s at the same time, and what was refused stays refused: the agent has to call again: %w", r.Call, a.By, tool.ErrInvalid)
	case !r.Approved && c.Asked != nil && !c.Asked.During && c.Phase != revert.PhasePending && c.Phase != revert.PhaseDenied:
		return fmt.Errorf("call %s went on before it was refused: it is %s: %w", r.Call, c.Phase, tool.ErrInvalid)
	}
	return nil
}

// commitStands does the same for the commit of a transaction.
func (rt *Runtime) commitStands(ctx context.Context, r Answer, id string) error {
	t, err := revert.Load(ctx, rt.journal, r.Txn)
	if err != nil {
		return fmt.Errorf("the answer is on the journal; whether it counts: %w", err)
	}
	for _, d := range t.Commits {
		if a := d.Answered; d.ID == id && r.Approved && a != nil && !a.Approved {
			return fmt.Errorf("the commit of transaction %s was refused by %s at the same time, and what was refused stays refused: %w", r.Txn, a.By, tool.ErrInvalid)
		}
	}
	if !r.Approved && (t.Committing || t.End == record.KindCommitted) {
		return fmt.Errorf("the commit of transaction %s went on before it was refused: %w", r.Txn, tool.ErrInvalid)
	}
	return nil
}

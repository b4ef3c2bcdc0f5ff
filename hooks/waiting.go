package hooks

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// waiting is a call that waits for an approval, alone in its transaction.
type waiting struct {
	txn  *agent.Txn
	call string
}

// maxRecalled bounds the approval requests of earlier openings of a session
// that count when it is opened again.
const maxRecalled = 64

// recall finds what waited for an approval when the session was open before. A
// client can end between the request and the approval, such as one that runs a
// process for each prompt, and so can the resident process.
func (one *session) recall(ctx context.Context) error {
	j := one.space.Runtime.Journal()
	for e, err := range j.Entries(ctx, journal.Query{Session: one.agent.ID(), Kinds: []record.Kind{record.KindAsked}, Newest: true, Limit: maxRecalled}) {
		if err == nil {
			err = one.recallCall(ctx, j, e.Header.Call)
		}
		if err != nil {
			return fmt.Errorf("what session %s waits for: %w", one.agent.ID(), err)
		}
	}
	return nil
}

func (one *session) recallCall(ctx context.Context, j journal.Journal, id string) error {
	t, c, err := revert.LoadCall(ctx, j, id)
	if err != nil || c.Asked == nil {
		return err
	}
	use := digestOf(c.Asked.Tool.Name, c.Asked.Input)
	if _, known := one.waiting[use]; known {
		return nil
	}
	if t.End != "" || t.Aborting || c.Phase != revert.PhasePending {
		one.asked[use] = true
		return nil
	}
	tx, err := one.agent.ResumeTxn(ctx, t.ID)
	if err == nil {
		one.waiting[use] = waiting{tx, id}
	}
	return err
}

// digestOf identifies a call by its tool and its canonical arguments.
func digestOf(name string, args []byte) string {
	return string(canon.Sum("remit/hooks/call", []byte(name), args))
}

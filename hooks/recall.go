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

// recall finds what a session needs that was open before: the prompt, and what
// waits for an approval. A client can end between the request and the approval,
// such as one that runs a process for each prompt, and so can the resident
// process.
func (one *session) recall(ctx context.Context, e Event) error {
	j := one.space.Runtime.Journal()
	if err := one.recallPrompt(ctx, j, e); err != nil {
		return fmt.Errorf("the last prompt of session %s: %w", one.agent.ID(), err)
	}
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

// recallPrompt continues the prompt of the newest transaction if the resident
// process ended before the prompt: the client does not report its start again.
func (one *session) recallPrompt(ctx context.Context, j journal.Journal, e Event) error {
	for begun, err := range j.Entries(ctx, journal.Query{Session: one.agent.ID(), Kinds: []record.Kind{record.KindBegun}, Newest: true, Limit: 1}) {
		if err != nil {
			return err
		}
		p, err := revert.PromptOf(ctx, j, begun.Header.Txn)
		if err != nil || p == nil {
			return err
		}
		if is, err := continues(ctx, j, begun.Header.Txn, p.ID, e); err != nil || !is {
			return err
		}
		one.prompt = prompt{id: p.ID, text: p.Text, given: e.Prompt != ""}
	}
	return nil
}

// continues reports whether an event belongs to the prompt of a transaction. If
// the client gives no ID of the prompt, a prompt continues whose transaction
// another process had to take over.
func continues(ctx context.Context, j journal.Journal, txn, id string, e Event) (bool, error) {
	if e.Prompt != "" {
		return printableID(e.Prompt) == id, nil
	}
	for _, err := range j.Entries(ctx, journal.Query{Txn: txn, Kinds: []record.Kind{record.KindAdopted}, Limit: 1}) {
		return err == nil, err
	}
	return false, nil
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

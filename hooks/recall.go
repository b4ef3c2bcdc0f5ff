package hooks

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// maxRecalled bounds the approval requests of earlier openings of a session
// that count when it is opened again.
const maxRecalled = 64

// recall finds what a session needs that was open before: the prompt, and what
// waits for an approval. A client can end between the request and the approval,
// such as one that runs a process for each prompt, and so can the resident
// process.
func (one *session) recall(ctx context.Context, e Event) error {
	failed := one.findWaiting(ctx, e)
	j := one.space.Runtime.Journal()
	if one.txn == nil && one.prompt == (prompt{}) { // otherwise it is known
		failed = errors.Join(failed, one.recallPrompt(ctx, j, e))
	}
	for e, err := range j.Entries(ctx, journal.Query{Session: one.agent.ID(), Kinds: []record.Kind{record.KindAsked}, Newest: true, Limit: maxRecalled}) {
		if err == nil {
			err = one.recallCall(ctx, j, e.Header.Call)
		}
		failed = errors.Join(failed, err)
	}
	return failed
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
		if is, err := belongs(ctx, j, begun.Header.Txn, p.ID, e); err != nil || !is {
			return err
		}
		one.prompt = prompt{id: p.ID, text: p.Text, given: e.Prompt != ""}
	}
	return nil
}

// belongs reports whether an event belongs to the prompt of a transaction. If
// the client gives no ID of the prompt, a prompt continues whose transaction
// another process had to take over.
func belongs(ctx context.Context, j journal.Journal, txn, id string, e Event) (bool, error) {
	if e.Prompt != "" {
		return printableID(e.Prompt) == id, nil
	}
	for _, err := range j.Entries(ctx, journal.Query{Txn: txn, Kinds: []record.Kind{record.KindAdopted}, Limit: 1}) {
		return err == nil, err
	}
	return false, nil
}

// recallCall notes a call that waited and that nobody can approve any more. It
// asks again, alone in its transaction.
func (one *session) recallCall(ctx context.Context, j journal.Journal, id string) error {
	_, c, err := revert.LoadCall(ctx, j, id)
	if err != nil || c.Asked == nil {
		return err
	}
	use := callDigest(c.Asked.Tool.Name, c.Asked.Input)
	if _, waits := one.waiting[use]; !waits {
		one.asked[use] = true
	}
	return nil
}

package revert

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Prompt is the prompt of a user to a coding agent that the calls of a
// transaction follow.
type Prompt struct {
	Client string
	ID     string // the client's ID
	Text   string // first words; empty: unknown
	Erased bool   // the words were erased

	record string // ID of the record with the words
}

// BeginPrompt begins a transaction like Begin, for the calls that follow a
// prompt. The record of the words is written in the same step.
func (r Recorder) BeginPrompt(ctx context.Context, txn string, p Prompt) (Recorder, error) {
	return r.begin(ctx, txn, false, &p)
}

// begin is Begin for a transaction with a prompt, if p is not nil.
func (r Recorder) begin(ctx context.Context, txn string, late bool, p *Prompt) (Recorder, error) {
	owner := r.journal.Owner()
	r = r.In(txn)
	r.stream = &stream{}
	if late {
		r.stream.lock = host.NewLock(r.host, "journal.begin")
	}
	begun := &record.Begun{Owner: owner}
	w := Write{Records: []CallRecord{{Body: begun}}, Take: journal.OwnerChange{To: journal.Ownership{Txn: txn, Owner: owner}}}
	if p != nil {
		begun.Prompt = &record.Prompt{Client: p.Client, ID: p.ID}
	}
	if p != nil && p.Text != "" {
		w.Records = append(w.Records, CallRecord{Call: host.NewID(r.host, "p_"), Body: &record.Prompted{Text: p.Text}})
	}
	// No barrier: the first durable record of the transaction includes it.
	return r, r.Write(ctx, w)
}

// applyPrompted folds the record of a prompt's words.
func (t *Txn) applyPrompted(r record.Record, b *record.Prompted) error {
	if t.Prompt == nil || t.Prompt.record != "" {
		return fmt.Errorf("%s in transaction %s, which has no prompt without words", r.Kind, t.ID)
	}
	t.Prompt.Text, t.Prompt.record = b.Text, r.Call
	return nil
}

// addPrompt adds the record of a prompt's words to an erasure. They can repeat
// what a call contains, so they go with the first call that is erased.
func (e *eraseStep) addPrompt(t *Txn) {
	if p := t.Prompt; p != nil && p.record != "" && !p.Erased {
		e.add(t.ID, p.record, &record.Erased{})
		e.words++
	}
}

// PromptOf returns the prompt of a transaction, or nil if it has none. It reads
// no calls.
func PromptOf(ctx context.Context, j journal.Journal, txn string) (*Prompt, error) {
	if txn == "" {
		return nil, nil // a query for it selects all transactions
	}
	t := newTxn(txn, nil)
	q := journal.Query{Txn: txn, Kinds: []record.Kind{record.KindBegun, record.KindPrompted}}
	var last int64
	if err := t.read(ctx, j, q, &last, t.apply); err != nil {
		return nil, err
	}
	return t.Prompt, nil
}

// ErrAmbiguous is returned for the beginning of a prompt ID that several prompts
// share.
var ErrAmbiguous = errors.New("several prompts begin with this ID")

// FindPrompt returns the transactions of the prompt with an ID, newest first. A
// prompt has several if its process died and the agent went on. If no prompt has
// the ID, FindPrompt takes it for the unique beginning of one. It returns none if
// no prompt begins with it, and ErrAmbiguous if several do.
func FindPrompt(ctx context.Context, j journal.Journal, id string) (txns []string, err error) {
	if id == "" {
		return nil, nil
	}
	text, err := canon.Marshal(id)
	if err != nil {
		return nil, err
	}
	begins := map[record.Prompt][]string{}
	q := journal.Query{Kinds: []record.Kind{record.KindBegun}, About: []string{strings.TrimSuffix(string(text), `"`)}, Newest: true}
	for e, err := range j.Entries(ctx, q) {
		if err != nil {
			return nil, err
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return nil, err
		}
		if b, ok := rec.Body.(*record.Begun); ok && b.Prompt != nil && strings.HasPrefix(b.Prompt.ID, id) {
			begins[*b.Prompt] = append(begins[*b.Prompt], rec.Txn)
		}
	}
	var exact, some []string
	exacts := 0
	for p, of := range begins {
		if some = of; p.ID == id {
			exact, exacts = of, exacts+1
		}
	}
	switch {
	case exacts == 1:
		return exact, nil
	case len(begins) > 1:
		return nil, fmt.Errorf("prompt %s: %w", id, ErrAmbiguous)
	}
	return some, nil
}

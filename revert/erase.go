package revert

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// ErrNotEnded is returned if an operation needs unchanged records: the
// transaction has not ended, or the outcome of a call is unknown.
var ErrNotEnded = errors.New("not ended")

// The causes of an erasure.
const (
	eraseAsked     = "asked"
	eraseRetention = "retention"
)

// EraseReport is the result of erasing a call.
type EraseReport struct {
	Txn     string           `json:"txn"`
	Call    string           `json:"call"`
	Records int              `json:"records"`          // calls and reverts whose records were erased; 0: they were erased before
	Shared  []effect.BlobRef `json:"shared,omitempty"` // content that stays, because other calls also refer to it
	journal.GCReport
}

// Erase destroys the bodies of the records of one call and of its reverts:
// input, output, notes and pre-images. What remains says that there was a call
// of this tool, how it ended, and that b.By erased it. The log can still be
// checked, also against a tree head kept elsewhere. The call can then be
// neither reverted nor redone. Its transaction must have ended. Erasing again
// completes an erasure whose process died.
func (r *Reverter) Erase(ctx context.Context, call string, b record.Erased) (EraseReport, error) {
	t, c, err := LoadCall(ctx, r.Journal, call)
	if err != nil {
		return EraseReport{}, err
	}
	if b.By == "" || b.Why == "" {
		return EraseReport{}, errors.New("an erasure needs a person and a reason")
	}
	out := EraseReport{Txn: t.ID, Call: c.Ref.Call}
	var refs []effect.BlobRef
	for c.hasRecords() { // again, if another process reverted or redid the call after it was read
		e := &eraseStep{cause: eraseAsked, by: b.By, why: b.Why}
		if err := r.eraseCall(ctx, e, t, c); err != nil {
			return out, err
		}
		out.Records += len(e.calls) - e.words
		refs = append(refs, e.refs...)
		if t, c, err = LoadCall(ctx, r.Journal, call); err != nil {
			return out, err
		}
	}
	if out.GCReport, err = r.collect(ctx, refs); err != nil {
		return out, err
	}
	out.Shared, err = r.remainingContent(ctx, refs)
	return out, err
}

// collect deletes the content that no record names any more, after the erasure
// is durable. A power failure must not restore a record whose content is gone.
// That includes a record that another process erased before it died without a
// barrier.
func (r *Reverter) collect(ctx context.Context, gone []effect.BlobRef) (journal.GCReport, error) {
	if err := r.barrier(ctx); err != nil {
		return journal.GCReport{}, err
	}
	return r.Journal.CollectGarbage(ctx, gone)
}

// eraseCall erases the remaining records of one call.
func (r *Reverter) eraseCall(ctx context.Context, e *eraseStep, t *Txn, c *Call) error {
	if err := c.checkEnded(t); err != nil {
		return fmt.Errorf("call %s: %w", c.Ref.Call, err)
	}
	g, err := r.grouped(ctx, t)
	if err != nil {
		return err
	}
	e.addCall(t, c)
	e.addStates(c)
	e.addPrompt(t)
	e.addCommits(t)
	return r.writeErased(ctx, e, t.Session, []string{t.ID}, g)
}

// hasRecords reports whether the call has records to erase.
func (c *Call) hasRecords() bool {
	return c.hasRevertRecords() || len(c.states) > 0 || len(c.Feedback) > 0 // which can be added while the call is erased
}

// hasRevertRecords reports whether the call has records that a revert or a redo of it
// needs.
func (c *Call) hasRevertRecords() bool { return c.Phase != PhaseErased || len(c.tries) > 0 }

// checkEnded returns an error if a call cannot be erased yet.
func (c *Call) checkEnded(t *Txn) error {
	switch {
	case t.End == "":
		return fmt.Errorf("its transaction %s has not ended: commit or revert it first: %w", t.ID, ErrNotEnded)
	case c.Phase == PhaseStarted, c.Phase == PhaseUnknown && !c.Confined():
		return fmt.Errorf("its outcome is unknown; resolve the call first: %w", ErrNotEnded)
	}
	return nil
}

// eraseStep collects what one step erases.
type eraseStep struct {
	cause, by, why string
	session        string // session of the records; empty: the writer's session
	lines          []CallRecord
	calls          []string
	words          int // number of calls that are none: the words of a prompt, decisions about a commit
	refs           []effect.BlobRef
}

// add adds the records of a call, or of one revert of it, in one stream.
func (e *eraseStep) add(txn, call string, b *record.Erased) {
	b.Cause, b.By, b.Why = e.cause, e.by, e.why
	e.lines = append(e.lines, CallRecord{Session: e.session, Txn: txn, Call: call, Body: b})
	e.calls = append(e.calls, call)
}

// names adds the content that a record names.
func (e *eraseStep) names(refs []effect.BlobRef) {
	for _, ref := range refs {
		if !slices.Contains(e.refs, ref) {
			e.refs = append(e.refs, ref)
		}
	}
}

// addCall adds the records of a call and of each revert of it, in any stream.
func (e *eraseStep) addCall(t *Txn, c *Call) {
	if c.Phase != PhaseErased {
		e.addOwn(t, c)
	} else if redone := c.redoneLast(); redone || len(c.Feedback) > 0 {
		again := *c.Erased
		again.Left = again.Left || redone // it was redone while another process erased it
		e.add(t.ID, c.Ref.Call, &again)
	}
	for _, u := range c.tries {
		e.names(record.Record{Body: &u.Reverting}.Blobs())
		for _, ch := range u.Changes {
			e.names(ch.Blobs)
		}
		if !slices.Contains(e.calls, u.Call) { // a repeated revert keeps its ID
			e.add(u.Txn, u.Call, &record.Erased{Tool: c.Tool})
		}
	}
}

func (c *Call) redoneLast() bool {
	here := slices.DeleteFunc(slices.Clone(c.tries), func(u *Reversal) bool { return u.away })
	n := len(here)
	return n > 0 && here[n-1].Reverting.Cause == causeRedo
}

// addOwn adds the records of a call itself.
func (e *eraseStep) addOwn(t *Txn, c *Call) {
	b := &record.Erased{Tool: c.Tool, As: string(c.Phase), Left: c.HasEffects(), Ended: c.Ended}
	b.Status, b.Spent = c.finalStatus()
	switch {
	case c.Started != nil:
		b.Class, b.Counts = c.Class(), c.Started.Counts
	case c.Held != nil:
		b.Class = c.Class()
	}
	touched := map[string]bool{}
	for _, ch := range c.Changes {
		e.names(ch.Blobs)
		if e.cause == eraseRetention && !touched[ch.Resource] {
			touched[ch.Resource], b.Touched = true, append(b.Touched, ch.Resource)
		}
	}
	e.add(t.ID, c.Ref.Call, b)
}

// writeErased erases in one step. It claims the transactions for that, so no
// other process can revert or redo them meanwhile. collect makes the step
// durable.
func (r *Reverter) writeErased(ctx context.Context, e *eraseStep, session string, subjects []string, group map[string]*Txn) error {
	for _, t := range group {
		if t.End == "" {
			return fmt.Errorf("transaction %s works on it: %w", t.ID, ErrBusy)
		}
	}
	own := journal.Ownership{Txn: host.NewID(r.Host, "e_"), Owner: r.Journal.Owner()}
	w := Write{Records: e.lines, Erase: e.calls, Take: journal.OwnerChange{To: own}, End: true}
	for _, id := range subjects {
		//mutant:lease
		w.Claims = append(w.Claims, "txn:"+id)
	}
	err := NewRecorder(r.Journal, r.Host, session).In(own.Txn).Write(ctx, w)
	var held *journal.ClaimedError
	if errors.As(err, &held) {
		return fmt.Errorf("%s works on it: %w", held.Holder, ErrBusy)
	}
	return err
}

// grouped returns all transactions that are linked with one: those that
// reverted or redid it, and their other subjects.
func (r *Reverter) grouped(ctx context.Context, t *Txn) (map[string]*Txn, error) {
	g := map[string]*Txn{t.ID: t}
	for todo := []*Txn{t}; len(todo) > 0; todo = todo[1:] {
		for _, id := range append(todo[0].subjects(), todo[0].links...) {
			if g[id] != nil {
				continue
			}
			other, err := Load(ctx, r.Journal, id)
			if err != nil {
				return nil, err
			}
			g[id], todo = other, append(todo, other)
		}
	}
	return g, nil
}

// remainingContent returns the content that was not deleted.
func (r *Reverter) remainingContent(ctx context.Context, refs []effect.BlobRef) (there []effect.BlobRef, err error) {
	for _, ref := range refs {
		content, err := r.Journal.OpenContent(ctx, ref)
		if errors.Is(err, journal.ErrNotFound) {
			continue
		}
		if err != nil {
			return there, err
		}
		there = append(there, ref)
		if err := content.Close(); err != nil {
			return there, err
		}
	}
	return there, nil
}

// finalStatus returns the outcome of a call that has ended, and whether its
// additions to the counters of its session stay.
func (c *Call) finalStatus() (status string, spent bool) {
	switch c.Phase {
	case PhaseDone:
		for _, v := range c.Verified {
			if !v.OK && v.Phase != "revert" {
				return "verify_failed", true
			}
		}
		return "done", true
	case PhaseFailed:
		return c.Failed.Status, c.Failed.Spent()
	case PhaseUnknown:
		return "unknown", true
	case PhaseDenied:
		return c.Denied.Status(), false
	case PhaseInvalid:
		return string(c.Phase), false
	case PhasePending, PhaseHeld, PhaseDropped, PhaseStarted, PhaseErased:
	}
	return "", false
}

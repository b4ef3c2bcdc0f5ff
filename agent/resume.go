package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// Answer approves or refuses a call that waits. Anybody but the principal who
// asked may answer; by names who. The call goes on by Txn.Resume, which looks at
// the newest answer once more.
func (rt *Runtime) Answer(ctx context.Context, call string, approved bool, by, why string) error {
	t, c, _, err := rt.waiting(ctx, call, by)
	if err != nil {
		return err
	}
	body := &revert.Answered{Approved: approved, By: by, Why: why, Digest: c.Asked.Digest}
	return rt.answer(ctx, t.Session, revert.Line{Txn: t.ID, Call: call, Body: body})
}

// Remember approves a call that waits, as Answer does, and calls to come as r
// says. It returns the id of what it granted, which Revoke takes away.
func (rt *Runtime) Remember(ctx context.Context, call, by, why string, r ctxperm.Remember) (id string, err error) {
	t, c, who, err := rt.waiting(ctx, call, by)
	if err != nil {
		return "", err
	}
	var d perm.DecisionRecord
	if err := canon.Decode(c.Asked.Decision, &d); err != nil {
		return "", fmt.Errorf("what call %s was asked about cannot be read: %w", call, err)
	}
	ask := ctxperm.Ask{Call: call, Txn: t.ID, Session: t.Session, Principal: who, Reasons: d.Reasons}
	for _, a := range c.Asked.Access {
		ask.Accesses = append(ask.Accesses, perm.ResourceAccess{Action: perm.Action(a.Action), Resource: a.Resource, Method: a.Method})
	}
	grant, err := rt.remembering(ask, c.Asked.Tool, c.Asked.InputDigest, by, r)
	if err != nil {
		return "", err
	}
	grant.Why = why
	body := &revert.Answered{Approved: true, By: by, Why: why, Digest: c.Asked.Digest}
	return grant.ID, rt.answer(ctx, t.Session, revert.Line{Txn: t.ID, Call: call, Body: body}, revert.Line{Body: grant})
}

// waiting finds a call that by may answer.
func (rt *Runtime) waiting(ctx context.Context, call, by string) (t *revert.Txn, c *revert.Call, who perm.Principal, err error) {
	if t, c, err = revert.LoadCall(ctx, rt.journal, call); err != nil {
		return t, c, who, err
	}
	who, err = rt.principalOf(ctx, t.Session)
	switch {
	case err != nil:
	case c.Phase != revert.PhasePending:
		err = fmt.Errorf("call %s is %s and waits for nobody: %w", call, c.Phase, tool.ErrInvalid)
	case t.End != "" || t.Aborting:
		err = fmt.Errorf("call %s waits for nobody any more, its transaction is %s: %w", call, t.State(), tool.ErrInvalid)
	case by == "":
		err = fmt.Errorf("an answer names who gives it: %w", tool.ErrInvalid)
	case by == who.ID || slices.Contains(who.Chain, by):
		err = fmt.Errorf("%q asked, or handed on what was asked for, so somebody else must answer: %w", by, tool.ErrDenied)
	case rt.host.Now().After(c.Asked.Expires):
		err = fmt.Errorf("the time to answer call %s was up at %s: %w", call, c.Asked.Expires.Format("2006-01-02 15:04:05Z"), tool.ErrInvalid)
	}
	return t, c, who, err
}

// answer is not fenced: whoever answers does not own the transaction.
func (rt *Runtime) answer(ctx context.Context, session string, lines ...revert.Line) error {
	return revert.NewRecorder(rt.journal, rt.host, session).Write(ctx, revert.Write{Lines: lines, Durable: true})
}

// Decide writes down what a person says of a call whose outcome is unknown; see
// revert.Reverter. The principal who asked for the call cannot say it.
func (rt *Runtime) Decide(ctx context.Context, call string, d revert.Decided) error {
	t, _, err := revert.LoadCall(ctx, rt.journal, call)
	if err != nil {
		return err
	}
	who, err := rt.principalOf(ctx, t.Session)
	switch {
	case err != nil:
		return err
	case d.By == who.ID:
		return fmt.Errorf("%q asked for the call, so somebody else must say what became of it: %w", d.By, tool.ErrDenied)
	}
	return rt.reverter.Decide(ctx, call, d)
}

// Open finds an open transaction again: one of this runtime, or one whose
// process is gone, with the principal, the roots and the grant that its session
// had, as far as the tools here still need it.
func (rt *Runtime) Open(ctx context.Context, txn string) (*Txn, error) {
	if tx, ok := rt.live.get(txn); ok {
		return tx, nil
	}
	t, err := rt.reverter.Adopt(ctx, txn)
	if err != nil {
		return nil, err
	}
	s, _, err := rt.again(ctx, t.Session)
	if err != nil {
		return nil, err
	}
	tx := newTxn(s, revert.NewRecorder(rt.journal, rt.host, s.id).In(txn), s.roots)
	for _, c := range t.Calls {
		if c.Started != nil {
			tx.counts.seq = max(tx.counts.seq, c.Started.Sequence)
		}
		if c.Held != nil {
			tx.counts.seq = max(tx.counts.seq, c.Held.Sequence)
		}
	}
	tx.counts.seq += len(t.Calls) // numbers that denied calls took are not reused
	for _, m := range t.Savepoints {
		tx.marks = append(tx.marks, m.Name)
	}
	if err := tx.renest(ctx, t); err != nil {
		return nil, err
	}
	tx.reopenOutbox(t)
	rt.live.add(tx)
	return tx, nil
}

// Resume lets a pending call go on: approved, it runs; refused, expired or no
// longer what was asked, it ends denied; without an answer it is still pending.
// It runs once, whatever else is resumed.
func (tx *Txn) Resume(ctx context.Context, call string) (tool.Outcome, error) {
	leave, err := tx.turn.alone(ctx) // two resumes of one call must not both find it pending
	if err != nil {
		return tx.refused("", tool.StatusCancelled, err), fmt.Errorf("%w before it began: %w", tool.ErrCancelled, err)
	}
	defer leave()
	if err := tx.usable(); err != nil {
		return tx.refused("", tool.StatusInvalid, err), fmt.Errorf("%w: %w", tool.ErrInvalid, err)
	}
	t, err := revert.Load(ctx, tx.s.rt.journal, tx.ID())
	if err != nil {
		return tx.refused("", tool.StatusInvalid, err), err
	}
	c, ok := t.Call(call)
	if !ok || c.Phase != revert.PhasePending {
		err := fmt.Errorf("call %s does not wait in transaction %s: %w", call, tx.ID(), tool.ErrInvalid)
		return tx.refused("", tool.StatusInvalid, err), err
	}
	if in, open := tx.holder(c.Asked.Nest); !open {
		err := fmt.Errorf("the transaction inside %s that call %s is in has ended: %w", tx.ID(), call, tool.ErrInvalid)
		return tx.refused("", tool.StatusInvalid, err), err
	} else if in != tx {
		return in.Resume(ctx, call)
	}
	out := tx.line.Run(ctx, tool.Resume(c))
	tx.noticeHeld(out)
	return out, out.Err()
}

// principalOf reads who a session's record says asks.
func (rt *Runtime) principalOf(ctx context.Context, id string) (who perm.Principal, err error) {
	body, err := rt.recordOf(ctx, id)
	if err != nil {
		return who, err
	}
	return who, canon.Decode(body.Principal, &who)
}

// recount rebuilds a session's labels and counts from the journal.
func (rt *Runtime) recount(ctx context.Context, id string, t *tally) error {
	kinds := []revert.Kind{
		revert.KindLabelled, revert.KindHeld, revert.KindDropped, revert.KindStarted, revert.KindInvalid, revert.KindDenied,
		revert.KindDone, revert.KindFailed, revert.KindUnknown, revert.KindVerified, revert.KindErased,
	}
	erased := map[string]bool{}
	for e, err := range rt.journal.Entries(ctx, revert.Query{Session: id, Kinds: kinds}) {
		if err != nil {
			return fmt.Errorf("the session's counts: %w", err)
		}
		if e.Erased != "" {
			continue // the record that says so counts for all of the call
		}
		rec, err := revert.Unseal(e)
		if err != nil {
			return fmt.Errorf("the session's counts: %w", err)
		}
		if rec.Kind == revert.KindErased {
			if erased[rec.Call] {
				continue
			}
			erased[rec.Call] = true
		}
		t.records(rec.At, []revert.Line{{Call: rec.Call, Body: rec.Body}})
	}
	t.settle()
	return nil
}

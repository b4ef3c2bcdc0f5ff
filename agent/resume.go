package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// Answer is an answer to the approval request of a call, or of the commit of a
// transaction. Without Approved it is a rejection.
type Answer struct {
	Call     string
	Txn      string // instead of Call: the transaction whose commit waits
	Approved bool
	By       string // who answers
	Why      string // optional
	// RequestDigest is the digest of the approval request (record.Asked) that
	// By saw. Answer fails if the request has changed since. It is required for
	// the approval of a program's changes and of a commit, and optional
	// otherwise.
	RequestDigest string
	// Once makes an approval cover its call only, also if the policy lets it
	// cover later calls.
	Once bool
}

// Answer approves or rejects a call that waits. The requesting principal cannot
// answer. Txn.Resume continues the call, and checks the newest answer again. A
// call that still runs continues without Resume. For a commit that waits,
// Txn.Commit does the same. If another answer to the same request counts, such as
// a rejection that came at the same time, Answer fails with tool.ErrInvalid.
func (rt *Runtime) Answer(ctx context.Context, r Answer) error {
	if r.Txn != "" {
		return rt.answerCommit(ctx, r)
	}
	t, c, who, err := rt.waiting(ctx, r)
	if err != nil {
		return err
	}
	lines := []revert.CallRecord{{Txn: t.ID, Call: r.Call, Body: r.record(c)}}
	if r.Approved && !r.Once {
		kept, err := rt.rememberedByPolicy(t, c, who, r.By)
		if err != nil {
			return err
		}
		lines = append(lines, kept...)
	}
	if err := rt.answer(ctx, t.Session, lines...); err != nil {
		return err
	}
	return rt.stands(ctx, r, c.Asked.Digest, lines[1:]...)
}

func (r Answer) record(c *revert.Call) *record.Answered {
	return &record.Answered{Approved: r.Approved, By: r.By, Why: r.Why, Digest: c.Asked.Digest}
}

// RememberApproval approves a call that waits, as Answer does, and later calls
// as how says. It returns the ID of the remembered approval, which Revoke
// accepts. A rejection cannot be remembered: tool.ErrInvalid.
func (rt *Runtime) RememberApproval(ctx context.Context, r Answer, how ctxperm.RememberScope) (id string, err error) {
	if !r.Approved {
		return "", fmt.Errorf("call %s: only an approval is remembered: %w", r.Call, tool.ErrInvalid)
	}
	t, c, who, err := rt.waiting(ctx, r)
	if err != nil {
		return "", err
	}
	ask, err := requestOf(t, c, who)
	if err != nil {
		return "", err
	}
	grant, err := rt.remembering(ask, c.Asked.Tool, c.Asked.InputDigest, r.By, how)
	if err != nil {
		return "", err
	}
	grant.Why = r.Why
	kept := revert.CallRecord{Body: grant}
	if err := rt.answer(ctx, t.Session, revert.CallRecord{Txn: t.ID, Call: r.Call, Body: r.record(c)}, kept); err != nil {
		return grant.ID, err
	}
	return grant.ID, rt.stands(ctx, r, c.Asked.Digest, kept)
}

// KeepApproval records that the approval of a call also covers later calls of
// the session, as the policy said when it asked. It is for an approval with
// Answer.Once, once the caller knows that a person gave it. It returns the ID of
// the remembered approval, or "" if the policy says nothing of the kind.
func (rt *Runtime) KeepApproval(ctx context.Context, call string) (id string, err error) {
	t, c, err := revert.LoadCall(ctx, rt.journal, call)
	if err != nil {
		return "", err
	}
	who, err := rt.principalOf(ctx, t.Session)
	if err != nil {
		return "", err
	}
	if c.Asked == nil || c.Answered == nil || !c.Answered.Approved || c.Answered.Digest != c.Asked.Digest {
		return "", fmt.Errorf("call %s has no approval: %w", call, tool.ErrInvalid)
	}
	kept, err := rt.rememberedByPolicy(t, c, who, c.Answered.By)
	if err != nil || len(kept) == 0 {
		return "", err
	}
	return kept[0].Body.(*record.Remembered).ID, rt.answer(ctx, t.Session, kept...) //nolint:errcheck,forcetypeassert // keep returns this type
}

// rememberedByPolicy returns the record of the later calls that an approval
// covers because the policy says so. None if it does not.
func (rt *Runtime) rememberedByPolicy(t *revert.Txn, c *revert.Call, who perm.Principal, by string) ([]revert.CallRecord, error) {
	ask, err := requestOf(t, c, who)
	if err != nil || ask.Remember.Scope != perm.RememberSession {
		return nil, err
	}
	body, err := rt.remembering(ask, c.Asked.Tool, c.Asked.InputDigest, by, ctxperm.RememberScope{})
	if err != nil {
		return nil, err
	}
	return []revert.CallRecord{{Body: body}}, nil
}

// requestOf returns the approval request of a call, as far as a remembered
// approval needs it.
func requestOf(t *revert.Txn, c *revert.Call, who perm.Principal) (ctxperm.ApprovalRequest, error) {
	var d perm.DecisionRecord
	if err := canon.Decode(c.Asked.Decision, &d); err != nil {
		return ctxperm.ApprovalRequest{}, fmt.Errorf("what call %s was asked about cannot be read: %w", c.Ref.Call, err)
	}
	ask := ctxperm.ApprovalRequest{Call: c.Ref.Call, Txn: t.ID, Session: t.Session, Principal: who, Reasons: d.Reasons}
	if d.Remember != nil {
		ask.Remember = *d.Remember
	}
	for _, a := range c.Asked.Access {
		ask.Accesses = append(ask.Accesses, perm.ResourceAccess{Action: perm.Action(a.Action), Resource: a.Resource, Method: a.Method})
	}
	return ask, nil
}

// waiting returns a call that the answer can be given to.
func (rt *Runtime) waiting(ctx context.Context, r Answer) (t *revert.Txn, c *revert.Call, who perm.Principal, err error) {
	call, by := r.Call, r.By
	if t, c, err = revert.LoadCall(ctx, rt.journal, call); err != nil {
		return t, c, who, err
	}
	who, err = rt.principalOf(ctx, t.Session)
	switch {
	case err != nil:
	case !c.Waits():
		err = fmt.Errorf("call %s is %s and does not wait for an approval: %w", call, c.Phase, tool.ErrInvalid)
	case t.End != "" || t.Aborting:
		err = fmt.Errorf("call %s no longer waits for an approval: its transaction is %s: %w", call, t.State(), tool.ErrInvalid)
	case by == "":
		err = fmt.Errorf("an answer names who gives it: %w", tool.ErrInvalid)
	case by == who.ID || slices.Contains(who.Chain, by):
		err = fmt.Errorf("%q asked for the call, or delegated to its session, so another person must answer: %w", by, tool.ErrDenied)
	case r.Approved && c.Answered != nil && !c.Answered.Approved && c.Answered.Digest == c.Asked.Digest:
		err = fmt.Errorf("call %s was refused by %s, and what was refused stays refused: the agent has to call again: %w", call, c.Answered.By, tool.ErrInvalid)
	case rt.services.Host.Now().After(c.Asked.Expires):
		err = fmt.Errorf("the time to answer call %s was up at %s: %w", call, c.Asked.Expires.Format("2006-01-02 15:04:05Z"), tool.ErrInvalid)
	}
	if err == nil {
		err = r.fits(c.Asked)
	}
	if err == nil && c.Phase == revert.PhaseStarted { // it continues by itself, if it still runs
		var alive bool
		if alive, err = journal.LooksAlive(ctx, rt.journal, t.Owner); err == nil && !alive {
			err = fmt.Errorf("call %s no longer waits for an approval: its process is gone: %w", call, tool.ErrInvalid)
		}
	}
	return t, c, who, err
}

// fits reports whether the answer is for the current approval request.
func (r Answer) fits(asked *record.Asked) error {
	switch {
	case r.RequestDigest != "" && r.RequestDigest != asked.Digest:
		return fmt.Errorf("call %s asks something else by now: look at it again: %w", r.Call, tool.ErrInvalid)
	case r.RequestDigest == "" && r.Approved && asked.Purpose != "":
		return fmt.Errorf("call %s waits with what it wants to change: the person who approves that names the question that they looked at: %w", r.Call, tool.ErrInvalid)
	}
	return nil
}

// answer is not fenced, because the answering process does not own the
// transaction.
func (rt *Runtime) answer(ctx context.Context, session string, lines ...revert.CallRecord) error {
	//mutant:barrier
	return revert.NewRecorder(rt.journal, rt.services.Host, session).Write(ctx, revert.Write{Records: lines, Durable: true})
}

// ResolveUnknown records a person's decision on a call with an unknown outcome;
// see revert.Reverter. The principal of the call cannot decide.
func (rt *Runtime) ResolveUnknown(ctx context.Context, call string, d record.Decided) error {
	t, _, err := revert.LoadCall(ctx, rt.journal, call)
	if err != nil {
		return err
	}
	who, err := rt.principalOf(ctx, t.Session)
	switch {
	case err != nil:
		return err
	case d.By == who.ID:
		return fmt.Errorf("%q asked for the call, so another person must resolve it: %w", d.By, tool.ErrDenied)
	}
	return rt.services.Reverter.ResolveUnknown(ctx, call, d)
}

// ResumeTxn returns an open transaction: one of this runtime, or an abandoned
// one. It has the principal, the roots and the grant of its session, as far as
// the tools of this runtime still need it.
func (rt *Runtime) ResumeTxn(ctx context.Context, txn string) (*Txn, error) {
	if tx, ok := rt.live.get(txn); ok {
		return tx, nil
	}
	t, err := revert.Load(ctx, rt.journal, txn)
	if err == nil {
		err = rt.inCopy(ctx, t.ID, t.Session)
	}
	if err != nil {
		return nil, err
	}
	s, err := rt.sessionByID(ctx, t.Session)
	if err == nil {
		err = s.catchUp(ctx, "") // first: an owner that cannot go on would keep the session from all others
	}
	if err == nil {
		t, err = rt.services.Reverter.TakeOwnership(ctx, txn)
	}
	if err == nil {
		err = s.catchUp(ctx, txn)
	}
	if err != nil {
		return nil, err
	}
	tx := newTxn(s, revert.NewRecorder(rt.journal, rt.services.Host, s.id).In(txn), s.roots, t.Prompt)
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
	tx.asked.Store(len(t.Commits) > 0)
	rt.live.add(tx)
	return tx, nil
}

// Resume continues a pending call. If approved, the call runs. If rejected,
// expired or different from the approval request, it ends denied. Without an
// answer it stays pending. It runs once, even if several callers resume it.
// Only the options OnCallProgress, OnStart and OnAsked apply.
func (tx *Txn) Resume(ctx context.Context, call string, opts ...CallOption) (tool.Outcome, error) {
	leave, err := tx.lock.alone(ctx) // two resumes of one call must not both find it pending
	if err != nil {
		return pipeline.NotBegun(ctx, tool.Request{}, tx.ID(), err)
	}
	defer leave()
	if err := cmp.Or(tx.s.rt.open(), tx.usable()); err != nil {
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
		return in.Resume(ctx, call, opts...)
	}
	how := configured(opts)
	out := tx.line.Resume(ctx, c, tool.Request{Turn: tx.s.state.turn(), Progress: how.progress, OnStart: how.begun, Asked: how.asked})
	tx.noticeHeld(out)
	return out, out.Err()
}

// principalOf returns the principal in a session's record.
func (rt *Runtime) principalOf(ctx context.Context, id string) (who perm.Principal, err error) {
	body, err := rt.recordOf(ctx, id)
	if err != nil {
		return who, err
	}
	return who, canon.Decode(body.Principal, &who)
}

// countedKinds are the records that the counts of a session are a fold of.
func countedKinds() []record.Kind {
	return []record.Kind{
		record.KindLabelled, record.KindHeld, record.KindDropped, record.KindStarted, record.KindInvalid, record.KindDenied,
		record.KindDone, record.KindFailed, record.KindUnknown, record.KindVerified, record.KindErased,
	}
}

// recount rebuilds a session's labels and counts from the journal. It returns
// the transactions that the records of the session do not end, with the
// positions of their beginnings, and the position of the last record.
func (rt *Runtime) recount(ctx context.Context, id string, t *sessionCounters) (unfinished map[string]int64, last int64, err error) {
	kinds := append(countedKinds(), record.KindBegun, record.KindNested, record.KindCommitted, record.KindAborted)
	erased, unfinished := map[string]bool{}, map[string]int64{}
	t.events = nil // these calls began and ended before
	for e, err := range rt.journal.Entries(ctx, journal.Query{Session: id, Kinds: kinds}) {
		if err != nil {
			return nil, 0, fmt.Errorf("the session's counts: %w", err)
		}
		last = e.Pos
		switch e.Header.Kind {
		case record.KindBegun, record.KindNested:
			if _, known := unfinished[e.Header.Txn]; !known {
				unfinished[e.Header.Txn] = e.Pos
			}
			continue
		case record.KindCommitted, record.KindAborted:
			delete(unfinished, e.Header.Txn)
			continue
		default:
		}
		if e.Erased != "" {
			continue // the record of the erasure counts for all of the call
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return nil, 0, fmt.Errorf("the session's counts: %w", err)
		}
		if rec.Kind == record.KindErased {
			if erased[rec.Call] {
				continue
			}
			erased[rec.Call] = true
		}
		t.records(rec.At, []revert.CallRecord{{Call: rec.Call, Body: rec.Body}})
	}
	t.settle()
	t.events = &events{from: last}
	return unfinished, last, nil
}

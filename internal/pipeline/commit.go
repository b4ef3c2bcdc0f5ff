package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// DecidesCommits reports whether the policy has rules about commits.
func (l *Pipeline) DecidesCommits() bool {
	e, says := l.engine().(interface{ DecidesCommits() bool })
	return says && e.DecidesCommits()
}

// DecideCommit decides the commit of a transaction as the journal has it. It
// returns the record of the decision, or nil if nothing is to be decided: the
// transaction has no effect and holds no call. If the policy asks, it looks for
// an answer on the journal, or asks the approver. preview returns the difference
// of the transaction for people. An error says that the policy could not decide,
// which is neither a permission nor a refusal.
//
// It writes nothing. For a commit that still waits with the same request, it
// returns that record again.
func (l *Pipeline) DecideCommit(ctx context.Context, t *revert.Txn, preview func(context.Context) (string, error)) (*record.CommitDecided, error) {
	effects := t.NetEffects()
	if len(effects) == 0 {
		return nil, nil
	}
	req := l.commitRequest(t, effects)
	d, err := l.decideCommit(ctx, t, &req)
	if err != nil {
		return nil, fmt.Errorf("the policy could not decide about the commit: %w", err)
	}
	body, err := l.commitRecord(t, req, d)
	if err != nil {
		return nil, err
	}
	//mutant:check
	if no := rejection(t, body.Digest); no != nil {
		body.Effect, body.Answer = perm.Ask.String(), no
		return body, nil
	}
	prior, waits := t.WaitingCommit().Get()
	same := waits && prior.Decided.Digest == body.Digest
	if d.Effect() == perm.Allow && (!same || l.commitAnswer(prior) == nil) {
		if d, err = l.stillAsks(t, d, body); err != nil {
			return nil, err
		}
	}
	if d.Effect() != perm.Ask {
		return body, nil
	}
	same = same && revisionOf(prior.Decided) == d.Revision() && saw(prior.Decided, d) && !l.p.Host.Now().After(prior.Decided.Expires)
	if same && l.commitAnswer(prior) != nil {
		body.Answer = prior.Answered
		return body, nil
	}
	ask, err := l.commitQuestion(ctx, req, d, body, preview)
	if err != nil {
		return nil, err
	}
	if body.Answer = l.askCommit(ctx, ask); body.Answer != nil {
		return body, nil
	}
	if same {
		return prior.Decided, nil
	}
	body.Expires, body.Processes = l.p.Host.Now().Add(l.p.Limits.ApprovalTimeout).UTC(), l.commitProcesses(t)
	return body, nil
}

// saw reports whether who answered a request saw each reason of a decision.
func saw(asked *record.CommitDecided, d perm.Decision) bool {
	was := decisionRecord(asked.Decision)
	return was != nil && !slices.ContainsFunc(d.Record().Reasons, func(r perm.Reason) bool {
		return !slices.ContainsFunc(was.Reasons, func(old perm.Reason) bool { return old.At == r.At && old.Set == r.Set })
	})
}

// rejection returns the rejection of this content, which stays, whatever the
// policy says now and what happened since.
func rejection(t *revert.Txn, digest string) *record.Answered {
	for _, d := range t.Commits {
		if d.Decided != nil && d.Decided.Digest == digest && d.Answered != nil && !d.Answered.Approved {
			return d.Answered
		}
	}
	return nil
}

// stillAsks returns the decision about a commit that the policy permits, after
// it or another policy asked about the transaction. What was asked about stays
// asked: the same content, and any content after a rejection. Under another
// policy than one that asked, it is an error.
func (l *Pipeline) stillAsks(t *revert.Txn, d perm.Decision, body *record.CommitDecided) (perm.Decision, error) {
	for _, asked := range t.Commits {
		was := asked.Decided
		if was == nil || !was.Waits() {
			continue
		}
		//mutant:check
		if revisionOf(was) != d.Revision() {
			return d, fmt.Errorf("%w: a person must answer what that policy asked, or the transaction is committed with that policy; %s", errAnotherPolicy, CommitReasons(was))
		}
		//mutant:check
		if was.Digest == body.Digest || asked.Answered != nil && !asked.Answered.Approved {
			body.Effect, body.Decision = was.Effect, was.Decision
			details := perm.Details{Revision: d.Revision()}
			if r := decisionRecord(was.Decision); r != nil {
				details.Reasons = r.Reasons
			}
			return perm.NewDecision(perm.Ask, details), nil
		}
	}
	return d, nil
}

// errAnotherPolicy refuses a commit that a policy asked about, under another one
// that lets it pass.
var errAnotherPolicy = errors.New("another policy asked about the commit")

// commitProcesses returns the processes that asked about the commit, now and
// before: a person who commits again asks next.
func (l *Pipeline) commitProcesses(t *revert.Txn) (all []json.RawMessage) {
	for _, d := range t.Commits {
		if d.Decided != nil {
			for _, p := range d.Decided.Processes {
				all = addProcess(all, p)
			}
		}
	}
	own := l.p.ProcessChain
	if own == nil {
		own = host.ProcessChain(l.p.Host)
	}
	return addProcess(all, own)
}

// ReportCommit reports a commit that waits to the listener, once its record is
// durable.
func (l *Pipeline) ReportCommit(t *revert.Txn, body *record.CommitDecided) {
	d := decisionRecord(body.Decision)
	if l.p.Waiting == nil || d == nil {
		return
	}
	l.p.Waiting(ctxperm.ApprovalRequest{
		Purpose: perm.PurposeCommit, Txn: t.ID, Session: t.Session, Principal: l.p.Principal.Clone(), Input: slices.Clone(body.Txn),
		Reasons: d.Reasons, Revision: d.Revision, Digest: body.Digest, Expires: body.Expires,
	})
}

// decideCommit evaluates the policy.
func (l *Pipeline) decideCommit(ctx context.Context, t *revert.Txn, req *perm.Request) (perm.Decision, error) {
	if !l.DecidesCommits() { // the policy that asked about it had such rules
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "the policy does not decide commits any more", Set: "allow"}}}), nil
	}
	if err := l.p.Host.Point(ctx, "txn.decide"); err != nil {
		return perm.Decision{}, err
	}
	d, err := l.ask(ctx, tool.Tool{}, req)
	if err == nil && d.Effect() == perm.Hold {
		err = errors.New("it holds the commit, and only a call can be held")
	}
	return d, err
}

// maxEffects bounds the effects of a transaction that a policy sees.
const maxEffects = 256

// commitRequest builds the policy's input for a commit.
func (l *Pipeline) commitRequest(t *revert.Txn, effects []revert.NetEffect) perm.Request {
	a := admitted{counted: l.p.Facts.Session(), seen: l.now()}
	txn := CommitFacts(t, effects, a.seen.txn)
	return perm.Request{Principal: l.p.Principal.Clone(), Session: l.session(a), Txn: txn, Purpose: perm.PurposeCommit, Time: a.seen.time}
}

// CommitFacts adds to the facts of a transaction what a policy sees of its
// commit.
func CommitFacts(t *revert.Txn, effects []revert.NetEffect, txn perm.TxnFacts) perm.TxnFacts {
	txn.Totals = totalsOf(t, len(effects))
	txn.EffectsCut = len(effects) > maxEffects
	txn.Effects = make([]perm.EffectFacts, 0, min(len(effects), maxEffects))
	for _, e := range effects[:min(len(effects), maxEffects)] {
		txn.Effects = append(txn.Effects, perm.EffectFacts{
			Kind: e.Kind, Resource: changedResource(e.Resource), Class: string(e.Class), Coverage: string(e.Coverage), Tool: e.Tool, Call: e.Call, Unknown: e.Unknown,
		})
	}
	return txn
}

func totalsOf(t *revert.Txn, effects int) *perm.EffectTotals {
	n := &perm.EffectTotals{Effects: effects}
	for _, c := range t.Calls {
		if c.IsHeld() {
			n.Held++
		}
		if !c.HasEffects() {
			continue
		}
		if c.Phase == revert.PhaseUnknown || c.Phase == revert.PhaseStarted {
			n.Unknown++
		}
		switch c.Class() {
		case effect.Reversible:
			n.Reversible++
		case effect.Compensable:
			n.Compensable++
		case effect.Deferrable:
			n.Deferrable++
		case effect.Pivot:
			n.Pivot++
		case effect.Pure:
		}
	}
	return n
}

func (l *Pipeline) commitRecord(t *revert.Txn, req perm.Request, d perm.Decision) (*record.CommitDecided, error) {
	as := d.Record()
	for i := range as.Reasons {
		as.Reasons[i].Text = l.known.Scrub(as.Reasons[i].Text)
	}
	decision, err := canon.Marshal(as)
	if err != nil {
		return nil, err
	}
	txn, err := canon.Marshal(req.Txn)
	if err != nil {
		return nil, err
	}
	facts := &record.Facts{Time: req.Time.UTC(), Calls: req.Txn.Calls, Depth: req.Txn.Depth, Labels: len(req.Session.Labels), Requires: len(req.Session.Requires)}
	return &record.CommitDecided{Effect: d.Effect().String(), Decision: decision, Digest: t.CommitDigest(), Txn: txn, Facts: facts}, nil
}

func revisionOf(d *record.CommitDecided) string {
	if r := decisionRecord(d.Decision); r != nil {
		return r.Revision
	}
	return ""
}

// commitAnswer returns the answer on the journal to a commit that waits, if it
// counts.
func (l *Pipeline) commitAnswer(d revert.CommitDecision) *record.Answered {
	a := d.Answered
	if a == nil || a.Digest != d.Decided.Digest || a.By == "" || l.asks(a.By) {
		return nil
	}
	return a
}

// commitQuestion returns the approval request of a commit.
func (l *Pipeline) commitQuestion(ctx context.Context, req perm.Request, d perm.Decision, body *record.CommitDecided, preview func(context.Context) (string, error)) (ctxperm.ApprovalRequest, error) {
	ask := ctxperm.ApprovalRequest{
		Purpose: perm.PurposeCommit, Txn: req.Txn.ID, Session: req.Session.ID, Principal: l.p.Principal.Clone(), Labels: slices.Clone(req.Session.Labels),
		Input: json.RawMessage(slices.Clone(body.Txn)), Reasons: d.Reasons(), Revision: d.Revision(), Digest: body.Digest,
	}
	if l.p.Approver == nil {
		return ask, nil
	}
	text, err := preview(ctx)
	if err != nil {
		return ask, fmt.Errorf("the difference of the transaction cannot be shown to the approver: %w", err)
	}
	ask.Preview = l.known.Scrub(text)
	return ask, nil
}

// askCommit asks the approver, and returns nil without an answer. A missing
// answer is no refusal: the commit then waits on the journal.
func (l *Pipeline) askCommit(ctx context.Context, ask ctxperm.ApprovalRequest) *record.Answered {
	if l.p.Approver == nil || l.p.Host.Point(ctx, "txn.approve") != nil {
		return nil
	}
	limited, cancel := l.p.Host.WithTimeout(ctx, l.p.Limits.ApprovalTimeout, errNoAnswer)
	defer cancel()
	answer, err := askSafely(limited, l.p.Approver, ask)
	if err != nil || limited.Err() != nil || answer.Approved() && l.asks(answer.By()) {
		return nil
	}
	return &record.Answered{Approved: answer.Approved(), By: cmp.Or(answer.By(), "the approver"), Why: answer.Why(), Digest: ask.Digest}
}

// CommitReasons returns, for people and the model, why a commit was denied or
// waits.
func CommitReasons(body *record.CommitDecided) string {
	if a := body.Answer; a != nil && !a.Approved {
		return refusedWhy(a.By, a.Why)
	}
	return recordedReasons(decisionRecord(body.Decision))
}

package pipeline

import (
	"context"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// intended is a permitted call whose write-ahead record is written, or is ready
// to be written with the call's first change. execute accepts nothing else.
type intended struct {
	filtered
	live  *callstate.Call
	clock *callstate.Clock
}

// intend is step 4: the write-ahead record. A call that can have an effect
// which no handle announces gets its own barrier here. For a call that can act
// only through handles, the record goes with the barrier of its first change,
// because nothing can happen before that.
func (l *Pipeline) intend(ctx context.Context, f filtered) (intended, *tool.Outcome) {
	p := f.permitted
	started, err := l.startedRecord(f)
	if p.released == nil {
		p.charged = shared(p.decision.Limits())
	}
	if err == nil && (len(p.charged) > 0 || p.released == nil && l.p.Grant.Counted()) {
		//mutant:none the barrier of the branch below, for calls that other processes count
		w := revert.Write{Records: []revert.CallRecord{{Call: p.id, Body: started}}, Durable: true}
		var over *callstate.DeniedError
		if over, err = l.charge(ctx, p, func() error { return l.p.Recorder.Write(ctx, w) }); over != nil {
			return intended{}, l.budgetExceeded(ctx, p, over, &record.Failed{})
		}
		started = nil
	} else if err == nil && f.answer == nil && (barrierBeforeExecute(p.tool) || p.released != nil || p.connects()) {
		//mutant:barrier
		w := revert.Write{Records: []revert.CallRecord{{Call: p.id, Body: started}}, Durable: true}
		if err = l.p.Recorder.Write(ctx, w); err == nil {
			started = nil
		}
	} else if err == nil && p.class != effect.Pure { // other processes must see that the transaction is open
		err = l.p.Recorder.Flush(ctx)
	}
	if err != nil {
		// Nothing was executed, so the call failed without effect, even if the
		// record was written.
		l.journalFailed.Store(true)
		out := l.outcome(p, tool.StatusFailed)
		out.Error = &tool.Problem{What: "the call was not started", Why: "the journal could not take its record: " + err.Error()}
		return intended{}, withText(out)
	}
	f.permitted = p
	clock := callstate.NewClock(l.p.Host, l.executeTime(p.tool), tool.ErrTimeout)
	return intended{filtered: f, live: l.open(&p, started, clock), clock: clock}, nil
}

// open opens the live state of a call. Its functions share p, so p must not
// change any more.
func (l *Pipeline) open(p *permitted, started *record.Started, clock *callstate.Clock) *callstate.Call {
	return callstate.New(callstate.Config{
		ID: p.id, Key: p.key, Tool: p.tool.Name(), Class: p.class, Observed: p.tool.Coverage() == effect.Observed, Settings: internals.Compiled(p.tool).Settings, Principal: l.p.Principal, Client: l.p.Client, Recorder: l.p.Recorder,
		Gate: l.gate(&p.admitted), Approve: l.approves(p), Clock: clock, Changes: l.changeGate(p), MaxAccesses: func() perm.Set { return p.bound.Intersect(l.p.Grant.Set()) }, Authorized: p.exact, Terms: p.terms(), Roots: l.p.Roots, Drivers: l.p.Drivers, Started: started, Locks: l.locks,
		ClaimTimeout: l.p.Limits.ClaimTimeout, Waits: l.p.Waits, Files: fileLimits(l.p.Limits),
		HasRedactions: func() bool { return len(p.redaction.hides()) > 0 }, Environment: l.environment,
		CheckGrant: l.checkGrant, JournalFailed: l.hasFailed, Progress: l.progress(p),
	})
}

func barrierBeforeExecute(t tool.Tool) bool {
	switch t.Class() {
	case effect.Pure:
		return false
	case effect.Reversible:
		return spec(t).Confinement == tool.Trusted
	default:
		return spec(t).Confinement != tool.Handles
	}
}

// connects reports whether the call can run a program with network access. No
// handle announces what the program sends.
func (p permitted) connects() bool { return toolaccess.ReachesOut(p.bound) }

func (l *Pipeline) startedRecord(f filtered) (*record.Started, error) {
	p := f.permitted
	if p.released != nil {
		started := p.released.Started
		return &started, nil
	}
	decision, err := l.decisionText(p.redaction.decision(p.decision))
	if err != nil {
		return nil, err
	}
	right := make([]record.Access, 0, len(p.exact))
	for _, a := range p.bound.Accesses() {
		right = append(right, accessText(a))
	}
	decided := make([]record.Access, 0, len(p.exact))
	for _, a := range p.exact {
		decided = append(decided, accessText(a))
	}
	s := spec(p.tool)
	started := &record.Started{
		Sequence: p.seq, Key: p.key, Tool: toolRef(p.tool, ""), Input: p.redaction.shownInput(), InputDigest: p.digest,
		Class: p.class, Declared: s.EffectClass != "", Reverts: s.Revert != nil, Confinement: string(s.Confinement), Coverage: s.Coverage, Observed: s.Observed,
		Access: decided, Right: right, Decision: decision, Approval: p.approval, Counts: p.sums, Nest: l.p.Nest, Redacted: p.redaction.hides(),
		Replaced: p.pass.replacements(), Ends: p.pass.end(), Facts: p.facts(), Order: p.orderOnly(),
	}
	if f.answer != nil { // no code runs, so there is nothing to revert
		started.AnsweredBy, started.Reverts, started.Right = p.pass.refuser(), false, []record.Access{}
	}
	return started, nil
}

// bind makes what is the same for every call.
func (l *Pipeline) bind() *Pipeline {
	filled := perm.Request{Principal: l.p.Principal.Clone(), Session: perm.SessionFacts{Client: &l.p.Client}}.Filled()
	l.asPrincipal, l.asClient = filled.Principal, *filled.Session.Client
	l.checkGrant, l.hasFailed = l.p.Grant.Check, l.JournalFailed
	l.environment = func(ctx context.Context) (revert.Environment, error) {
		return l.p.Reverter.EnvironmentFor(ctx, l.p.Recorder.Session())
	}
	return l
}

// context returns the ToolContext that the tool's code receives.
func (i intended) context() ctxperm.ToolContext { return contexts.New(i.live) }

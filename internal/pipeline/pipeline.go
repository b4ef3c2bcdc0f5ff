package pipeline

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/grant"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/filter"
	"github.com/remit-dev/remit/verify"
)

// Pipeline runs the calls of one transaction. Package agent makes it. A
// Pipeline is safe for concurrent use.
type Pipeline struct {
	p     Config
	locks *callstate.ResourceLocks
	known callstate.SecretSets // secret values to remove from all records and output
	// journalFailed is set if a required record could not be written. The
	// journal then lacks effects of the transaction.
	journalFailed *atomic.Bool

	lastDecision atomic.Pointer[encodedDecision]

	lastAccess atomic.Pointer[resolvedAccess]

	asPrincipal perm.Principal // as a policy sees it
	asClient    perm.ClientFacts
	checkGrant  func(context.Context) error
	hasFailed   func() bool
	environment func(context.Context) (revert.Environment, error) // reverts changes of a running call
}

// Services are what the pipelines of one runtime share. They do not change once
// the runtime has started.
type Services struct {
	Host         host.Host
	Engine       perm.Engine                   // nil: every access is denied
	Approver     ctxperm.Approver              // nil: an ask is a denial, or suspends the call
	Wait         bool                          // without an approver, an ask suspends the call
	Waiting      func(ctxperm.ApprovalRequest) // called for each approval request that is on the journal and waits; nil: none
	ProcessChain json.RawMessage               // this process, as pending calls record it; nil: unknown
	Reverter     *revert.Reverter
	Drivers      []any                                // each is a ctxperm.Driver
	Waits        *callstate.WaitGraph                 // of all transactions
	Progress     func(tool.Progress)                  // listener for progress; nil: none
	Filters      []filter.Filter                      // in the order in which they run
	Panicked     func(filter, hook string, err error) // called when a hook panics that cannot change the outcome; nil: none
}

// Config says whose calls a Pipeline runs, and in which transaction.
type Config struct {
	Services
	Tools        func() tool.Registry // current tools; nil: none
	Grant        grant.Grant          // grant of the session
	Principal    perm.Principal
	Client       perm.ClientFacts
	Data         json.RawMessage   // data of the session; nil: none
	Prompt       *perm.PromptFacts // prompt that the calls follow; nil: none
	Recorder     revert.Recorder   // of the transaction
	Roots        map[string]disk.Root
	ResourceView func(accesses []perm.ResourceAccess, changes []effect.Change) verify.ResourceView // nil: none
	Facts        CounterStore
	Memory       ApprovalStore // nil: the runtime remembers no approvals
	Properties   *sync.Map     // properties of the session, for filters
	Limits       tool.Limits
	Nest         string    // nested transaction of the calls
	Beside       *Pipeline // pipeline of the enclosing transaction
}

// ApprovalStore keeps remembered approvals. Package agent implements it.
type ApprovalStore interface {
	// Recall finds a remembered approval that covers the request now.
	Recall(ctx context.Context, ask ctxperm.ApprovalRequest, inputDigest string) (approval *record.Approval, err error)
	// Keep remembers an answer that the approver just gave.
	Keep(ctx context.Context, ask ctxperm.ApprovalRequest, ref record.ToolRef, inputDigest, by string, r ctxperm.RememberScope) error
}

// CounterStore counts the calls of a session and a transaction. Package agent
// implements it.
type CounterStore interface {
	Session() perm.SessionFacts
	Labels() (labels, requires []string)
	// Reserve counts a call as in flight and adds its sums, unless the call was
	// held and so counted before.
	Reserve(call string, ref record.ToolRef, sums map[string]json.Number) Reservation
	Release(call string, s tool.Status) // ends the flight of the call, which then counts by its status
	// Spent returns the counts of the calls of a budget scope other than the
	// session, as the journal is now.
	Spent(ctx context.Context, per string) (perm.SessionFacts, error)
	// Charge calls write, which puts the start of a call on the journal. It
	// returns for each scope the counts of its calls before that record. After
	// an error the counts are unknown, and the record can be on the journal.
	Charge(ctx context.Context, call string, per []string, write func() error) ([]perm.SessionFacts, error)
	Txn() perm.TxnFacts
	Next() int // the next sequence number of the transaction
	// Label adds labels to the session, and requirements for each of its calls.
	// It returns the new ones.
	Label(labels, requires []string) (freshLabels, freshRequires []string)
	// Given returns a function that reports whether the session was given a
	// canonical URL or, with resource set, a resource.
	UserProvided(ctx context.Context) (has func(text string, resource bool) bool, err error)
	// Note begins to note a result that will be recorded, beside the caller. The
	// caller waits for the end of that.
	Note(call string, t tool.Tool, output []byte) (wait func())
	// Values returns where the values of the arguments of a call come from. cut
	// says that there are more.
	Values(ctx context.Context, t tool.Tool, args json.RawMessage) (facts []perm.ValueFacts, cut bool, err error)
}

// Reservation is what Reserve found.
type Reservation struct {
	Session perm.SessionFacts // without the call
	Time    time.Time
	Order   *record.Order // place of the call among those of the session
	NewTool bool          // the journal has no facts of this declaration yet, from this process and session
}

// New returns a Pipeline.
func New(p Config) *Pipeline {
	p.Limits = WithDefaults(p.Limits)
	if p.Beside != nil {
		l := &Pipeline{p: p, locks: p.Beside.locks, known: p.Beside.known, journalFailed: p.Beside.journalFailed}
		return l.bind()
	}
	l := &Pipeline{p: p, locks: callstate.NewResourceLocks(p.Host), known: callstate.SecretsOf(p.Drivers), journalFailed: new(atomic.Bool)}
	return l.bind()
}

// tools returns the current tools. A call reads them once and keeps that
// registry.
func (l *Pipeline) tools() tool.Registry {
	if l.p.Tools == nil {
		return tool.Registry{}
	}
	return l.p.Tools()
}

// recordedName returns the name with which a recorded call asks for its tool: the
// version that made it, even if newer ones exist.
func recordedName(ref record.ToolRef) string {
	if ref.Version == "" {
		return ref.Name
	}
	return ref.Name + "@" + ref.Version
}

// Resume continues a pending call. The runtime admits the recorded input again.
// The answer counts if everything that the approval request showed is
// unchanged. Only the turn and the listeners of how count.
func (l *Pipeline) Resume(ctx context.Context, c *revert.Call, how tool.Request) tool.Outcome {
	r := Request{
		Request: tool.Request{ID: c.Ref.Call, Tool: recordedName(c.Tool), Turn: how.Turn, Progress: how.Progress, OnStart: how.OnStart, Asked: how.Asked},
		resumed: c,
	}
	if c.Asked != nil {
		r.Input = c.Asked.Input
	}
	return l.Run(ctx, r)
}

// Run sends a call through all steps of the pipeline. Each step takes what the
// one before it returned. A step that ends the call early returns its outcome.
// Run returns no error: the outcome says what went wrong.
func (l *Pipeline) Run(ctx context.Context, req Request) tool.Outcome {
	if l == nil {
		return tool.Outcome{Tool: req.Tool, Status: tool.StatusDenied, Error: &tool.Problem{What: "refused", Why: "no session runs this call"}}
	}
	if req.ID == "" {
		req.ID = host.NewID(l.p.Host, "c_")
	}
	admitted, end := l.admit(ctx, req)
	if end != nil {
		return *end
	}
	// The facts for the policy are read in the same step that counts the call.
	// Of two concurrent calls one sees the other, so no budget is spent twice.
	admitted.count(l)
	status := tool.StatusUnknown // if the runtime itself panics
	defer func() { l.p.Facts.Release(admitted.id, status) }()
	out := l.proceed(ctx, admitted)
	out.Text += notice(admitted.tool)
	out = admitted.pass.over(ctx, out, admitted.redaction)
	status = out.Status
	return out
}

// WaitCallIdle waits until no operation of a call runs in this process. It
// waits at most the grace period, then returns an error.
func (l *Pipeline) WaitCallIdle(ctx context.Context, call string) error {
	ctx, cancel := l.p.Host.WithTimeout(ctx, l.p.Limits.GracePeriod, tool.ErrTimeout)
	defer cancel()
	return l.p.Waits.Still(ctx, call)
}

// WaitIdle waits like WaitCallIdle, for all calls of the transaction.
func (l *Pipeline) WaitIdle(ctx context.Context) error {
	ctx, cancel := l.p.Host.WithTimeout(ctx, l.p.Limits.GracePeriod, tool.ErrTimeout)
	defer cancel()
	return l.p.Waits.StillIn(ctx, l.p.Recorder.Txn())
}

// LockResources locks resources under an ID that is not a call's. leave unlocks
// them.
func (l *Pipeline) LockResources(ctx context.Context, id string, resources []string) (leave func(), err error) {
	leave = func() { l.locks.Leave(id) }
	for _, r := range resources {
		release, err := l.locks.Take(ctx, id, r)
		if err != nil {
			leave()
			return nil, err
		}
		release()
	}
	return leave, nil
}

// JournalFailed reports whether a required record could not be written. The
// transaction can then only be reverted.
func (l *Pipeline) JournalFailed() bool { return l.journalFailed.Load() }

func (l *Pipeline) proceed(ctx context.Context, admitted admitted) tool.Outcome {
	permitted, end := l.permit(ctx, admitted)
	if end != nil {
		return *end
	}
	filtered, end := l.filter(ctx, permitted)
	if end != nil {
		return *end
	}
	back, err := l.p.Grant.Use(ctx)
	if err != nil {
		return *l.denied(ctx, filtered.permitted, &callstate.DeniedError{Access: filtered.asked()[0], Stage: "grant", Why: err.Error()})
	}
	if filtered.held && filtered.answer == nil {
		return *l.hold(ctx, filtered, back)
	}
	return l.run(ctx, filtered, back)
}

// run takes a call that the filters let through, or a released one, through the
// remaining steps.
func (l *Pipeline) run(ctx context.Context, filtered filtered, back func()) tool.Outcome {
	ctx = filtered.pass.within(ctx)
	intended, end := l.intend(ctx, filtered)
	if end != nil {
		back() // the call did not start
		return *end
	}
	// The call keeps the locks on what it changed until it is verified or
	// reverted.
	defer l.locks.Leave(intended.id)
	executed, end := l.execute(ctx, intended)
	if end != nil {
		if end.Status == tool.StatusPending {
			back() // the call runs again later
		}
		return *end
	}
	settled, end := l.settle(ctx, l.raise(ctx, l.deliver(ctx, executed)))
	if end != nil {
		return *end
	}
	return l.verify(ctx, settled)
}

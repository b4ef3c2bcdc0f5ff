package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/verify"
)

// Pipeline runs the calls of one transaction. Package agent makes it. A
// Pipeline is safe for concurrent use.
type Pipeline struct {
	p     PipelineConfig
	turns *callstate.ResourceLocks
	known callstate.SecretSets // secret values to remove from all records and output
	// journalFailed is set if a required record could not be written. The
	// journal then lacks effects of the transaction.
	journalFailed *atomic.Bool
}

// PipelineConfig holds the parts of a Pipeline. Only this module can make one
// that works.
type PipelineConfig struct {
	Key       callstate.ModuleKey
	Host      host.Host
	Tools     func() Registry // current tools; nil: none
	Engine    perm.Engine
	Approver  ctxperm.Approver // nil: an ask is a denial, or suspends the call
	Wait      bool             // without an approver, an ask suspends the call
	Grant     ctxperm.Grant    // grant of the session
	Principal perm.Principal
	Client    perm.ClientFacts
	Recorder  revert.Recorder // of the transaction
	Reverter  *revert.Reverter
	Roots     map[string]disk.Root
	Drivers   []any // each is a ctxperm.Driver
	World     func(accesses []perm.ResourceAccess, changes []effect.Change) verify.ResourceView
	Facts     CounterStore
	Nest      string    // nested transaction of the calls
	Beside    *Pipeline // pipeline of the enclosing transaction
	// Memory keeps remembered approvals. nil: the runtime remembers none.
	Memory interface {
		// Recall finds a remembered approval that covers the request now.
		Recall(ctx context.Context, ask ctxperm.ApprovalRequest, inputDigest string) (approval *record.Approval, err error)
		// Keep remembers an answer that the approver just gave.
		Keep(ctx context.Context, ask ctxperm.ApprovalRequest, ref record.ToolRef, inputDigest, by string, r ctxperm.RememberScope) error
	}
	Waiting  func(ctxperm.ApprovalRequest) // called for each approval request that is on the journal and waits; nil: none
	Asker    json.RawMessage               // this process, as pending calls record it; nil: unknown
	Limits   Limits
	Waits    *callstate.WaitGraph // shared by all transactions of the runtime
	Progress func(Progress)       // listener for progress; nil: none

	Filters    []Filter                             // in the order in which they run
	Properties *sync.Map                            // properties of the session, for filters
	Panicked   func(filter, hook string, err error) // called when a hook panics that cannot change the outcome; nil: none
}

// CounterStore counts the calls of a session and a transaction. Package agent
// implements it.
type CounterStore interface {
	Session() perm.SessionFacts
	Labels() (labels, requires []string)
	// Reserve counts a call as in flight and adds its sums, unless the call was
	// held and so counted before. It returns the facts without the call.
	Reserve(call, tool string, sums map[string]json.Number) perm.SessionFacts
	Release(call string, s Status) // ends the flight of the call, which then counts by its status
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
	Given(ctx context.Context) (has func(text string, resource bool) bool, err error)
}

// Limits bound one call. A zero field takes its default.
type Limits struct {
	MaxInput        int           // bytes of an input; default 16 MiB
	MaxOutput       int           // bytes of a result's canonical form; default 32 MiB
	MaxDepth        int           // depth of arrays and objects in an input, and in a result's JSON; default and maximum 120
	MaxFile         int           // bytes of a file that is read or written whole; default 32 MiB
	MaxEntries      int           // files and directories that one operation changes; default 10,000
	ApprovalTimeout time.Duration // until an approval request expires; default 24 hours
	Answer          time.Duration // how long a running call waits for one answer, beside its own time; default: as long as it may run
	Timeout         time.Duration // of Execute, if the tool has no timeout; default 2 minutes
	VerifyTimeout   time.Duration // of a Verify, beside what each change adds; default 30 seconds
	RevertTimeout   time.Duration // of a Revert; default 2 minutes
	GracePeriod     time.Duration // for operations in flight when a call must end; default 30 seconds
	ClaimTimeout    time.Duration // how long a call waits for a claim of another open transaction, within its timeout; default: it fails at once
}

// Maxima of an input or an output. A record holds it beside other data of the
// call, and has limits of its own.
const (
	mostBytes = 48 << 20
	mostDepth = 120
)

// Check returns an error for limits that the runtime cannot keep.
func (l Limits) Check() error {
	for name, n := range map[string]int{"Input": l.MaxInput, "Output": l.MaxOutput} {
		if n > mostBytes {
			return fmt.Errorf("tool.Limits.%s is %d bytes; at most %d can be kept in a record", name, n, mostBytes)
		}
	}
	if l.MaxDepth > mostDepth {
		return fmt.Errorf("tool.Limits.Depth is %d levels; at most %d can be kept in a record", l.MaxDepth, mostDepth)
	}
	return nil
}

func (l Limits) files() callstate.FileLimits {
	return callstate.FileLimits{Bytes: l.MaxFile, Entries: l.MaxEntries}
}

// document returns the limits of an input, and of a result's JSON except for
// its size.
func (l Limits) document() canon.Limits { return canon.Limits{Bytes: l.MaxInput, Depth: l.MaxDepth} }

// WithDefaults replaces zero fields by their defaults.
func (l Limits) WithDefaults() Limits {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	if l.MaxInput <= 0 {
		l.MaxInput = 16 << 20
	}
	if l.MaxOutput <= 0 {
		l.MaxOutput = 32 << 20
	}
	if l.MaxDepth <= 0 {
		l.MaxDepth = mostDepth
	}
	set(&l.ApprovalTimeout, 24*time.Hour)
	set(&l.Timeout, 2*time.Minute)
	set(&l.VerifyTimeout, 30*time.Second)
	set(&l.RevertTimeout, 2*time.Minute)
	set(&l.GracePeriod, 30*time.Second)
	return l
}

// Pipeline makes a Pipeline. It returns nil if another module made the parts.
func (p PipelineConfig) Pipeline() *Pipeline {
	if !p.Key.Valid() {
		return nil
	}
	p.Limits = p.Limits.WithDefaults()
	if p.Beside != nil {
		return &Pipeline{p: p, turns: p.Beside.turns, known: p.Beside.known, journalFailed: p.Beside.journalFailed}
	}
	return &Pipeline{p: p, turns: callstate.NewTurns(p.Host), known: callstate.SecretsOf(p.Drivers), journalFailed: new(atomic.Bool)}
}

// tools returns the current tools. A call reads them once and keeps that
// registry.
func (l *Pipeline) tools() Registry {
	if l.p.Tools == nil {
		return Registry{}
	}
	return l.p.Tools()
}

// asking returns the name with which a recorded call asks for its tool: the
// version that made it, even if newer ones exist.
func asking(ref record.ToolRef) string {
	if ref.Version == "" {
		return ref.Name
	}
	return ref.Name + "@" + ref.Version
}

// Request describes one call. Input is an Args, a json.RawMessage, or a string
// for a free-form tool. A nil input is an empty object.
type Request struct {
	ID    string // call ID; empty: the runtime makes one
	Tool  string
	Input any
	Batch perm.BatchFacts
	Turn  int // number of its turn in the session, from 0
	// Progress receives the progress reports of the call, beside
	// agent.OnProgress for all calls. nil: none.
	Progress func(Progress)
	// OnStart is called when the call's code is about to run. keep makes the
	// start durable, whatever the effect class, and fails once the code has
	// ended. note records a note beside those of the tool. nil: none.
	OnStart func(call string, keep func(context.Context) error, note func(ctx context.Context, key string, value any) error)

	// Asked is called, on its own goroutine, for each approval request that the
	// running call waits for. Its context ends when the wait ends.
	Asked func(ctx context.Context, ask ctxperm.ApprovalRequest)

	resumed *revert.Call  // the pending call that continues
	refusal *batchRefusal // refusal of the batch that contains the call
}

// Resume continues a pending call. The runtime admits the recorded input again.
// The answer counts if everything that the approval request showed is
// unchanged. Only the turn and the listeners of how count.
func (l *Pipeline) Resume(ctx context.Context, c *revert.Call, how Request) Outcome {
	r := Request{ID: c.Ref.Call, Tool: asking(c.Tool), Turn: how.Turn, Progress: how.Progress, OnStart: how.OnStart, Asked: how.Asked, resumed: c}
	if c.Asked != nil {
		r.Input = c.Asked.Input
	}
	return l.Run(ctx, r)
}

// Run sends a call through all steps of the pipeline. Each step takes what the
// one before it returned. A step that ends the call early returns its outcome.
// Run returns no error: the outcome says what went wrong.
func (l *Pipeline) Run(ctx context.Context, req Request) Outcome {
	if l == nil {
		return Outcome{Tool: req.Tool, Status: StatusDenied, Error: &Problem{What: "refused", Why: "no session runs this call"}}
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
	admitted.counted = l.p.Facts.Reserve(admitted.id, admitted.tool.Name(), admitted.sums)
	status := StatusUnknown // if the runtime itself panics
	defer func() { l.p.Facts.Release(admitted.id, status) }()
	out := l.proceed(ctx, admitted)
	out.Text += admitted.tool.notice()
	out = admitted.pass.over(ctx, out, admitted.veil)
	status = out.Status
	return out
}

// WaitCallIdle waits until no operation of a call runs in this process. It
// waits at most the grace period, then returns an error.
func (l *Pipeline) WaitCallIdle(ctx context.Context, call string) error {
	ctx, cancel := l.p.Host.WithTimeout(ctx, l.p.Limits.GracePeriod, ErrTimeout)
	defer cancel()
	return l.p.Waits.Still(ctx, call)
}

// WaitIdle waits like WaitCallIdle, for all calls of the transaction.
func (l *Pipeline) WaitIdle(ctx context.Context) error {
	ctx, cancel := l.p.Host.WithTimeout(ctx, l.p.Limits.GracePeriod, ErrTimeout)
	defer cancel()
	return l.p.Waits.StillIn(ctx, l.p.Recorder.Txn())
}

// LockResources locks resources under an ID that is not a call's. leave unlocks
// them.
func (l *Pipeline) LockResources(ctx context.Context, id string, resources []string) (leave func(), err error) {
	leave = func() { l.turns.Leave(id) }
	for _, r := range resources {
		release, err := l.turns.Take(ctx, id, r)
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

func (l *Pipeline) proceed(ctx context.Context, admitted admitted) Outcome {
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
func (l *Pipeline) run(ctx context.Context, filtered filtered, back func()) Outcome {
	ctx = filtered.pass.within(ctx)
	intended, end := l.intend(ctx, filtered)
	if end != nil {
		back() // the call did not start
		return *end
	}
	// The call keeps the locks on what it changed until it is verified or
	// reverted.
	defer l.turns.Leave(intended.id)
	executed, end := l.execute(ctx, intended)
	if end != nil {
		if end.Status == StatusPending {
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

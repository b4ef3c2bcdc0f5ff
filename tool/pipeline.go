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

// Pipeline is the straight line of a call for one transaction. Package agent makes
// it; it is safe for concurrent use.
type Pipeline struct {
	p     PipelineConfig
	turns *callstate.ResourceLocks
	known callstate.SecretSets // values that must be nowhere
	// journalFailed: a record that must not be missing could not be written. What the
	// journal says of the transaction is then behind the world.
	journalFailed *atomic.Bool
}

// PipelineConfig is what a line is made of. Only this module can make one that works.
type PipelineConfig struct {
	Key       callstate.ModuleKey
	Host      host.Host
	Tools     func() Registry // as they are now; nil: none
	Engine    perm.Engine
	Approver  ctxperm.Approver // nil: an ask is a denial, or waits
	Wait      bool             // without an approver an ask suspends its call
	Grant     ctxperm.Grant    // what the session holds
	Principal perm.Principal
	Client    perm.ClientFacts
	Recorder  revert.Recorder // of the transaction
	Reverter  *revert.Reverter
	Roots     map[string]disk.Root
	Drivers   []any // ctxperm.Driver each
	World     func(accesses []perm.ResourceAccess, changes []effect.Change) verify.ResourceView
	Facts     CounterStore
	Nest      string    // the nested transaction of the calls
	Beside    *Pipeline // of the transaction that it is in
	// Memory keeps approvals for calls to come; nil: none is remembered.
	Memory interface {
		// Recall finds one that stands for an answer to the question now.
		Recall(ctx context.Context, ask ctxperm.ApprovalRequest, inputDigest string) (approval *record.Approval, err error)
		// Keep remembers an answer that was just given.
		Keep(ctx context.Context, ask ctxperm.ApprovalRequest, ref record.ToolRef, inputDigest, by string, r ctxperm.RememberScope) error
	}
	Waiting  func(ctxperm.ApprovalRequest) // told of each question that is on the journal and waits; nil: nobody
	Asker    json.RawMessage               // this process, as calls that wait record it; nil: not known
	Limits   Limits
	Waits    *callstate.WaitGraph // of the runtime
	Progress func(Progress)       // nil: nobody listens

	Filters    []Filter                             // in the order in which they are asked
	Properties *sync.Map                            // of the session, for filters
	Panicked   func(filter, hook string, err error) // of a hook that can change nothing any more; nil: nobody is told
}

// CounterStore are the counts of a session and a transaction, kept by package agent.
type CounterStore interface {
	Session() perm.SessionFacts
	Labels() (labels, requires []string)
	// Reserve counts a call as in flight and its sums as added, unless it was held and so counted before;
	// it returns the facts without it.
	Reserve(call, tool string, sums map[string]json.Number) perm.SessionFacts
	Release(call string, s Status) // the call is in flight no more, and counts as what it came to
	// Spent returns what the calls of a scope of budgets other than the session came to, as the journal is now.
	Spent(ctx context.Context, per string) (perm.SessionFacts, error)
	// Charge has write put the start of a call on the journal, and returns for each scope what its calls had come to before that
	// record. An error says that this is not known; then the record may be there.
	Charge(ctx context.Context, call string, per []string, write func() error) ([]perm.SessionFacts, error)
	Txn() perm.TxnFacts
	Next() int // the next sequence number of the transaction
	// Label gives the session labels, and what each of its calls must have; it returns what is new of them.
	Label(labels, requires []string) (freshLabels, freshRequires []string)
	// Given tells of canonical URLs, and of resources, whether the session was given them.
	Given(ctx context.Context) (has func(text string, resource bool) bool, err error)
}

// Limits bound one call. A zero field takes its default.
type Limits struct {
	MaxInput        int           // bytes of an input; default 16 MiB
	MaxOutput       int           // bytes of a result's canonical form; default 32 MiB
	MaxDepth        int           // of arrays and objects in an input, and in a result's JSON; default 120, which is the most
	MaxFile         int           // bytes of a file that is read or written whole; default 32 MiB
	MaxEntries      int           // files and directories that one operation changes; default 10,000
	ApprovalTimeout time.Duration // how long an asked call waits for an answer; default 24 hours
	Answer          time.Duration // how long a call that runs waits for one answer, beside its own time; default: as long as it may run
	Timeout         time.Duration // of Execute where the tool names none; default 2 minutes
	VerifyTimeout   time.Duration // of a Verify, beside what each change adds; default 30 seconds
	RevertTimeout   time.Duration // of a Revert; default 2 minutes
	GracePeriod     time.Duration // for operations in flight when a call has to end; default 30 seconds
	ClaimTimeout    time.Duration // how long a call waits for what another open transaction holds, within its timeout; default: it fails at once
}

// What an input or an output can be let have: a record holds it, in what else it
// says of the call, and has limits of its own.
const (
	mostBytes = 48 << 20
	mostDepth = 120
)

// Check refuses limits that nothing could keep.
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

// document bounds an input, and a result's JSON but for its size.
func (l Limits) document() canon.Limits { return canon.Limits{Bytes: l.MaxInput, Depth: l.MaxDepth} }

// WithDefaults fills in what is zero.
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

// Pipeline makes a line, or returns nil for parts that this module did not make.
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

// tools are those of this moment. A call looks once, and goes on with what it found.
func (l *Pipeline) tools() Registry {
	if l.p.Tools == nil {
		return Registry{}
	}
	return l.p.Tools()
}

// asking is how a call on the journal asked for its tool, or would have: whatever came
// since, it is this version that it stands for.
func asking(ref record.ToolRef) string {
	if ref.Version == "" {
		return ref.Name
	}
	return ref.Name + "@" + ref.Version
}

// Request asks for one call. Input is an Args, a json.RawMessage, or a string
// for a free-form tool; a nil input is an empty object.
type Request struct {
	ID    string // call id; made by the runtime where empty
	Tool  string
	Input any
	Batch perm.BatchFacts
	Turn  int // which request of its session it belongs to, from 0
	// Progress listens to what the call reports, like agent.OnProgress for all calls; nil: nobody.
	Progress func(Progress)
	// OnStart is told when the call's code is about to run. Keep makes it durable that it does, whatever the class of the call, and
	// fails once the code has ended; note notes something beside what the tool does. Nil: nobody is told.
	OnStart func(call string, keep func(context.Context) error, note func(ctx context.Context, key string, value any) error)

	// Asked is told, on a goroutine of its own, of a question that the call waits with while it runs. Its context ends when nobody
	// waits any more.
	Asked func(ctx context.Context, ask ctxperm.ApprovalRequest)

	resumed *revert.Call  // a pending call that goes on
	refusal *batchRefusal // of the batch that it is in
}

// Resume lets a pending call go on: what was journaled is admitted again, and the
// answer counts if everything that was shown is still the same. Of how its turn and its
// listeners count.
func (l *Pipeline) Resume(ctx context.Context, c *revert.Call, how Request) Outcome {
	r := Request{ID: c.Ref.Call, Tool: asking(c.Tool), Turn: how.Turn, Progress: how.Progress, OnStart: how.OnStart, Asked: how.Asked, resumed: c}
	if c.Asked != nil {
		r.Input = c.Asked.Input
	}
	return l.Run(ctx, r)
}

// Run is the one path that every call takes. Each step takes what the step
// before it returned; a step that ends the call early returns its outcome.
// Run returns a call's outcome, never an error: what went wrong is in it.
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
	// What a policy counts is fixed here, in one step with being counted: of two
	// calls that come at once one sees the other, so no budget is spent twice.
	admitted.counted = l.p.Facts.Reserve(admitted.id, admitted.tool.Name(), admitted.sums)
	status := StatusUnknown // where the runtime itself panics
	defer func() { l.p.Facts.Release(admitted.id, status) }()
	out := l.proceed(ctx, admitted)
	out.Text += admitted.tool.notice()
	out = admitted.pass.over(ctx, out, admitted.veil)
	status = out.Status
	return out
}

// WaitCallIdle waits until nothing of a call is going on in this process any more: as long as
// for operations of a call that has to end, and then fails.
func (l *Pipeline) WaitCallIdle(ctx context.Context, call string) error {
	ctx, cancel := l.p.Host.WithTimeout(ctx, l.p.Limits.GracePeriod, ErrTimeout)
	defer cancel()
	return l.p.Waits.Still(ctx, call)
}

// WaitIdle is Still for all calls of the transaction.
func (l *Pipeline) WaitIdle(ctx context.Context) error {
	ctx, cancel := l.p.Host.WithTimeout(ctx, l.p.Limits.GracePeriod, ErrTimeout)
	defer cancel()
	return l.p.Waits.StillIn(ctx, l.p.Recorder.Txn())
}

// LockResources takes the turn for resources, in the name of what is no call. Leave gives them
// back.
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

// JournalFailed reports whether a record that must not be missing could not be
// written. The transaction can then only be reverted.
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

// run takes a call that the filters let through, also one that was held and is
// released, through the other steps.
func (l *Pipeline) run(ctx context.Context, filtered filtered, back func()) Outcome {
	ctx = filtered.pass.within(ctx)
	intended, end := l.intend(ctx, filtered)
	if end != nil {
		back() // it did not start
		return *end
	}
	// What the call changed stays its own until it is verified or taken back.
	defer l.turns.Leave(intended.id)
	executed, end := l.execute(ctx, intended)
	if end != nil {
		if end.Status == StatusPending {
			back() // it runs another time
		}
		return *end
	}
	settled, end := l.settle(ctx, l.raise(ctx, l.deliver(ctx, executed)))
	if end != nil {
		return *end
	}
	return l.verify(ctx, settled)
}

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/filter"
)

// internals are what package tool hides from tool authors.
var internals = toolaccess.Of[tool.Tool, tool.Spec, tool.Registry, tool.RevertContext]()

// Runtime holds tools, a policy, a journal and roots. A Runtime is safe for
// concurrent use. Between calls it runs no goroutine except that of Retain.
// It reads no environment variables.
type Runtime struct {
	services      pipeline.Services // what the pipelines of all sessions share
	tools         atomic.Pointer[tool.Registry]
	warnedOf      atomic.Pointer[tool.Registry] // warnOfRoots has logged its tools
	wholeGrant    atomic.Pointer[recordedGrant] // what the tools of a registry need
	exchange      sync.Mutex                    // never held across a wait; guards the change of tools, the ledger and the retention
	journal       journal.Journal
	schemes       []revert.Scheme
	roots         roots
	others        foreignRoots
	log           *slog.Logger
	limits        tool.Limits
	live          openTxns
	named         callIDLocks
	register      grantRegistry
	looks         atomic.Int64 // at a journal that does not tell what others wrote
	sessionStates sessionStates
	shapes        shapes
	abandon       AbandonedAction
	customizers   map[string]ToolCustomizer // by name, or name@version
	state         stateFolder
	closed        atomic.Bool
	ledger        *callLedger // of principals, under exchange; nil: no budget needs it
	retention     *retention  // under exchange; nil: no pruning in the background
}

// ErrClosed says that the runtime is closed and runs no calls.
var ErrClosed = fmt.Errorf("the runtime is closed: %w", tool.ErrInvalid)

// New makes a runtime and opens its roots. Close releases them.
func New(opts ...Option) (*Runtime, error) {
	c := config{services: pipeline.Services{Host: host.Real(), Waits: new(callstate.WaitGraph)}, log: slog.Default()}
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o(&c); err != nil {
			return nil, fmt.Errorf("agent: %w", err)
		}
	}
	rt := &Runtime{services: c.services, journal: c.journal, schemes: c.schemes, log: c.log, limits: c.limits, abandon: c.abandon, customizers: c.customizers}
	rt.services.Panicked = rt.panicked
	var err error
	if err = rt.SetTools(c.tools...); err != nil {
		return nil, err
	}
	if err = rt.checkCustomized(); err != nil {
		return nil, err
	}
	if rt.services.Engine == nil {
		if rt.services.Engine, err = rego.Load(rego.Source{FS: policies.Workspace(), Prefix: policies.Prefix}); err != nil {
			return nil, fmt.Errorf("agent: the workspace policy: %w", err)
		}
	}
	if rt.journal == nil {
		rt.journal = journal.Memory()
		rt.log.Warn("the journal is in memory: nothing can be reverted after this process ends", "fix", "agent.Journal(sqlite.Open(…))")
	}
	if rt.roots, err = openRoots(c.services.Host, c.roots); err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	if err := rt.roots.keepOut(rt.journal); err != nil {
		return nil, errors.Join(fmt.Errorf("agent: %w", err), rt.roots.close())
	}
	if rt.state, err = stateOf(rt.services.Host, rt.journal); err != nil {
		return nil, errors.Join(fmt.Errorf("agent: %w", err), rt.roots.close())
	}
	if rt.services.Wait {
		rt.services.ProcessChain = host.ProcessChain(rt.services.Host)
	}
	rt.register.journal, rt.register.lookLock = rt.journal, host.NewLock(rt.services.Host, "register.look")
	rt.services.Reverter = &revert.Reverter{Journal: rt.journal, Host: rt.services.Host, EnvironmentFor: rt.environment, Named: rt.otherFolders, OnDrop: rt.dropped}
	return rt, nil
}

// Close ends the work of Retain and releases the roots. Afterwards every call
// fails with ErrClosed. A running call ends as it can. Open transactions stay
// open. If the journal is durable, another process can revert them once this
// one has closed the journal.
func (rt *Runtime) Close() error {
	rt.exchange.Lock()
	rt.closed.Store(true)
	r := rt.retention
	rt.exchange.Unlock()
	r.end()
	return errors.Join(rt.roots.close(), rt.others.close())
}

// open returns ErrClosed if the runtime is closed.
func (rt *Runtime) open() error {
	if rt.closed.Load() {
		return ErrClosed
	}
	return nil
}

// Tools returns the current tools; see SetTools.
func (rt *Runtime) Tools() tool.Registry {
	if r := rt.tools.Load(); r != nil {
		return *r
	}
	return tool.Registry{}
}

// SetTools replaces all tools of the runtime in one step. A call uses the tools
// that were current when it was admitted, from its first step to its last.
// After an error nothing has changed. Sessions keep their grant, and do not get
// what new tools need beyond it. An approval counts only for the declaration
// that it was given for. While this runtime lives, earlier calls are reverted
// by the tools that made them. Another process needs a tool of the same name
// and undo version.
func (rt *Runtime) SetTools(tools ...tool.Tool) error {
	r, err := tool.NewRegistry(tools...)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	rt.exchange.Lock()
	defer rt.exchange.Unlock()
	r = internals.Replacing(r, rt.Tools())
	rt.tools.Store(&r)
	return nil
}

// Filters returns the filters, in the order in which they see calls.
func (rt *Runtime) Filters() []filter.Filter { return slices.Clone(rt.services.Filters) }

func (rt *Runtime) panicked(filter, hook string, err error) {
	rt.log.Error("a hook of a filter panicked; what it was told of stands", "filter", filter, "hook", hook, "error", err.Error())
}

// Journal returns the journal of the runtime.
func (rt *Runtime) Journal() journal.Journal { return rt.journal }

func (rt *Runtime) sessionRecord(p perm.Principal) (*record.Session, error) {
	who, err := canon.Marshal(p)
	if err != nil {
		return nil, err
	}
	body := &record.Session{Principal: json.RawMessage(who), Roots: []record.Root{}, State: rt.state.Root}
	if e, ok := rt.services.Engine.(interface{ Revision() string }); ok {
		body.Policy = e.Revision()
	}
	for _, r := range rt.roots {
		id, err := canon.Marshal(r.open.Identity())
		if err != nil {
			return nil, err
		}
		body.Roots = append(body.Roots, record.Root{Name: r.name, Path: r.path, Identity: id, Node: rt.state.Node})
	}
	return body, nil
}

// Load reads a transaction of any session, as it is in the folders of this
// runtime. A revert in a copy of a folder counts only if MovedRoot names that
// copy.
func (rt *Runtime) Load(ctx context.Context, txn string) (*revert.Txn, error) {
	return rt.services.Reverter.Load(ctx, txn)
}

// Outcome returns the recorded outcome of a call of any session; see
// Session.Outcome.
func (rt *Runtime) Outcome(ctx context.Context, call string) (tool.Outcome, error) {
	t, c, err := revert.LoadCall(ctx, rt.journal, call)
	if err != nil {
		return tool.Outcome{}, err
	}
	s, err := rt.sessionByID(ctx, t.Session)
	if err != nil {
		return tool.Outcome{}, err
	}
	return s.outcome(t, c), nil
}

// Revert reverts a transaction or a call of any session, as how says. id is the
// ID of either. The transaction is an open one of this runtime, once its calls
// in flight have ended; an abandoned one; or a committed one. If the revert is
// not complete, the error is ErrPartialRevert.
func (rt *Runtime) Revert(ctx context.Context, id string, how revert.Options) (revert.Report, error) {
	txn := id
	if of, err := revert.TxnOf(ctx, rt.journal, id); err == nil {
		txn, how.Calls = of, []string{id}
	}
	if tx, ok := rt.live.get(txn); ok {
		return tx.Revert(ctx, how)
	}
	if err := rt.atHand(ctx, txn, how.Calls); err != nil {
		return revert.Report{}, err
	}
	rep, err := rt.services.Reverter.Revert(ctx, txn, how)
	return rt.reported(ctx, rep, partial(rep, err))
}

// reported adds to a report the folders that only MovedRoot identifies.
func (rt *Runtime) reported(ctx context.Context, rep revert.Report, err error) (revert.Report, error) {
	if rep.Txn == "" || err != nil && !errors.Is(err, ErrPartialRevert) {
		return rep, err
	}
	o, failed := revert.LoadOpening(ctx, rt.journal, rep.Txn)
	if failed != nil {
		return rep, errors.Join(err, failed)
	}
	now, was, failed := rt.wordOnly(ctx, o.Session)
	for i, r := range now {
		rep.Named = append(rep.Named, revert.NamedRoot{Root: r.Name, Path: r.Path, Was: was[i].Path})
	}
	return rep, errors.Join(err, failed)
}

// Preview returns what Revert would do now, with one item for each resource, and
// writes nothing. A resource that could not be reverted is not an error.
func (rt *Runtime) Preview(ctx context.Context, id string, how revert.Options) (revert.Report, error) {
	txn := id
	if of, err := revert.TxnOf(ctx, rt.journal, id); err == nil {
		txn, how.Calls = of, []string{id}
	}
	if err := rt.atHand(ctx, txn, how.Calls); err != nil {
		return revert.Report{}, err
	}
	rep, err := rt.services.Reverter.Preview(ctx, txn, how)
	return rt.reported(ctx, rep, err)
}

// Redo applies again what the revert of an ended transaction removed, by the
// same rules: it leaves later changes alone. A redo can be reverted again. The
// ID of a revert transaction identifies the transaction that it reverted. by
// names the requester for the record.
func (rt *Runtime) Redo(ctx context.Context, txn, by string) (revert.Report, error) {
	if err := rt.atHand(ctx, txn, nil); err != nil {
		return revert.Report{}, err
	}
	rep, err := rt.services.Reverter.Redo(ctx, txn, by)
	return rt.reported(ctx, rep, partial(rep, err))
}

package reverttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/simjournal"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// inputRuns is the shared state of the runs of one input.
type inputRuns struct {
	tool        tool.Tool
	input       int
	args        any
	make        func(*Wire) (TestEnv, error)
	seed        uint64
	verifies    bool // the tool has a Verify
	idempotent  bool // the tool declares that running twice equals running once
	otherActors []string

	before, after *snapshot // without any fault; nil until known
	steady        bool      // after is the same each time
	touched       []string  // files that the call changes
}

// run is one run: an environment, and the processes that act on it.
type run struct {
	c     *inputRuns
	path  faultPath
	env   TestEnv
	store *simjournal.Store
	disk  *workspace
	over  chan struct{} // closed when later events do not count any more

	txn     string
	outcome tool.Outcome
	report  *revert.Report    // of the last revert
	theirs  map[string]string // what another actor wrote
	gone    map[string]bool   // what another actor removed
	aside   map[string]bool   // of these, what has nothing of the call
	seen    *snapshot         // after the call, before its revert
	end     *snapshot         // at the end
	traces  [][]reachedPoint
	latests []func()
	clock   time.Duration
	redone  bool // also redone and reverted again

	mu      sync.Mutex // never held across a wait
	current *process
	trace   []string
	wrong   []string
}

func (r *run) tracef(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if line := fmt.Sprintf(format, args...); len(r.trace) == 0 || r.trace[len(r.trace)-1] != line {
		r.trace = append(r.trace, line)
	}
}

// violation records a violation.
func (r *run) violation(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

func (r *run) latest() *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// later delays an effect until the end.
func (r *run) later(what string, effect func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latests = append(r.latests, func() {
		r.tracef("the request %s arrives, late", what)
		effect()
	})
}

func (r *run) weak() bool { return r.env.Power != nil || r.disk.pending() }

func (r *run) cut(left crashState, variant uint64) {
	random := rand.New(rand.NewPCG(r.c.seed, variant))
	gone := left.store.Pending()
	if variant > 0 && gone > 0 {
		gone = random.IntN(gone + 1)
	}
	left.store.Cut(gone)
	if left.disk != nil {
		left.disk.cut(variant, r.c.seed)
	}
}

// intrude makes another actor change something, and records the result.
//
// If that replaces a resource while the outcome of the call is unknown, nothing
// of the call remains in it.
func (r *run) intrude(who string, known bool) {
	was, err := r.look()
	if err == nil {
		if f := r.env.Foreign[who]; f != nil {
			err = f()
		} else if r.disk != nil {
			r.disk.disk.Watch(nil) // not an action of the process
			err = r.disk.intrude(who, r.c.touched)
			r.latest().watch()
		}
	}
	now, looked := r.look()
	if err = errors.Join(err, looked); err != nil {
		r.violation("somebody else could not change the world: %v", err)
		return
	}
	for _, name := range differ(was.is, now.is) {
		had, before := was.is[name], r.c.before.is[name]
		r.aside[name] = had == before || !known
		if is, ok := now.is[name]; ok {
			r.theirs[name] = is
		} else {
			r.gone[name] = true
		}
	}
}

// drive runs the processes, each until it ends. If an effect arrives late, one
// more process checks the result.
func (r *run) drive() {
	var ends []chan struct{}
	defer func() {
		close(r.over)
		for _, end := range ends {
			<-end
		}
	}()
	for life := 0; ; life++ {
		var f *fault
		if life < len(r.path) {
			f = &r.path[life]
		}
		dead, end := r.lives(life, f)
		ends = append(ends, end)
		if dead {
			continue
		}
		if len(r.latests) == 0 {
			return
		}
		for _, effect := range r.latests {
			effect()
		}
		r.latests = nil
		r.judgeEnd("once what was late has arrived, ")
		_, end = r.lives(life+1, nil)
		ends = append(ends, end)
		return
	}
}

// lives runs one process until it ends or dies; end is closed when all its code
// has ended.
func (r *run) lives(life int, f *fault) (dead bool, end chan struct{}) {
	p := &process{run: r, first: life == 0, fault: f, store: r.store, parked: make(chan struct{}), real: r.env.Process != nil || r.c.tool.Spec().Confinement != tool.Handles}
	r.clock += time.Second
	switch {
	case r.env.Process == nil && life > 0 && len(r.latests) == 0:
		r.clock += time.Hour
	case r.env.Process != nil && life == 0: // a real environment uses the real time
		r.clock = time.Since(hosttest.New(0).Now()) - time.Minute
	}
	r.mu.Lock()
	r.current = p
	r.mu.Unlock()
	end = make(chan struct{})
	go func() {
		defer close(end)
		p.live(life)
	}()
	select {
	case <-end:
	case <-p.parked:
	}
	if r.env.Exit != nil {
		if err := r.env.Exit(); err != nil {
			r.violation("the end of a process: %v", err)
		}
	}
	p.mu.Lock()
	dead, left := p.hasEnded, p.left
	r.traces = append(r.traces, slices.Clone(p.moments))
	p.mu.Unlock()
	if !dead {
		return false, end
	}
	r.store, r.disk = left.store, left.disk
	if f.how.kind() == power && r.env.Power != nil {
		r.env.Power()
	}
	if who := f.how.otherActor(); who != "" {
		r.tracef("meanwhile somebody else %s", who)
		r.intrude(who, false)
	}
	return true, end
}

// live runs a process from its beginning to its end.
func (p *process) live(life int) {
	r := p.run
	base := context.WithValue(context.Background(), processKey{}, p)
	if r.env.Context != nil {
		base = r.env.Context(base)
	}
	call, cancel := context.WithCancel(base)
	defer cancel()
	p.cancel = cancel
	rt, err := p.runtime(life)
	if err != nil {
		r.violation("a process could not be started: %v", err)
		return
	}
	defer func() { _ = rt.Close() }()
	p.watch()
	if p.first {
		p.act(base, call, rt)
	} else {
		p.recover(base, rt)
	}
	if p.ended() {
		return
	}
	p.enter(over)
	if p.first && r.outcome.Status == "" {
		return
	}
	r.judgeEnd("")
	if r.redone && len(r.wrong) == 0 {
		r.redoAndRevert(base, rt)
	}
}

func (p *process) watch() {
	wrote := func(what string) { p.at(wrote, what) }
	p.store.Watch(func(op string) { wrote("journal: " + op) })
	if p.run.disk != nil {
		p.run.disk.disk.Watch(func(op string) { wrote("disk: " + op) })
	}
}

func (p *process) runtime(life int) (*agent.Runtime, error) {
	r := p.run
	of := r.c.tool
	if r.env.Tool != nil {
		made, err := r.env.Tool()
		if err != nil {
			return nil, err
		}
		if made.Digest() != of.Digest() {
			return nil, errors.New("NewEnv makes another tool than the one that is graded")
		}
		if of, err = wrapped(made); err != nil {
			return nil, err
		}
	}
	opts := []agent.Option{
		agent.Host(p.host(life)), agent.Journal(processJournal{p.store.Open(), p}), agent.Log(slog.New(slog.DiscardHandler)),
		agent.Policy(everything), agent.Tools(of),
	}
	if r.disk != nil {
		opts = append(opts, agent.Root("workspace", folder))
	}
	if r.env.Process != nil {
		more, err := r.env.Process()
		if err != nil {
			return nil, err
		}
		opts = append(opts, more...)
	}
	return agent.New(opts...)
}

// everything allows every call: a grade is about reverts.
var everything = perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
	return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "the tool is graded"}}}), nil
})

// act is the first process: it calls the tool, commits, and reverts the call.
func (p *process) act(base, call context.Context, rt *agent.Runtime) {
	r := p.run
	s, err := rt.Session(base, perm.Principal{ID: "grader"})
	var tx *agent.Txn
	if err == nil {
		tx, err = s.Begin(base)
	}
	if err != nil {
		if !p.ended() {
			r.violation("no transaction could be begun: %v", err)
		}
		return
	}
	r.txn = tx.ID()
	p.enter(calling)
	out, _ := tx.Invoke(call, r.c.tool.Name(), r.c.args)
	if p.ended() {
		return
	}
	r.outcome = out
	r.tracef("the call ended %s%s", out.Status, why(out))
	p.enter(waiting)
	if err := tx.Commit(base); err != nil && !p.ended() {
		r.tracef("the transaction does not commit: %v", err)
	}
	if seen, err := r.look(); err == nil {
		r.seen = seen
	}
	r.checkJournal(base, rt)
	p.at(pause, "between the call and its undo")
	if p.ended() {
		return
	}
	p.enter(reverting)
	p.revert(base, rt)
}

func why(out tool.Outcome) string {
	if out.Error == nil {
		return ""
	}
	return " (" + out.Error.Why + ")"
}

// recover is each later process: it recovers what the one before left, and
// reverts everything.
func (p *process) recover(base context.Context, rt *agent.Runtime) {
	r := p.run
	r.tracef("a new process recovers")
	p.enter(recovering)
	found, err := rt.Recover(base)
	if p.ended() {
		return
	}
	if err != nil {
		r.violation("recovery failed: %v", err)
	}
	for _, s := range found.Settled {
		r.tracef("it finds the call %s: %s", s.Outcome, s.Why)
	}
	r.checkJournal(base, rt)
	if r.txn == "" {
		return
	}
	p.enter(reverting)
	p.revert(base, rt)
}

// revert reverts. It repeats a failed revert, and repeats a successful one
// once.
func (p *process) revert(base context.Context, rt *agent.Runtime) {
	r := p.run
	for range 3 {
		rep, err := rt.Revert(base, r.txn, revert.Options{})
		if p.ended() {
			return
		}
		if errors.Is(err, journal.ErrNotFound) {
			r.tracef("the journal knows of no such transaction")
			return
		}
		if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
			r.violation("reverting failed: %v", err)
			return
		}
		first := r.report == nil
		if first || len(rep.Items) > 0 || !r.report.Complete() {
			r.report = &rep
		}
		if rep.Complete() && !first {
			return
		}
		r.tracef("it reverts: %s%s", rep.State, items(rep))
	}
}

func items(rep revert.Report) string {
	var all []string
	for _, i := range rep.Items {
		text := i.Resource + " " + string(i.Outcome)
		if i.Why != "" {
			text += " (" + i.Why + ")"
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return ", nothing to do"
	}
	return ", " + strings.Join(all, "; ")
}

// wrapped returns the tool with fault points around its code. Its declaration,
// and so its digest, is the same.
func wrapped(t tool.Tool) (tool.Tool, error) {
	return t.Modify(func(s *tool.Spec) {
		execute, back := s.Execute, s.Revert
		s.Execute = func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			out, err := execute(ctx, tc, slices.Clone(in))
			p, ok := ctx.Value(processKey{}).(*process)
			if !ok {
				return out, err
			}
			if p.at(leaves, "the tool's Execute has returned") == again && err == nil {
				out, err = execute(ctx, tc, in)
			}
			if p.ended() {
				return tool.Result{}, errProcessEnded
			}
			return out, err
		}
		if back == nil {
			return
		}
		s.Revert = func(ctx context.Context, rc tool.RevertContext) error {
			p, ok := ctx.Value(processKey{}).(*process)
			if !ok {
				return back(ctx, rc)
			}
			if p.at(reverts, "the tool's Revert is about to begin") == fails {
				return errors.New("it is made to fail before it began")
			}
			if p.ended() {
				return errProcessEnded
			}
			err := back(ctx, rc)
			if p.at(reverted, "the tool's Revert has returned") == fails && err == nil {
				return errors.New("it is made to fail after it was done")
			}
			if p.ended() {
				return errProcessEnded
			}
			return err
		}
	})
}

// start creates a run.
func (c *inputRuns) start(w faultPath, redone bool) (*run, error) {
	r := &run{c: c, path: w, store: simjournal.NewStore(), over: make(chan struct{}), theirs: map[string]string{}, gone: map[string]bool{}, aside: map[string]bool{}, redone: redone}
	var err error
	if r.env, err = c.make(&Wire{r}); err != nil {
		return nil, fmt.Errorf("reverttest: the world: %w", err)
	}
	if r.disk, err = newWorkspace(r.env.Files); err != nil {
		return nil, err
	}
	return r, nil
}

// finish runs it to its end.
func (r *run) finish() error {
	r.drive()
	if end, err := r.look(); err == nil {
		r.end = end
	}
	if r.env.Close != nil {
		return r.env.Close()
	}
	return nil
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

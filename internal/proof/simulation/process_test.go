package simulation_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/proof/opcheck"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// process is an opening of the journal with a runtime. It is its own host.
type process struct {
	state   *simState
	id      int
	ended   bool // guarded by the scheduler's lock, as the fields below
	stopped bool
	until   int // the step at which a stopped process continues

	rt       *agent.Runtime
	session  *agent.Session // nil: not yet
	inner    journal.Journal
	poisoned bool
	roots    []disk.Root

	mu     sync.Mutex // never held across a wait
	random *rand.Rand
	jump   time.Duration
}

var startTime = time.Date(2026, time.February, 1, 0, 0, 0, 0, time.UTC)

// process starts one.
func (w *simState) process() *process {
	p := &process{state: w, id: len(w.procs), random: rand.New(rand.NewPCG(w.seed, uint64(1000+len(w.procs)))), inner: w.journal.Open()}
	rt, err := agent.New(
		agent.Host(p), agent.Journal(&watched{Journal: p.inner, proc: p}), agent.Log(slog.New(slog.DiscardHandler)),
		agent.Policy(policy), agent.Tools(tools...), agent.Root("workspace", "/sim"),
	)
	if err != nil {
		panic(err)
	}
	p.rt = rt
	w.procs = append(w.procs, p)
	return p
}

func (p *process) Now() time.Time {
	p.state.sched.mu.Lock()
	clock := p.state.sched.clock
	p.state.sched.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	return startTime.Add(clock + p.jump)
}

func (p *process) Random(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var word [8]byte
	for len(b) > 0 {
		binary.LittleEndian.PutUint64(word[:], p.random.Uint64())
		b = b[copy(b, word[:]):]
	}
}

// Point parks. The slots of a transaction are not scheduling points: a
// goroutine that waits for one wakes when it is released.
func (p *process) Point(ctx context.Context, id string) error {
	if id != "txn.slot" {
		p.state.sched.park(ctx, p, id)
	}
	return nil
}

func (p *process) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return p.state.sched.within(ctx, p, d, cause, &p.state.sched.timers)
}

func (p *process) OpenRoot(string) (disk.Root, error) {
	r := p.state.disk.Root()
	p.mu.Lock()
	p.roots = append(p.roots, r)
	p.mu.Unlock()
	return &root{Root: r, state: p.state}, nil
}

// root is the simulated disk when it is full, or its syncs fail.
type root struct {
	disk.Root
	state *simState
}

func (r *root) WithoutLinks() disk.Root {
	return &root{Root: disk.WithoutLinks(r.Root), state: r.state}
}

func (r *root) Create(name string, perm fs.FileMode) (disk.File, error) {
	if r.state.full {
		return nil, &fs.PathError{Op: "create", Path: name, Err: syscall.ENOSPC}
	}
	f, err := r.Root.Create(name, perm)
	if err != nil {
		return nil, err
	}
	return &file{File: f, state: r.state, name: name}, nil
}

func (r *root) SyncDir(name string) error {
	if r.state.failSync() {
		return &fs.PathError{Op: "sync", Path: name, Err: syscall.EIO}
	}
	return r.Root.SyncDir(name)
}

type file struct {
	disk.File
	state *simState
	name  string
}

func (f *file) Write(p []byte) (int, error) {
	if f.state.full {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, &fs.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
	}
	return f.File.Write(p)
}

func (f *file) Sync() error {
	if f.state.failSync() {
		return &fs.PathError{Op: "sync", Path: f.name, Err: syscall.EIO}
	}
	return f.File.Sync()
}

// watched is the simulated journal of one process. It parks between the write
// and the sync, fails, and records the accepted batches.
type watched struct {
	journal.Journal
	proc *process
}

func (j *watched) Append(ctx context.Context, b journal.Batch) error {
	w, p := j.proc.state, j.proc
	switch {
	case p.poisoned:
		return journal.ErrPoisoned
	case w.full && len(b.Entries) > 0:
		return syscall.ENOSPC
	}
	if err := j.write(ctx, b); err != nil {
		if errors.Is(err, journal.ErrClaimed) || errors.Is(err, journal.ErrNotOwner) {
			w.conflict()
		}
		return err
	}
	if !b.Durable {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	w.sched.park(ctx, p, "journal.barrier")
	if w.failSync() {
		p.poisoned = true
		return journal.ErrPoisoned
	}
	w.ledger.Lock()
	defer w.ledger.Unlock()
	if err := j.Journal.Append(ctx, journal.Batch{Durable: true}); err != nil {
		return err
	}
	w.batches = append(w.batches, journal.Batch{Durable: true})
	w.durable()
	return nil
}

// write appends without a barrier, and records the accepted batch.
func (j *watched) write(ctx context.Context, b journal.Batch) error {
	w, written := j.proc.state, b
	written.Durable = false
	w.ledger.Lock()
	defer w.ledger.Unlock()
	err := j.Journal.Append(ctx, written)
	if err == nil {
		w.accepted(b, j.proc.inner.Owner())
	}
	return err
}

// accepted records the events in a batch.
func (w *simState) accepted(b journal.Batch, owner string) {
	w.batches = append(w.batches, b)
	if b.Take.To.Txn != "" {
		w.say(opcheck.Event{Kind: opcheck.Took, Txn: b.Take.To.Txn, Owner: b.Take.To.Owner})
	}
	if b.Fence.Txn != "" {
		w.say(opcheck.Event{Kind: opcheck.Wrote, Txn: b.Fence.Txn, Owner: owner})
	}
	for _, blob := range b.Blobs {
		if data, inline := blob.Inline().Get(); inline {
			w.kept[string(data)] = true
		}
	}
	for _, e := range b.Entries {
		switch e.Header.Kind {
		case record.KindStarted:
			w.pendingEvents = append(w.pendingEvents, opcheck.Event{Kind: opcheck.Announced, Txn: e.Header.Txn, Call: e.Header.Call, Key: e.Header.Call})
		case record.KindChanged:
			w.say(opcheck.Event{Kind: opcheck.Touched, Txn: e.Header.Txn, Resource: resourceIn(e.Body)})
		case record.KindReverting:
			for _, resource := range b.Claims {
				w.say(opcheck.Event{Kind: opcheck.Touched, Txn: e.Header.Txn, Resource: resource})
			}
		case record.KindUnknown:
			w.say(opcheck.Event{Kind: opcheck.EffectUnknown, Txn: e.Header.Txn})
		case record.KindBegun:
			w.began(e.Header.Txn, e.Body)
		default:
		}
	}
}

// durable records the announcements that cannot be lost any more.
func (w *simState) durable() {
	for _, e := range w.pendingEvents {
		w.say(e)
	}
	w.pendingEvents = nil
}

// resourceIn returns the resource of a record.
func resourceIn(body []byte) string {
	_, rest, _ := strings.Cut(string(body), `"resource":"`)
	resource, _, _ := strings.Cut(rest, `"`)
	return resource
}

// end ends a process. Its goroutines stay blocked.
func (p *process) end() {
	p.state.sched.mu.Lock()
	p.ended, p.stopped = true, false
	p.state.sched.mu.Unlock()
	p.state.sched.removeProcess(p)
	_ = p.inner.Close()
}

// stop stops a process for some steps, and others consider it dead. When it
// continues, it has no files any more.
func (p *process) stop(steps int) {
	p.state.journal.Lose(p.inner.Owner())
	for _, r := range p.roots {
		_ = r.Close()
	}
	p.state.sched.mu.Lock()
	defer p.state.sched.mu.Unlock()
	p.stopped, p.until = true, p.state.sched.steps+steps
}

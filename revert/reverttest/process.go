package reverttest

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/simjournal"
	"github.com/remit-dev/remit/revert/journal"
)

// process is one run of a program in an environment: the tool, the runtime and
// the journal, until it ends by itself or by a fault.
type process struct {
	run   *run
	first bool
	fault *fault // nil: no fault
	real  bool   // part of the environment is not simulated: the runtime's actions there are fault points too
	store *simjournal.Store

	cancel context.CancelFunc // of the caller's context

	mu       sync.Mutex // never held across a wait
	stage    stage
	moments  []reachedPoint
	hasEnded bool
	left     crashState    // set when it is dead
	parked   chan struct{} // closed when code of it is blocked
	halted   bool
}

// crashState is what a dead process leaves.
type crashState struct {
	store *simjournal.Store
	disk  *workspace
}

type processKey struct{}

var errProcessEnded = errors.New("reverttest: the process is dead")

// at is called at a fault point. It returns the action for the caller. If the
// process ends there, ended returns true from then on.
func (p *process) at(m faultPoint, what string) faultAction {
	p.mu.Lock()
	if p.hasEnded || p.stage == over {
		p.mu.Unlock()
		return ""
	}
	n := len(p.moments)
	p.moments = append(p.moments, reachedPoint{m, what, p.stage, p.store.Pending() > 0 || p.run.weak()})
	hit := p.fault != nil && p.fault.at == n
	p.mu.Unlock()
	if !hit {
		return ""
	}
	h := p.fault.how
	p.run.tracef("%s: %s", describe(h), what)
	switch {
	case h.crash():
		p.end(h)
	case h == cancel:
		p.cancel()
	case h.kind() == foreign:
		p.run.intrude(h.otherActor(), true)
	}
	return h
}

// end ends the process: its state is kept as it is now, although its code may
// continue.
func (p *process) end(h faultAction) {
	left := crashState{store: p.store.Clone(), disk: p.run.disk.clone()}
	if h.kind() == power {
		p.run.cut(left, h.variant())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hasEnded, p.left = true, left
}

func (p *process) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hasEnded
}

// stopped records that code of the process is blocked forever.
func (p *process) stopped() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.halted {
		p.halted = true
		close(p.parked)
	}
}

func (p *process) enter(s stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage = s
}

// host returns the host of the process: its time and randomness follow from the
// seed and the number of earlier processes.
func (p *process) host(life int) *hosttest.Host {
	h := hosttest.New(p.run.c.seed<<8 + uint64(life))
	h.Advance(p.run.clock)
	h.Disk = p.run.disk.open
	h.OnPoint = func(id string) error {
		if looksOnly(id) {
			return nil // also for a dead process, so that it releases its resources
		}
		if p.ended() {
			return errProcessEnded
		}
		if p.real || id == "tool.execute" || id == "revert.tool" {
			p.at(point, "before "+id)
		}
		if p.ended() {
			return errProcessEnded
		}
		return nil
	}
	return h
}

// looks are points after which nothing changes, or only memory.
var looks = []string{
	"txn.", "line.", "session.", "database.operation", "tool.decide", "tool.approve", "files.lstat", "files.look", "files.open", "files.readdir", "files.quiet", "web.read",
}

func looksOnly(id string) bool {
	return slices.ContainsFunc(looks, func(prefix string) bool { return strings.HasPrefix(id, prefix) })
}

// processJournal is the journal of a process: a dead process cannot use it.
type processJournal struct {
	journal.Journal
	p *process
}

func (g processJournal) Append(ctx context.Context, b journal.Batch) error {
	if g.p.ended() {
		return errProcessEnded
	}
	if err := g.Journal.Append(ctx, b); err != nil {
		return err
	}
	if g.p.ended() {
		return errProcessEnded
	}
	return nil
}

func (g processJournal) StoreContent(ctx context.Context, r io.Reader) (journal.Blob, error) {
	if g.p.ended() {
		return journal.Blob{}, errProcessEnded
	}
	b, err := g.Journal.StoreContent(ctx, r)
	if err == nil && g.p.ended() {
		err = errProcessEnded
	}
	return b, err
}

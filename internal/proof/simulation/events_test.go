package simulation_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/proof/opcheck"
)

// randomEvent is an event of the world between two steps, with its frequency in a
// thousand.
type randomEvent struct {
	name string
	of   int
	do   func(*simState)
}

var randomEvents = []randomEvent{
	{"edit from outside", 30, (*simState).edit},
	{"late arrival", 20, func(w *simState) { w.arrive(w.sched.random.IntN(8)) }},
	{"client gives up", 8, func(w *simState) { w.sched.endTimer(&w.sched.calls, false) }},
	{"timeout", 8, func(w *simState) { w.sched.endTimer(&w.sched.timers, false) }},
	{"clock jump", 8, (*simState).jump},
	{"death", 6, (*simState).kill},
	{"takeover", 5, (*simState).takeover},
	{"full disk", 4, (*simState).fill},
	{"failed sync", 4, func(w *simState) { w.syncs = 1 + w.sched.random.IntN(4); w.note("failed sync", "") }},
	{"power cut", 2, (*simState).cut},
}

// chosen returns the mishaps of one world: each seed has some of them, so that
// none hides another.
func (w *simState) chosen() []randomEvent {
	return slices.DeleteFunc(slices.Clone(randomEvents), func(m randomEvent) bool { return m.of <= 8 && w.sched.random.IntN(2) == 0 })
}

// causeEvent sometimes causes a mishap. The goroutines that it wakes run until they
// wait: otherwise Go would decide which of them runs first.
func (w *simState) causeEvent(among []randomEvent) {
	some := false
	for _, m := range among {
		if w.sched.random.IntN(1000) < m.of {
			m.do(w)
			some = true
		}
	}
	if some {
		synctest.Wait()
	}
	if w.full && w.sched.steps >= w.until {
		w.full = false
	}
	for _, p := range w.procs {
		if p.poisoned && !p.ended {
			p.end() // it can do nothing more: its operator restarts it
			w.forget(p)
			w.spawn(w.process(), keeperOf)
		}
	}
}

// running returns a process that lives and is not stopped, or nil.
func (w *simState) running() *process {
	live := slices.DeleteFunc(slices.Clone(w.procs), func(p *process) bool { return p.ended || p.stopped })
	if len(live) == 0 {
		return nil
	}
	return live[w.sched.random.IntN(len(live))]
}

func (w *simState) jump() {
	if p := w.running(); p != nil {
		w.note("clock jump", "")
		p.mu.Lock()
		defer p.mu.Unlock()
		p.jump += time.Duration(w.sched.random.IntN(96)-48) * time.Hour
	}
}

// most is the maximum number of processes of a world.
const most = 6

func (w *simState) kill() {
	if p := w.running(); p != nil && len(w.procs) < most {
		w.note("death", fmt.Sprint(p.id))
		p.end()
		w.forget(p)
		w.spawn(w.process(), keeperOf)
	}
}

func (w *simState) forget(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = slices.DeleteFunc(w.open, func(o *shared) bool { return o.proc == p })
}

func (w *simState) takeover() {
	if p := w.running(); p != nil && len(w.procs) < most {
		w.note("takeover", fmt.Sprint(p.id))
		p.stop(10 + w.sched.random.IntN(40))
		w.spawn(w.process(), keeperOf)
	}
}

func (w *simState) fill() {
	w.note("full disk", "")
	w.full, w.until = true, w.sched.steps+5+w.sched.random.IntN(20)
}

// cut ends all processes, and loses any part of the unsynced data.
func (w *simState) cut() {
	w.note("power cut", "")
	for _, p := range w.procs {
		if !p.ended {
			p.end()
			w.forget(p)
		}
	}
	w.power()
	p := w.process()
	w.spawn(p, keeperOf)
	w.spawn(p, agentOf)
}

func (w *simState) power() {
	r := w.sched.random
	pending := w.disk.Pending()
	keep, last := make([]bool, len(pending)), -1
	for i, o := range pending {
		keep[i] = r.IntN(2) == 0 && !slices.ContainsFunc(o.Needs, func(n int) bool { return !keep[n] })
		if keep[i] {
			last = i
		}
	}
	if last >= 0 && (!pending[last].Content || r.IntN(2) == 0) {
		last = -1
	}
	w.disk.Cut(keep, last)
	lost := r.IntN(w.journal.Pending() + 1)
	w.journal.Cut(lost)
	w.batches = w.batches[:len(w.batches)-lost]
	w.pendingEvents = nil
	w.keep()
	if lost == 0 {
		return
	}
	// A lost batch never happened.
	for i, id := range w.txns {
		if !slices.ContainsFunc(w.batches, func(b revertBatch) bool { return b.Take.To.Txn == id }) {
			w.txns[i] = ""
		}
	}
	w.txns = slices.DeleteFunc(w.txns, func(id string) bool { return id == "" })
}

// edit changes a file from outside.
func (w *simState) edit() {
	if w.full {
		return
	}
	r, path := w.disk.Root(), paths[w.sched.random.IntN(len(paths))]
	_, err := r.Lstat(path)
	switch there := err == nil; {
	case there && w.sched.random.IntN(4) == 0:
		w.drop(r, path)
		w.say(opcheck.Event{Kind: opcheck.Theirs, Resource: resourceOf(path)})
	case there:
		content := w.content("theirs")
		must(put(r, "theirs.tmp", content))
		must(r.Exchange("theirs.tmp", path))
		w.drop(r, "theirs.tmp")
		w.say(opcheck.Event{Kind: opcheck.Theirs, Resource: resourceOf(path), Content: content})
	default:
		content := w.content("theirs")
		must(put(r, path, content))
		w.say(opcheck.Event{Kind: opcheck.Theirs, Resource: resourceOf(path), Content: content})
	}
	must(r.SyncDir("."))
	w.note("edit", path)
}

// drop removes a file from outside: the outside actor drops its content.
func (w *simState) drop(r disk.Root, path string) {
	f, err := r.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	must(err)
	var content strings.Builder
	_, err = io.Copy(&content, f)
	must(errors.Join(err, f.Close(), r.Remove(path)))
	w.say(opcheck.Event{Kind: opcheck.Dropped, Content: content.String()})
}

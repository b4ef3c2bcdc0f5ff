package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/opcheck"
	"github.com/remit-dev/remit/internal/proof/simjournal"
	"github.com/remit-dev/remit/internal/toolstate"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

type revertBatch = journal.Batch

// endless is the number of steps after which a world counts as endless.
const endless = 20_000

// result is the result of a seed.
type result struct {
	steps, conflicts int
	counts           map[string]int
	prefixes         int
	digest           uint64
	problems         []string
}

// options say how thoroughly one seed is checked.
type options struct {
	log      func(string)
	digest   bool
	prefixes bool
}

// simulate runs one seed, from the beginning to the end.
func simulate(t *testing.T, seed uint64, o options) (res result) {
	synctest.Test(t, func(*testing.T) {
		growStack(1)
		w := newSimState(seed, o.log)
		if o.log != nil {
			w.sched.trace = o.log
		}
		defer func() {
			if r := recover(); r != nil {
				res.problems = append(res.problems, fmt.Sprint("panic: ", r))
			}
			w.sched.release()
			w.all.Wait()
		}()
		w.live()
		w.end()
		res.prefixes = w.prefixes(o.prefixes)
		res.steps, res.conflicts, res.counts = w.sched.steps, w.conflicts, w.counts
		res.problems = w.problems
		for _, v := range opcheck.Check(w.events) {
			res.problems = append(res.problems, v.Promise+": "+v.Text)
		}
		if o.digest {
			res.digest = w.digest()
		}
	})
	return res
}

// populations are the numbers of agents of each process.
var populations = [][]int{{1, 1}, {2}, {2, 1}, {1, 1, 1}, {3}}

// live runs all actors until none has work.
func (w *simState) live() {
	for _, agents := range populations[w.sched.random.IntN(len(populations))] {
		p := w.process()
		for range agents {
			w.spawn(p, agentOf)
		}
	}
	among := w.chosen()
	for {
		w.sched.settle()
		w.thaw(false)
		w.causeEvent(among)
		if w.sched.step() {
			if w.sched.steps > endless {
				w.wrong("it does not end")
				return
			}
			continue
		}
		if w.sched.endTimer(&w.sched.timers, true) || w.thaw(true) || w.waking() {
			continue
		}
		if w.sched.steps >= budget {
			return
		}
		w.spawn(w.process(), keeperOf) // all are dead, or could not begin
	}
}

// waking reports whether the last event let a goroutine continue.
func (w *simState) waking() bool {
	synctest.Wait()
	w.sched.mu.Lock()
	defer w.sched.mu.Unlock()
	return len(w.sched.fresh) > 0
}

// thaw resumes stopped processes whose time has come, or the first of all.
func (w *simState) thaw(first bool) (some bool) {
	w.sched.mu.Lock()
	defer w.sched.mu.Unlock()
	for _, p := range w.procs {
		if p.stopped && (first || w.sched.steps >= p.until) {
			p.stopped, some = false, true
			if first {
				return true
			}
		}
	}
	return some
}

// end ends all processes. The next one recovers, and reverts some or all of the
// work. Requests on the wire arrive at any time.
func (w *simState) end() {
	r := w.sched.random
	for _, p := range w.procs {
		if !p.ended {
			p.end()
		}
	}
	w.full, w.syncs = false, 0
	if r.IntN(4) == 0 {
		w.power()
	}
	w.sched.mu.Lock()
	w.sched.free = true
	w.sched.mu.Unlock()
	p := w.process()
	a := &actor{id: len(w.actors), proc: p, random: r}
	ctx := w.context(a)
	late := r.IntN(2) == 0
	for !late && w.arrive(0) {
	}
	w.recover(ctx, p)
	w.look()
	w.revertRemaining(ctx, p, r.IntN(4) == 0)
	for w.arrive(0) {
	}
	w.held(ctx, p)
	found := w.look()
	w.mu.Lock()
	for _, is := range found {
		w.kept[is.Content] = true
	}
	w.mu.Unlock()
	for content := range w.kept {
		w.events = append(w.events, opcheck.Event{Kind: opcheck.Kept, Content: content})
	}
	slices.SortStableFunc(w.events[len(w.events)-len(w.kept):], func(a, b opcheck.Event) int { return strings.Compare(a.Content, b.Content) })
	must(p.rt.Close())
}

// recover recovers twice, which must equal once.
func (w *simState) recover(ctx context.Context, p *process) {
	if _, err := p.rt.Recover(ctx); err != nil {
		w.wrong("recover: %v", err)
		return
	}
	if w.sched.random.IntN(4) > 0 {
		return
	}
	again, err := p.rt.Recover(ctx)
	if err != nil || len(again.Settled)+len(again.Failed) > 0 {
		w.wrong("recovered once more: %+v, %v", again, err)
	}
}

// revertRemaining reverts open transactions, or everything.
func (w *simState) revertRemaining(ctx context.Context, p *process, all bool) {
	open, err := p.inner.Unfinished(ctx)
	must(err)
	ids := w.txns
	if !all {
		ids = nil
		for _, o := range open {
			ids = append(ids, o.Txn)
		}
	}
	for _, id := range slices.Backward(ids) {
		before := w.redos(id)
		rep, err := p.rt.Revert(ctx, id, revert.Options{})
		if err != nil && !errors.Is(err, agent.ErrPartialRevert) && !errors.Is(err, revert.ErrIsRevertTxn) {
			w.wrong("in the end, revert %s: %v", id, err)
		}
		if slices.Contains(w.txns, id) {
			w.reported(id, before, rep, err)
		}
	}
	if open, err = p.inner.Unfinished(ctx); err != nil || all && len(open) > 0 {
		w.wrong("in the end, unfinished are %v: %v", open, err)
	}
}

// held requires that the state of each session's tool contains the tags of its
// calls that are done and not reverted: none is lost to a concurrent call, and
// none of a failed call is left.
func (w *simState) held(ctx context.Context, p *process) {
	want, sessions := map[string][]string{}, map[string]bool{}
	for _, id := range w.txns {
		t, err := revert.Load(ctx, p.inner, id)
		must(err)
		sessions[t.Session] = true
		for _, c := range t.Calls {
			if c.Tool.Name != counted || c.Phase != revert.PhaseDone || c.IsReverted() {
				continue
			}
			var tag string
			must(json.Unmarshal(c.Started.Input, &tag))
			want[t.Session] = append(want[t.Session], tag)
			w.note("counted", "")
		}
	}
	for session := range sessions {
		var got []string
		_, content, err := toolstate.Read(ctx, p.inner, session, counted)
		if err == nil && content != nil {
			err = json.Unmarshal(content, &got)
		}
		slices.Sort(got) // its begun record does not tell which transaction came first
		slices.Sort(want[session])
		if err != nil || !slices.Equal(want[session], got) {
			w.wrong("session %s holds %v, and its calls left %v: %v", session, got, want[session], err)
		}
	}
}

// prefixes recovers from each prefix of the journal, or from one, with the
// current files. The files may not fit the prefix: recovery and the revert of
// open transactions must still work.
func (w *simState) prefixes(each bool) (tried int) {
	from, to := 0, len(w.batches)
	if !each {
		if w.sched.random.IntN(64) > 0 {
			return 0
		}
		from = w.sched.random.IntN(len(w.batches) + 1)
		to = from
	}
	w.pendingEvents, w.batches = nil, slices.Clip(w.batches)
	for n := from; n <= to; n++ {
		text := ""
		if err := w.prefix(w.batches[:n]); err != nil {
			text = err.Error()
		}
		w.events = append(w.events, opcheck.Event{Kind: opcheck.Recovered, N: n, Text: text})
		tried++
	}
	return tried
}

func (w *simState) prefix(batches []journal.Batch) error {
	side := &simState{
		seed: w.seed, disk: w.disk.Clone(), journal: simjournal.NewStore(), service: newService(), sched: &scheduler{free: true},
		kept: map[string]bool{}, redoCounts: map[string]int{}, counts: map[string]int{},
	}
	ctx := context.Background()
	for range w.procs { // so that no owner in the records is alive
		must(side.journal.Open().Close())
	}
	j := side.journal.Open()
	for _, b := range batches {
		if err := j.Append(ctx, b); err != nil {
			return fmt.Errorf("it cannot be written: %w", err)
		}
	}
	must(j.Close())
	p := side.process()
	ctx = side.context(&actor{proc: p, random: w.sched.random})
	if _, err := p.rt.Recover(ctx); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	open, err := p.inner.Unfinished(ctx)
	if err != nil {
		return err
	}
	for _, o := range open {
		if _, err := p.rt.Revert(ctx, o.Txn, revert.Options{}); err != nil && !errors.Is(err, agent.ErrPartialRevert) && !errors.Is(err, revert.ErrIsRevertTxn) {
			return fmt.Errorf("revert %s: %w", o.Txn, err)
		}
	}
	if len(side.problems) > 0 {
		return errors.New(side.problems[0])
	}
	return p.rt.Close()
}

package crash_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
)

// explorer runs plans and goes on from every state that a crash can leave. It is safe
// for concurrent use.
type explorer struct {
	depth int                              // crashes, one after the other
	log   func(format string, args ...any) // unless nil, is told the way

	mu       sync.Mutex // never held across a wait
	states   map[digest]bool
	judged   map[judgement]bool
	kinds    map[string]int // states by the kind of the last crash
	runs     int
	problems []string
}

// judgement is a state, and what its client knew.
type judgement struct {
	state digest
	told  string
}

func newExplorer(depth int) *explorer {
	return &explorer{depth: depth, states: map[digest]bool{}, judged: map[judgement]bool{}, kinds: map[string]int{}}
}

// moment is a state of the world in a running process.
type moment struct {
	w    *world
	what string
	told told
}

// trail is how a state was reached: of each process the moment, and how it went down.
type trail []string

func (x *explorer) problem(p plan, by trail, f findings) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.problems = append(x.problems, fmt.Sprintf("go test ./internal/crash -run TestCrashMatrix -matrix '%s/%s'\n\t%s", p, strings.Join(by, "/"), strings.Join(f, "\n\t")))
}

// fresh counts a state, and reports whether nothing was known of it yet.
func (x *explorer) fresh(w *world, t told, c cut) bool {
	d := w.digest()
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.states[d] {
		x.states[d] = true
		x.kinds[c.kind()]++
	}
	j := judgement{d, t.key()}
	if x.judged[j] {
		return false
	}
	x.judged[j] = true
	x.runs++
	return true
}

// run explores a plan; steps, unless nil, are the only way that is followed.
func (x *explorer) run(p plan, steps []string) {
	w := newWorld()
	var moments []moment
	err := p.live(w, func(what string, t told) { moments = append(moments, moment{w.clone(), what, t}) })
	if err != nil {
		x.problem(p, nil, findings{err.Error()})
		return
	}
	x.crash(p, moments, nil, steps)
}

// crash goes on from each moment, in each way of going down.
func (x *explorer) crash(p plan, moments []moment, by trail, steps []string) {
	for n, m := range moments {
		if len(steps) > 0 && !strings.HasPrefix(steps[0], fmt.Sprint(n, "-")) {
			continue
		}
		for _, c := range cutsOf(m.w) {
			step := fmt.Sprint(n, "-", c)
			if len(steps) > 0 && steps[0] != step {
				continue
			}
			if len(steps) > 0 && x.log != nil {
				x.show(moments[:n+1], step)
			}
			w := m.w.clone()
			c.happen(w)
			if !x.fresh(w, m.told, c) && len(steps) == 0 {
				continue
			}
			x.recover(p, w, m.told, append(by[:len(by):len(by)], step), steps[min(1, len(steps)):])
		}
	}
}

// recover starts a process in what a crash left, which puts it in order, and then takes
// everything back; it may go down itself.
func (x *explorer) recover(p plan, w *world, t told, by trail, steps []string) {
	var moments []moment
	note := func(what string, t told) {
		if len(by) < x.depth {
			moments = append(moments, moment{w.clone(), what, t.clone()})
		}
	}
	rt, ctx, err := w.process()
	if err != nil {
		x.problem(p, by, findings{"process: " + err.Error()})
		return
	}
	w.watch(func(what string) { note(what, t) })
	f := p.restore(ctx, w, rt, &t, note)
	w.watch(nil)
	if err := rt.Close(); err != nil {
		f.add("close: %v", err)
	}
	if len(f) > 0 {
		x.problem(p, by, f)
	}
	if len(by) > 0 && len(steps) == 0 && x.log != nil {
		x.show(moments, "the end")
	}
	if steps == nil || len(steps) > 0 || x.log == nil {
		x.crash(p, moments, by, steps)
	}
}

// show tells what a process did up to some moment.
func (x *explorer) show(moments []moment, then string) {
	var did strings.Builder
	for n, m := range moments {
		_, _ = fmt.Fprintf(&did, "\n%4d %s", n, m.what)
	}
	if len(moments) > 0 {
		did.WriteString("\n")
		moments[len(moments)-1].w.journal.Describe(&did)
		moments[len(moments)-1].w.disk.Describe(&did)
	}
	x.log("%s\n%s", did.String(), then)
}

// restore is what a process does that comes after a crash, and what is looked at.
func (p plan) restore(ctx context.Context, w *world, rt *agent.Runtime, t *told, note func(string, told)) (f findings) {
	f = p.announced(ctx, w, rt, *t)
	if _, err := rt.Recover(ctx); err != nil {
		f.add("recover: %v", err)
		return f
	}
	note("recovered", *t)
	f = append(f, p.judge(ctx, w, rt, *t)...)
	if again, err := rt.Recover(ctx); err != nil || len(again.Settled) > 0 {
		f.add("recovering again settles %v: %v", again.Settled, err)
	}
	if len(f) > 0 || t.txn == "" {
		return f
	}
	last := t.stage
	t.stage = undoing
	rep, err := rt.Revert(ctx, t.txn)
	switch {
	case errors.Is(err, revert.ErrNotFound):
		return nil
	case err != nil && !errors.Is(err, agent.ErrPartial):
		f.add("revert: %v", err)
		return f
	}
	t.reported(rep, last, undone)
	note("told", *t)
	f = append(f, p.judge(ctx, w, rt, *t)...)
	s := p.look(ctx, w, rt, *t)
	s.left(rep)
	return append(f, s.findings...)
}

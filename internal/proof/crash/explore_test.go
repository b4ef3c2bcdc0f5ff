package crash_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
)

// explorer runs plans and continues from states that a crash can leave. It is
// safe for concurrent use.
type explorer struct {
	depth int                              // maximum number of crashes in sequence
	share func(crashes int) uint64         // after so many crashes, continue from one state of so many; nil: from every one
	log   func(format string, args ...any) // unless nil, called with the path
	wrong func(format string, args ...any) // called with the first wrong states
	hops  []crashPoint                     // unless empty, the only path that is followed

	mu       sync.Mutex // never held across a wait
	states   map[digest]bool
	judged   map[digest]bool
	kinds    map[string]int // states by the kind of the last crash
	crashes  map[int]int    // states by the number of crashes before them
	runs     int
	problems int
}

// shown is the maximum number of wrong states to report.
const shown = 8

func newExplorer(wrong func(string, ...any)) *explorer {
	return &explorer{wrong: wrong, states: map[digest]bool{}, judged: map[digest]bool{}, kinds: map[string]int{}, crashes: map[int]int{}}
}

// faultPoint is a state of the world in a running process.
type faultPoint struct {
	w    *simState // nil: not continued from
	what string
	view clientView
}

// crashPath is the path to a state: for each process its moment, and how it ended.
type crashPath []string

func (x *explorer) problem(p plan, by crashPath, f findings) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.problems++; x.problems <= shown {
		x.wrong("go test ./internal/proof/crash -run TestCrashMatrix -matrix '%s/%s'\n\t%s", p, strings.Join(by, "/"), strings.Join(f, "\n\t"))
	}
}

// fresh counts a state, and reports whether the state is new, together with the
// knowledge of its client.
func (x *explorer) fresh(w *simState, t clientView, c cut, crashes int) (digest, bool) {
	d := w.digest()
	sum := sha256.New()
	_, _ = sum.Write(d[:])
	_, _ = fmt.Fprint(sum, t.key(), w.cut)
	var j digest
	copy(j[:], sum.Sum(nil))
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.judged[j] {
		return j, false
	}
	x.judged[j] = true
	if !x.states[d] {
		x.states[d] = true
		x.kinds[c.kind()]++
		x.crashes[crashes]++
	}
	x.runs++
	return j, true
}

// chosen reports whether the sample continues from this state. It depends on
// the path alone.
func chosen(of uint64, p string, by crashPath, at string) bool {
	if of <= 1 {
		return true
	}
	text := fnv.New64a()
	_, _ = fmt.Fprint(text, seed, p, by, at)
	// The low bits of the sum follow from the low bits of each byte. Without
	// this, the cuts of the chosen moments would be similar.
	h := text.Sum64()
	for range 2 {
		h = (h ^ h>>33) * 0xff51afd7ed558ccd
	}
	return (h^h>>33)%of == 0
}

// shares returns one of how many moments is chosen, and one of how many cuts at
// each of those. If the sample is small, other moments need not be stored.
func (x *explorer) shares(crashes int) (moments, cuts uint64) {
	if x.share == nil {
		return 1, 1
	}
	moments, cuts = 1, x.share(crashes)
	for n := uint64(2); cuts >= 24 && n*n <= x.share(crashes); n++ {
		if x.share(crashes)%n == 0 {
			moments = n
		}
	}
	return moments, cuts / moments
}

// moment returns the n-th moment of a running process.
func (x *explorer) moment(p plan, by crashPath, n int, steps []string, m faultPoint) faultPoint {
	of, _ := x.shares(len(by) + 1)
	if len(steps) == 0 && x.log == nil && !chosen(of, p.String(), by, fmt.Sprint(n)) {
		return faultPoint{what: m.what}
	}
	m.w, m.view = m.w.clone(), m.view.clone()
	return m
}

// run explores a plan; steps, unless nil, are the only path to follow.
func (x *explorer) run(p plan, steps []string) {
	w := newSimState()
	var moments []faultPoint
	err := p.live(w, func(what string, t clientView) {
		moments = append(moments, x.moment(p, nil, len(moments), steps, faultPoint{w, what, t}))
	})
	if err != nil {
		x.problem(p, nil, findings{err.Error()})
		return
	}
	x.crash(p, moments, nil, steps)
}

// crash continues from each moment, with each cut.
func (x *explorer) crash(p plan, moments []faultPoint, by crashPath, steps []string) {
	if len(moments) == 0 {
		return
	}
	name := p.String()
	_, of := x.shares(len(by) + 1)
	for n, m := range moments {
		if m.w == nil || len(steps) > 0 && !strings.HasPrefix(steps[0], fmt.Sprint(n, "-")) {
			continue
		}
		for _, c := range cutsOf(m.w) {
			if len(by) < len(x.hops) && !x.hops[len(by)].is(m, c) {
				continue
			}
			step := fmt.Sprint(n, "-", c)
			if len(steps) > 0 && steps[0] != step || len(steps) == 0 && !chosen(of, name, by, step) {
				continue
			}
			way := append(by[:len(by):len(by)], step)
			if len(steps) > 0 && x.log != nil {
				x.show(moments[:n+1], step)
			}
			w := m.w.clone()
			c.happen(w)
			j, fresh := x.fresh(w, m.view, c, len(way))
			if !fresh && len(steps) == 0 {
				continue
			}
			if of := j[0] % 8; of < 2 {
				x.intrude(p, w.clone(), m.view, way, of == 0)
			}
			x.recover(p, w, m.view, way, steps[min(1, len(steps)):], j[1]%8 == 0)
		}
	}
}

// recover starts a process in the state after a crash, which recovers and then
// reverts everything. That process may be cut too.
func (x *explorer) recover(p plan, w *simState, t clientView, by crashPath, steps []string, thorough bool) {
	var moments []faultPoint
	note := func(what string, t clientView) {
		if len(by) < x.depth {
			moments = append(moments, x.moment(p, by, len(moments), steps, faultPoint{w, what, t}))
		}
	}
	rt, ctx, err := w.process()
	if err != nil {
		x.problem(p, by, findings{"process: " + err.Error()})
		return
	}
	w.watch(func(what string) { note(what, t) })
	f := p.restore(ctx, w, rt, &t, note, thorough)
	w.watch(nil)
	if err := rt.Close(); err != nil {
		f.add("close: %v", err)
	}
	if len(f) > 0 {
		x.problem(p, by, f)
	}
	if x.log != nil && len(steps) == 0 {
		x.show(moments, "the end")
		return
	}
	x.crash(p, moments, by, steps)
}

// show logs the steps of a process up to a moment.
func (x *explorer) show(moments []faultPoint, then string) {
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

// restore is the work of a process after a crash, with its checks.
func (p plan) restore(ctx context.Context, w *simState, rt *agent.Runtime, t *clientView, note func(string, clientView), thorough bool) (f findings) {
	f = append(p.announced(ctx, w, rt), p.remembered(ctx, rt, *t)...)
	found, err := rt.Recover(ctx)
	if err != nil {
		f.add("recover: %v", err)
		return f
	}
	t.settled = append(t.settled, found.Settled...)
	note("recovered", *t)
	s := p.judge(ctx, w, rt, *t)
	f = append(f, s.findings...)
	if thorough {
		again, err := rt.Recover(ctx)
		if err != nil || len(again.Settled) > 0 {
			f.add("recovering again settles %v: %v", again.Settled, err)
		}
	}
	if s.txn == nil || len(f) > 0 {
		return f
	}
	head, err := rt.Journal().Head(ctx)
	if err != nil {
		f.add("head: %v", err)
	}
	if p.holds() && s.txn.End == "" && s.txn.Committing && !s.txn.Aborting {
		f = append(f, p.continueCommit(ctx, w, rt, t)...)
		note("went on", *t)
	}
	f = append(f, p.revertAll(ctx, w, rt, t, note)...)
	if thorough {
		_, err := revert.Fsck(ctx, rt.Journal(), revert.FsckOptions{Kept: head, Found: func(p revert.Problem) { f.add("fsck: %+v", p) }})
		if err != nil {
			f.add("fsck: %v", err)
		}
	}
	return f
}

// revertAll reverts everything, and checks the result.
func (p plan) revertAll(ctx context.Context, w *simState, rt *agent.Runtime, t *clientView, note func(string, clientView)) (f findings) {
	last := t.stage
	t.stage = reverting
	rep, err := rt.Revert(ctx, t.txn, revert.Options{})
	if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
		f.add("revert: %v", err)
		return f
	}
	t.reported(rep, last, revertEnded)
	note("told", *t)
	s := p.judge(ctx, w, rt, *t)
	s.left(rep)
	return s.findings
}

// continueCommit continues a begun commit, repeatedly if a call prevents it.
func (p plan) continueCommit(ctx context.Context, w *simState, rt *agent.Runtime, t *clientView) (f findings) {
	t.stage = committing
	tx, err := rt.ResumeTxn(ctx, t.txn)
	if err != nil {
		f.add("open: %v", err)
		return f
	}
	for range len(p.calls) + 1 {
		if err = tx.Commit(ctx); err == nil {
			t.stage = committed
			break
		}
	}
	if err != nil {
		f.add("commit: %v", err)
	}
	return append(f, p.judge(ctx, w, rt, *t).findings...)
}

func (p plan) holds() bool {
	return slices.ContainsFunc(p.calls, func(k callKind) bool { return k.waits })
}

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// scenario is one side effect, with other events and the requested revert.
type scenario struct {
	name, about string

	small   bool                                  // the workspace is a file system of 8 MiB
	prepare func(w *testEnv) error                // runs before the first snapshot
	steps   []step                                // of the agent
	foreign map[int]func(w *testEnv) error        // another actor's change after a step
	peer    map[int]step                          // a step of a second agent of the same kind after a step
	lose    bool                                  // the response to the last step is lost, and a failed step is repeated
	kill    int                                   // the step, from 1, in which the process is killed
	when    func(w *testEnv, began chan struct{}) // it is killed when this returns
	between bool                                  // the process is killed after the last step
	undoCut func(w *testEnv) func()               // the process is killed during undo when this returns, and undo is repeated
	ask     string                                // undo (default), first, twice, redo
	times   bool                                  // the scenario is about file times
}

// result is the result of a scenario with one method.
type result struct {
	scenario, method, claim string

	messages   []string // of each step
	exact      bool     // the world is as expected
	inTime     bool     // and so are the times of files
	foreign    int      // another actor's items that changed
	lost       int      // effects that should be present and are not
	left       int      // effects that should be absent, or other items, that differ from before
	doubled    int      // objects of the service beyond one for each step
	falsely    bool     // it reported that all was undone
	stored     int64    // bytes of its stored data
	worked     time.Duration
	revertTime time.Duration
	wrong      []string
	noEffect   bool // the steps had no effect
}

// try runs a scenario in a new world.
func try(s scenario, c methodFactory, dir string) (r result, err error) {
	r = result{scenario: s.name, method: c.name}
	w, err := newTestEnv(dir, s.small)
	if err != nil {
		return r, err
	}
	defer func() {
		if e := w.close(); err == nil {
			err = e
		}
	}()
	if s.prepare != nil {
		if err := s.prepare(w); err != nil {
			return r, err
		}
	}
	t := &trial{scenario: s, env: w, factory: c, result: &r, others: snapshot{}, names: map[string]bool{}}
	if err := t.work(); err != nil {
		return r, err
	}
	defer t.method.close()
	r.stored = size(w.store)
	began := time.Now()
	r.claim = t.takeBack()
	r.revertTime = time.Since(began)
	return r, t.judge()
}

// trial is a running scenario.
type trial struct {
	scenario
	env     *testEnv
	factory methodFactory
	method  undoMethod
	result  *result
	seen    []snapshot      // before the first step, and after each step with the other actor's change
	others  snapshot        // the other actor's items, as that actor left them
	names   map[string]bool // names of these items
}

func (t *trial) work() error {
	first, err := t.env.look()
	if err != nil {
		return err
	}
	t.seen = append(t.seen, first)
	began := time.Now()
	mine := filepath.Join(t.env.store, "mine")
	if err := os.Mkdir(mine, 0o700); err != nil {
		return err
	}
	if t.method, err = t.factory.begin(t.env, mine); err != nil {
		return err
	}
	for i, s := range t.steps {
		t.result.messages = append(t.result.messages, t.one(i, s))
		t.result.worked += time.Since(began)
		if err := t.somebodyElse(i); err != nil {
			return err
		}
		now, err := t.env.look()
		if err != nil {
			return err
		}
		t.seen = append(t.seen, now)
		began = time.Now()
	}
	if t.between {
		t.method.killIn(func() string { return "" }, func() {})
	}
	t.method.end()
	t.result.worked += time.Since(began)
	return nil
}

func (t *trial) one(i int, s step) string {
	if t.kill == i+1 {
		began := make(chan struct{})
		if s.Do == "post" {
			t.env.service.mu.Lock()
			t.env.service.hold = began
			t.env.service.mu.Unlock()
		}
		return t.method.killIn(func() string { return t.method.do(s) }, func() { t.when(t.env, began) })
	}
	if t.lose && i == len(t.steps)-1 {
		t.env.service.mu.Lock()
		t.env.service.drop = true
		t.env.service.mu.Unlock()
		said := t.method.do(s)
		if said == failed { // an agent repeats a failed step; it must not repeat an unknown one
			said = t.method.do(s)
		}
		return said
	}
	return t.method.do(s)
}

// somebodyElse makes another actor's change after a step. The changed items
// follow from the world before and after.
func (t *trial) somebodyElse(i int) error {
	do := t.foreign[i]
	if s, ok := t.peer[i]; ok {
		do = func(w *testEnv) error {
			store := filepath.Join(w.store, "peer")
			if err := os.Mkdir(store, 0o700); err != nil {
				return err
			}
			p, err := t.factory.begin(w, store)
			if err != nil {
				return err
			}
			defer p.close()
			if said := p.do(s); said != done {
				return fmt.Errorf("the second agent was told %q", said)
			}
			p.end()
			return nil
		}
	}
	if do == nil {
		return nil
	}
	before, err := t.env.look()
	if err != nil {
		return err
	}
	if err := do(t.env); err != nil {
		return err
	}
	after, err := t.env.look()
	if err != nil {
		return err
	}
	for _, name := range differ(before, after) {
		if strings.HasPrefix(name, "file .git") {
			continue
		}
		t.names[name] = true
	}
	t.others = after
	return nil
}

func (t *trial) takeBack() string {
	w := t.method
	if t.undoCut != nil {
		cut := t.undoCut(t.env)
		w.killIn(w.undo, cut)
	}
	switch t.ask {
	case "first":
		return w.undoFirst()
	case "twice":
		first := w.undo()
		if second := w.undo(); second == undone && first != cannot {
			return first // the second one reports that nothing is left to undo
		}
		return first
	case "redo":
		if first := w.undo(); first == cannot {
			return first
		}
		return w.redo()
	}
	return w.undo()
}

// expected returns the expected world: as before the first step, with the other
// actor's items as that actor left them. After redo it is as before undo. If
// only the first step was undone, it is without the effects of that step.
func (t *trial) expected() snapshot {
	first, last := t.seen[0], t.seen[len(t.seen)-1]
	switch t.ask {
	case "redo":
		return last
	case "first":
		return overlay(last, first, differ(first, t.seen[1]))
	}
	var names []string
	for name := range t.names {
		names = append(names, name)
	}
	return overlay(first, t.others, names)
}

// judge compares the world with the expected one.
func (t *trial) judge() error {
	now, err := t.env.look()
	if err != nil {
		return err
	}
	want, first, r := t.expected(), t.seen[0], t.result
	r.wrong = differ(want, now)
	r.exact = len(r.wrong) == 0
	times := differInTime(want, now)
	r.inTime = len(times) == 0
	if t.times && !r.inTime {
		r.exact, r.wrong = false, times
	}
	for _, name := range r.wrong {
		switch _, there := want[name]; {
		case t.names[name]:
			r.foreign++
		case there && want[name].is != first[name].is:
			r.lost++
		default:
			r.left++
		}
	}
	r.doubled = doubled(t.steps, now)
	r.falsely = r.claim == undone && !r.exact
	r.noEffect = len(differInTime(first, t.seen[len(t.seen)-1])) == 0
	return nil
}

// doubled counts the objects of the service beyond one for each step that
// creates them.
func doubled(steps []step, now snapshot) (n int) {
	var texts []string
	for _, s := range steps {
		if s.Do == "post" {
			texts = append(texts, `"text":"`+s.Text+`"`)
		}
	}
	for _, text := range slices.Compact(slices.Sorted(slices.Values(texts))) {
		count := 0
		for name, is := range now {
			if strings.HasPrefix(name, "item ") && strings.Contains(is.is, text) {
				count++
			}
		}
		n += max(0, count-1)
	}
	return n
}

// size returns the disk space of a folder.
func size(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

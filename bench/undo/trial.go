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

// scenario is one side effect, what else happens, and what is asked to be taken back.
type scenario struct {
	name, about string

	small   bool                                // the workspace is a file system of 8 MiB
	prepare func(w *world) error                // before anybody looks
	steps   []step                              // of the agent
	foreign map[int]func(w *world) error        // what somebody else does after a step
	peer    map[int]step                        // what a second agent of the same kind does after a step
	lose    bool                                // the answer to the last step is lost, and a step that failed is tried again
	kill    int                                 // the step, from 1, in which the process is killed
	when    func(w *world, began chan struct{}) // it is killed when this returns
	between bool                                // the process is killed after the last step
	undoCut func(w *world) func()               // the process is killed in its undo when this returns, and undo is asked again
	ask     string                              // undo (default), first, twice, redo
	times   bool                                // when files were written is what it is about
}

// result is what became of a scenario in one way.
type result struct {
	scenario, way, claim string

	told     []string // of each step
	exact    bool     // the world is as it should be
	inTime   bool     // and so are the times of files
	foreign  int      // things of somebody else that are not as they left them
	lost     int      // effects that should be there and are not
	left     int      // effects that should be gone, or things never touched, that are not as before
	doubled  int      // objects of the service that are there more often than steps made them
	falsely  bool     // it said that all was undone
	stored   int64    // bytes kept for it
	worked   time.Duration
	undoing  time.Duration
	wrong    []string
	noEffect bool // nothing happened in the first place
}

// try runs a scenario in a new world.
func try(s scenario, c contestant, dir string) (r result, err error) {
	r = result{scenario: s.name, way: c.name}
	w, err := newWorld(dir, s.small)
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
	t := &trial{scenario: s, world: w, contestant: c, result: &r, others: snapshot{}, names: map[string]bool{}}
	if err := t.work(); err != nil {
		return r, err
	}
	defer t.way.close()
	r.stored = size(w.store)
	began := time.Now()
	r.claim = t.takeBack()
	r.undoing = time.Since(began)
	return r, t.judge()
}

// trial is a scenario at work.
type trial struct {
	scenario
	world      *world
	contestant contestant
	way        way
	result     *result
	seen       []snapshot      // before the first step, and after each with what somebody else did after it
	others     snapshot        // what somebody else did, as they left it
	names      map[string]bool // of that
}

func (t *trial) work() error {
	first, err := t.world.look()
	if err != nil {
		return err
	}
	t.seen = append(t.seen, first)
	began := time.Now()
	mine := filepath.Join(t.world.store, "mine")
	if err := os.Mkdir(mine, 0o700); err != nil {
		return err
	}
	if t.way, err = t.contestant.begin(t.world, mine); err != nil {
		return err
	}
	for i, s := range t.steps {
		t.result.told = append(t.result.told, t.one(i, s))
		t.result.worked += time.Since(began)
		if err := t.somebodyElse(i); err != nil {
			return err
		}
		now, err := t.world.look()
		if err != nil {
			return err
		}
		t.seen = append(t.seen, now)
		began = time.Now()
	}
	if t.between {
		t.way.killIn(func() string { return "" }, func() {})
	}
	t.way.end()
	t.result.worked += time.Since(began)
	return nil
}

func (t *trial) one(i int, s step) string {
	if t.kill == i+1 {
		began := make(chan struct{})
		if s.Do == "post" {
			t.world.service.mu.Lock()
			t.world.service.hold = began
			t.world.service.mu.Unlock()
		}
		return t.way.killIn(func() string { return t.way.do(s) }, func() { t.when(t.world, began) })
	}
	if t.lose && i == len(t.steps)-1 {
		t.world.service.mu.Lock()
		t.world.service.drop = true
		t.world.service.mu.Unlock()
		said := t.way.do(s)
		if said == failed { // an agent that is told so tries again; one that is told "unknown" must not
			said = t.way.do(s)
		}
		return said
	}
	return t.way.do(s)
}

// somebodyElse is what somebody else does after a step. What they changed is known from the
// world before and after.
func (t *trial) somebodyElse(i int) error {
	do := t.foreign[i]
	if s, ok := t.peer[i]; ok {
		do = func(w *world) error {
			store := filepath.Join(w.store, "peer")
			if err := os.Mkdir(store, 0o700); err != nil {
				return err
			}
			p, err := t.contestant.begin(w, store)
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
	before, err := t.world.look()
	if err != nil {
		return err
	}
	if err := do(t.world); err != nil {
		return err
	}
	after, err := t.world.look()
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
	w := t.way
	if t.undoCut != nil {
		cut := t.undoCut(t.world)
		w.killIn(w.undo, cut)
	}
	switch t.ask {
	case "first":
		return w.undoFirst()
	case "twice":
		first := w.undo()
		if second := w.undo(); second == undone && first != cannot {
			return first // the second says that there is nothing left to do
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

// expected is the world as it should be: as before the first step, with what somebody
// else did as they left it; after redo as it was before undo; and where only the first
// step was taken back, without what that one did.
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

// judge holds the world against what it should be.
func (t *trial) judge() error {
	now, err := t.world.look()
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

// doubled counts the objects of the service beyond one for each step that makes them.
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

// size is what a folder takes of the disk.
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

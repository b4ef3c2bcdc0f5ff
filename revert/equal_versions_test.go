package revert_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// TestEqualVersions uses two keys and three values, so almost each version
// equals one of another call. When nothing is in flight, each key must be as
// the newest call left it that still has effects. Reverting everything, newest
// first, must restore the beginning.
func TestEqualVersions(t *testing.T) {
	seeds := 60
	if os.Getenv("REMIT_LONG") != "" {
		seeds = 4_000
	}
	for seed := range seeds {
		likeness(t, uint64(seed))
	}
}

// randomRun plays one seed.
type randomRun struct {
	*testEnv
	rng   *rand.Rand
	txns  []string // in the order in which they began
	links []string
	open  revert.Recorder
	nest  string
	wrote []keyWrite
	trace []string
}

// keyWrite is a call that changed a key, in the order of the changes.
type keyWrite struct{ txn, call, key string }

func likeness(t *testing.T, seed uint64) {
	a := &randomRun{testEnv: newTestEnv(t), rng: rand.New(rand.NewPCG(seed, 7))}
	defer func() {
		if t.Failed() {
			t.Logf("seed %d:\n%s", seed, strings.Join(a.trace, "\n"))
		}
	}()
	for range 24 {
		a.step()
		a.asTheJournalSays()
	}
	if a.open.Txn() != "" {
		a.abort()
	}
	for range 2 { // a call that lacked its base in the first round succeeds in the second
		for _, id := range slices.Backward(a.txns) {
			_, err := a.reverter.Revert(t.Context(), id, revert.Options{})
			require.NoError(t, err)
		}
	}
	a.asTheJournalSays()
	require.Equal(t, before(), a.values.values)
}

func (a *randomRun) say(format string, args ...any) {
	a.trace = append(a.trace, fmt.Sprintf(format, args...)+fmt.Sprintf(" -> %v", a.values.values))
}

// over forgets the open transaction.
func (a *randomRun) over() { a.open, a.nest = revert.Recorder{}, "" }

func (a *randomRun) step() {
	switch n := a.rng.IntN(10); {
	case n < 4:
		a.write()
	case n < 6 && a.open.Txn() != "":
		a.end()
	case n < 8 && len(a.txns) > 0:
		a.back()
	case len(a.txns) > 0:
		a.again()
	}
}

// write changes a key in the open transaction, sometimes in a nested one.
func (a *randomRun) write() {
	if a.open.Txn() == "" {
		a.open = a.txn()
		a.txns = append(a.txns, a.open.Txn())
	}
	if a.nest == "" && a.rng.IntN(3) == 0 {
		a.nest = fmt.Sprintf("n_%d", len(a.trace))
		a.line(a.open, "", &record.Nested{ID: a.nest})
	}
	s := handled()
	if a.rng.IntN(2) == 0 {
		s.Nest = a.nest
	}
	key := []string{"a", "b"}[a.rng.IntN(2)]
	var value any
	if n := a.rng.IntN(3); n > 0 {
		value = n
	}
	var held *journal.ClaimedError
	if errors.As(a.open.Write(a.t.Context(), revert.Write{Claims: []string{key}}), &held) {
		return // claimed by a revert that did not end
	}
	now, there := a.values.values[key]
	if there == (value != nil) && now == fmt.Sprint(value) || !there && value == nil {
		return
	}
	id := a.start(a.open, s, write{key, value})
	a.line(a.open, id, done())
	a.wrote = append(a.wrote, keyWrite{a.open.Txn(), id, key})
	a.say("%s of %s (%s) writes %s=%v", id, a.open.Txn(), s.Nest, key, value)
}

func (a *randomRun) end() {
	switch {
	case a.nest != "" && a.rng.IntN(2) == 0:
		_, err := a.reverter.RevertNested(a.t.Context(), a.open.Txn(), a.nest)
		require.NoError(a.t, err)
		a.say("revert nest %s", a.nest)
		a.nest = ""
	case a.rng.IntN(3) == 0:
		a.abort()
	default:
		a.testEnv.end(a.open)
		a.say("commit %s", a.open.Txn())
		a.over()
	}
}

func (a *randomRun) abort() {
	rep, err := a.reverter.Abort(a.t.Context(), a.open.Txn(), revert.Options{})
	require.NoError(a.t, err)
	require.True(a.t, rep.Complete(), "%+v", rep)
	a.say("abort %s", a.open.Txn())
	a.over()
}

// back reverts an ended transaction, or a call of it, and sometimes dies
// half-way.
func (a *randomRun) back() {
	id := a.txns[a.rng.IntN(len(a.txns))]
	if id == a.open.Txn() {
		return
	}
	how := revert.Options{Cascade: a.rng.IntN(2) == 0}
	if i := slices.IndexFunc(a.wrote, func(w keyWrite) bool { return w.txn == id }); i >= 0 && a.rng.IntN(3) == 0 {
		how.Calls = []string{a.wrote[i].call}
	}
	a.runWithCrashes(fmt.Sprintf("undo %s %+v", id, how), func() (revert.Report, error) { return a.reverter.Revert(a.t.Context(), id, how) })
}

func (a *randomRun) again() {
	ids := slices.Concat(a.txns, a.links)
	id := ids[a.rng.IntN(len(ids))]
	if id == a.open.Txn() {
		return
	}
	a.runWithCrashes("redo "+id, func() (revert.Report, error) { return a.reverter.Redo(a.t.Context(), id, "kim") })
}

// runWithCrashes runs work that the death of its process may interrupt. The next
// process recovers, and reverts the open transactions.
func (a *randomRun) runWithCrashes(what string, do func() (revert.Report, error)) {
	ctx := a.t.Context()
	dies := a.rng.IntN(2) == 0
	if dies {
		crashAtPoint(a.testEnv, []string{"journal.append", "revert.apply"}[a.rng.IntN(2)], 1+a.rng.IntN(6))
	}
	rep, err := do()
	a.host.OnPoint = nil
	if rep.RevertTxn != "" && strings.HasPrefix(what, "undo") {
		a.links = append(a.links, rep.RevertTxn)
	}
	a.say("%s: %v %v %v", what, rep.State, outcomes(rep.Items), err)
	if !dies {
		return
	}
	a.next()
	found, err := a.reverter.Recover(ctx)
	require.NoError(a.t, err)
	a.say("recover: %+v", found.Settled)
	if a.open.Txn() != "" {
		rep, err := a.reverter.Revert(ctx, a.open.Txn(), revert.Options{})
		require.NoError(a.t, err)
		a.say("undo of what was open: %v", rep.State)
		a.over()
	}
}

// asTheJournalSays compares the store with the calls that still have effects.
func (a *randomRun) asTheJournalSays() {
	want, txns := before(), map[string]*revert.Txn{}
	for _, w := range a.wrote {
		if txns[w.txn] == nil {
			txns[w.txn] = a.load(w.txn)
		}
		c, ok := txns[w.txn].Call(w.call)
		require.True(a.t, ok)
		if !c.HasEffects() {
			continue
		}
		delete(want, w.key)
		if post := c.Changes[0].Post; post != effect.Absent {
			want[w.key] = strings.TrimPrefix(string(post), "v:")
		}
	}
	if !maps.Equal(want, a.values.values) {
		require.Equal(a.t, want, a.values.values)
	}
}

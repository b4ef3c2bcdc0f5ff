package files_test

import (
	"hash/fnv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert"
)

// each runs a test for every action on every kind of file system.
func each(t *testing.T, run func(t *testing.T, a action, fresh func() *testEnv)) {
	t.Helper()
	for system, wrap := range systems() {
		t.Run(system, func(t *testing.T) {
			for _, a := range actions() {
				t.Run(a.name, func(t *testing.T) {
					run(t, a, func() *testEnv { return prepared(t, wrap) })
				})
			}
		})
	}
}

func prepared(t *testing.T, wrap func(disk.Root) disk.Root) *testEnv {
	t.Helper()
	w := newTestEnv(t)
	w.createFiles()
	w.root = wrap(w.root)
	return w
}

// TestUndo checks that every action changes something, and that a revert
// restores the tree.
func TestUndo(t *testing.T) {
	each(t, func(t *testing.T, a action, fresh func() *testEnv) {
		w := fresh()
		before := w.tree()
		require.NoError(t, w.do(w.host(), a.do))
		require.NotEqual(t, before, w.tree())
		rep := w.revert()
		require.Empty(t, rep.NotReverted())
		require.NotEmpty(t, rep.Items)
		require.Equal(t, before, w.tree())
		require.Equal(t, revert.TxnReverted, rep.State)
	})
}

// TestCrash kills the process at every point of an action. A revert in another
// process restores the tree.
func TestCrash(t *testing.T) {
	each(t, func(t *testing.T, a action, fresh func() *testEnv) {
		for n := 1; ; n++ {
			w := fresh()
			before := w.tree()
			c := &crash{left: n}
			_ = w.do(c.on(w.host()), a.do)
			rep := w.revert()
			require.Empty(t, rep.NotReverted(), "died at %v", c.trace)
			require.Equal(t, before, w.tree(), "died at %v", c.trace)
			if !c.ended {
				return
			}
		}
	})
}

// planStep returns the distance between the points of a second death. Each run
// takes a sample of them; with REMIT_LONG=1 it takes them all.
func planStep() int { return statcheck.Stride(97) }

// leap returns the distance for a first death that a second one follows.
func leap() int { return statcheck.Stride(13) }

// start returns the first point of a sample. It differs by test and is the same
// in each run.
func start(t *testing.T) int {
	t.Helper()
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.Name()))
	return 1 + int(h.Sum32()%uint32(leap()))
}

// TestCrashOfUndo kills the process at a point of an action, or at none, and
// the reverting process at every one of its points.
func TestCrashOfUndo(t *testing.T) {
	t.Parallel()
	states := 0
	each(t, func(t *testing.T, a action, fresh func() *testEnv) {
		for n, first := start(t), true; first; n += leap() {
			for m := 1 + n%planStep(); ; m += planStep() {
				w := fresh()
				before := w.tree()
				c, d := &crash{left: n}, &crash{left: m}
				_ = w.do(c.on(w.host()), a.do)
				_, _ = w.revertAs(t.Context(), d.on(w.host()))
				rep := w.revert()
				states++
				require.Empty(t, rep.NotReverted(), "died at %v, then at %v", c.trace, d.trace)
				require.Equal(t, before, w.tree(), "died at %v, then at %v", c.trace, d.trace)
				if first = c.ended; !d.ended {
					break
				}
			}
		}
	})
	t.Logf("%d states", states)
}

// TestCrashOfRecovery kills the revert of a complete action, and then also its
// recovery.
func TestCrashOfRecovery(t *testing.T) {
	t.Parallel()
	states := 0
	each(t, func(t *testing.T, a action, fresh func() *testEnv) {
		for n, first := start(t), true; first; n += leap() {
			for m := 1 + n%planStep(); ; m += planStep() {
				w := fresh()
				before := w.tree()
				require.NoError(t, w.do(w.host(), a.do))
				c, d := &crash{left: n}, &crash{left: m}
				_, _ = w.revertAs(t.Context(), c.on(w.host()))
				_, _ = w.revertAs(t.Context(), d.on(w.host()))
				rep := w.revert()
				states++
				require.Empty(t, rep.NotReverted(), "died at %v, then at %v", c.trace, d.trace)
				require.Equal(t, before, w.tree(), "died at %v, then at %v", c.trace, d.trace)
				if first = c.ended; !d.ended {
					break
				}
			}
		}
	})
	t.Logf("%d states", states)
}

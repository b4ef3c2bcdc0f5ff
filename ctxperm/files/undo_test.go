package files_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
)

// TestUndo: every action changes something, and taking it back leaves the tree
// as it was; taking that back brings the change again.
func TestUndo(t *testing.T) {
	for _, a := range actions() {
		t.Run(a.name, func(t *testing.T) {
			w := newWorld(t)
			w.furnish()
			before := w.tree()
			require.NoError(t, w.do(w.host(), a.do))
			require.NotEqual(t, before, w.tree())
			rep := w.revert()
			require.Empty(t, rep.NotUndone())
			require.NotEmpty(t, rep.Items)
			require.Equal(t, before, w.tree())
			require.Equal(t, revert.RevertedState, rep.State)
		})
	}
}

// TestCrash: the process dies at every point of an action. Whatever it had done,
// taking it back in another process leaves the tree as it was.
func TestCrash(t *testing.T) {
	for _, a := range actions() {
		t.Run(a.name, func(t *testing.T) {
			for n := 1; ; n++ {
				w := newWorld(t)
				w.furnish()
				before := w.tree()
				c := &crash{left: n}
				_ = w.do(c.on(w.host()), a.do)
				rep := w.revert()
				require.Empty(t, rep.NotUndone(), "died at %v", c.trace)
				require.Equal(t, before, w.tree(), "died at %v", c.trace)
				if !c.died {
					t.Logf("%d points", n-1)
					return
				}
			}
		})
	}
}

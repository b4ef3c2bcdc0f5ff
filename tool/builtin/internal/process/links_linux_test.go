package process_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
)

// TestUndoOfLinks runs programs that change files with several names. Undo and
// redo restore times, bits, attributes and the links between the names.
func TestUndoOfLinks(t *testing.T) {
	const three = "echo hl > h1; ln h1 h2; mkdir d; ln h1 d/h3; touch -d 2020-01-01 h1; ln b b2; "
	for _, tt := range []struct{ name, setup, script string }{
		{"times of all names", "echo hl > h1; ln h1 h2; touch -d 2020-01-01 h1", "touch h1 h2"},
		{"times of one name", three, "touch h1"},
		{"bits of all names", three, "chmod 600 h1 h2 d/h3"},
		{"bits of one name", three, "chmod 600 d/h3"},
		{"content of two names", three, "echo x >> h1; echo y > d/h3"},
		{"content of all names", three, "echo x > h1; echo y > h2; echo z > d/h3"},
		{"all go and two come", three, "rm -r d; cp h1 t; rm h1 h2; cp t h1; ln h1 h2"},
		{"the same again, each by itself", three, "cp -p h1 t; cp -p h1 u; rm -r d; mv t h1; mv u h2"},
		{"the same again, as one", three, "cp -p h1 t; rm -r d; mv t h1; ln -f h1 h2"},
		{"all go", three, "rm -r d h1 h2"},
		{"a name goes to another file", three, "ln -f b h2; rm b"},
		{"two files become one", three, "rm h1 h2; ln b h1; ln b2 h2"},
		{"a name moves", three, "mv d/h3 h0; mv h1 d/h1"},
	} {
		for _, way := range writeModeCases(t) {
			t.Run(tt.name+way.name, func(t *testing.T) {
				w := newProgramSetup(t, allowAll(), agent.Driver(way.driver))
				fill(t, w.dir)
				plainly(t, w.dir, tt.setup)
				before := listing(t, w.dir, true)
				txn, _ := w.shell(t, tt.script)
				after := listing(t, w.dir, true)
				require.NotEqual(t, before, after)
				for range 2 {
					rep, err := w.s.Revert(t.Context(), txn, revert.Options{})
					require.NoError(t, err)
					require.Empty(t, rep.NotReverted())
					equal(t, before, listing(t, w.dir, true), "undo")
					rep, err = w.rt.Redo(t.Context(), txn, "tester")
					require.NoError(t, err)
					require.Empty(t, rep.NotReverted())
					equal(t, after, listing(t, w.dir, true), "redo")
				}
			})
		}
	}
}

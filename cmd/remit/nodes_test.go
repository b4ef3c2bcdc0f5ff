package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/remit-dev/remit/internal/proof/pgtest"
)

// TestNodes runs scripts whose nodes share a journal in PostgreSQL.
func TestNodes(t *testing.T) {
	quick := quickly(t)
	journal, _ := pgtest.Database(t)
	empty, _ := pgtest.Database(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/nodes",
		Setup: func(e *testscript.Env) error {
			e.Setenv("JOURNAL", journal)
			e.Setenv("EMPTY", empty)
			e.Setenv("XDG_STATE_HOME", e.WorkDir+".state")
			e.Defer(func() { _ = os.RemoveAll(e.WorkDir + ".state") })
			if quick != "" {
				e.Setenv("PATH", quick+string(os.PathListSeparator)+e.Getenv("PATH"))
			}
			return nil
		},
	})
}

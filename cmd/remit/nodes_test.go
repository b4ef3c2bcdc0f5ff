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
	asked, _ := pgtest.Database(t)
	approve, _ := pgtest.Database(t)
	empty, _ := pgtest.Database(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/nodes",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"copytree": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(ts.MkAbs(args[0]))))
				ts.Check(os.Chmod(ts.MkAbs(args[1]), 0o700))
			},
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("JOURNAL", journal)
			e.Setenv("ASKED", asked) // of another script, which makes the same IDs
			e.Setenv("APPROVE", approve)
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

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/pgtest"
)

// TestNodes runs scripts whose nodes share a journal in PostgreSQL: each script
// has one of its own, and an empty database.
func TestNodes(t *testing.T) {
	quick := quickly(t)
	scripts, err := filepath.Glob("testdata/nodes/*.txtar")
	require.NoError(t, err)
	free := make(chan string, 2*len(scripts)) // the scripts run in parallel, and pgtest.Database does not
	for range cap(free) {
		journal, _ := pgtest.Database(t)
		free <- journal
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/nodes",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"copytree": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(ts.MkAbs(args[0]))))
				ts.Check(os.Chmod(ts.MkAbs(args[1]), 0o700))
			},
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("JOURNAL", <-free)
			e.Setenv("EMPTY", <-free)
			e.Setenv("XDG_STATE_HOME", e.WorkDir+".state")
			e.Defer(func() { _ = os.RemoveAll(e.WorkDir + ".state") })
			if quick != "" {
				e.Setenv("PATH", quick+string(os.PathListSeparator)+e.Getenv("PATH"))
			}
			return nil
		},
	})
}

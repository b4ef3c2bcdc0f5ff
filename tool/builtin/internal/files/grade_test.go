package files_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/reverttest"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/files"
)

// TestGrades: each tool is as good as its grade says. REVERTTEST_UPDATE=1 writes the
// grades that the kit finds.
func TestGrades(t *testing.T) {
	world := func(*reverttest.Wire) (reverttest.TestEnv, error) {
		return reverttest.TestEnv{Files: map[string]string{"a.txt": "one\ntwo\n", "dir/b.txt": "three\n", "dir/deep/": ""}}, nil
	}
	inputs := map[string][]any{
		"file_read":   {tool.Args{"path": "a.txt"}},
		"file_list":   {tool.Args{"path": "dir"}},
		"file_search": {tool.Args{"pattern": "two"}},
		"file_write":  {tool.Args{"path": "a.txt", "content": "new"}, tool.Args{"path": "dir/new.txt", "content": "new", "mode": "0600"}},
		"file_edit":   {tool.Args{"path": "a.txt", "old": "two", "new": "2"}},
		"file_delete": {tool.Args{"path": "a.txt"}, tool.Args{"path": "dir", "recursive": true}},
		"file_move":   {tool.Args{"from": "a.txt", "to": "c.txt"}, tool.Args{"from": "dir", "to": "moved"}},
		"file_copy":   {tool.Args{"from": "a.txt", "to": "c.txt"}, tool.Args{"from": "dir", "to": "copy"}},
		"dir_create":  {tool.Args{"path": "x/y"}},
	}
	var all []reverttest.Result
	runs := 0
	for _, one := range files.Tools() {
		require.NotEmpty(t, inputs[one.Name()], one.Name())
		r := reverttest.Test(t, one, provenance.CrashUndoable, reverttest.Config{NewEnv: world, Inputs: inputs[one.Name()], Seed: 1, Runs: statcheck.Size(25, 1000)})
		all, runs = append(all, r), runs+r.Runs
	}
	reverttest.SaveGrades(t, "grades.json", all...)
	t.Logf("proved: fault kit, file tools: %d tools in %d runs with faults, %d violations", len(all), runs, map[bool]int{true: 1}[t.Failed()])
}

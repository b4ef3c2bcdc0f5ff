package reverttest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/reverttest"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/files"
)

func toolNamed(t *testing.T, all []tool.Tool, name string) tool.Tool {
	for _, one := range all {
		if one.Name() == name {
			return one
		}
	}
	t.Fatalf("no tool %s", name)
	return tool.Tool{}
}

func workspace() func(*reverttest.Wire) (reverttest.World, error) {
	return func(*reverttest.Wire) (reverttest.World, error) {
		return reverttest.World{Files: map[string]string{"a.txt": "one\ntwo\n", "dir/b.txt": "three\n", "dir/deep/": ""}}, nil
	}
}

func TestFiles(t *testing.T) {
	for name, inputs := range map[string][]any{
		"file_read":   {tool.Args{"path": "a.txt"}},
		"file_write":  {tool.Args{"path": "a.txt", "content": "new"}, tool.Args{"path": "dir/new.txt", "content": "new"}},
		"file_edit":   {tool.Args{"path": "a.txt", "old": "two", "new": "2"}},
		"file_delete": {tool.Args{"path": "a.txt"}, tool.Args{"path": "dir", "recursive": true}},
		"file_move":   {tool.Args{"from": "a.txt", "to": "c.txt"}, tool.Args{"from": "dir", "to": "moved"}},
		"file_copy":   {tool.Args{"from": "dir", "to": "copy"}},
		"dir_create":  {tool.Args{"path": "x/y"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := reverttest.Grade(toolNamed(t, files.Tools(), name), reverttest.Config{World: workspace(), Inputs: inputs, Seed: 1, Runs: 40})
			require.NoError(t, err)
			t.Log(r.Grade, r.Runs, r.Against)
		})
	}
}

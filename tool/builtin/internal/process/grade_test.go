package process_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/reverttest"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/process"
)

// begun is the time of the files of a world.
var begun = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// shown tells of all that a call can change in a folder.
func shown(dir string) (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		is := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			is += fmt.Sprintf(" %q", data)
			if info.ModTime().Equal(begun) {
				is += " of old"
			}
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			is += " to " + to
		}
		name, err := filepath.Rel(dir, path)
		found[name] = is
		return err
	})
	return found, err
}

// TestGrades: each tool is as good as its grade says, where there is a sandbox.
// REVERTTEST_UPDATE=1 writes the grades that the kit finds.
func TestGrades(t *testing.T) {
	newProgramSetup(t) // skips where programs cannot be run
	if process.Shell() != "bash" {
		t.Skip("this machine has no bash")
	}
	top, worlds := t.TempDir(), 0
	world := func(*reverttest.Wire) (reverttest.TestEnv, error) {
		worlds++
		dir := filepath.Join(top, fmt.Sprint(worlds))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return reverttest.TestEnv{}, err
		}
		for _, name := range []string{"a", "b"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("old "+name), 0o600); err != nil {
				return reverttest.TestEnv{}, err
			}
			if err := os.Chtimes(filepath.Join(dir, name), begun, begun); err != nil {
				return reverttest.TestEnv{}, err
			}
		}
		return reverttest.TestEnv{
			Process:  func() ([]agent.Option, error) { return []agent.Option{agent.Root("workspace", dir)}, nil },
			Snapshot: func() (map[string]string, error) { return shown(dir) },
			Foreign: map[string]func() error{
				"writes a": func() error { return os.WriteFile(filepath.Join(dir, "a"), []byte("theirs"), 0o600) },
				"writes d/f": func() error {
					_ = os.Mkdir(filepath.Join(dir, "d"), 0o755)
					return os.WriteFile(filepath.Join(dir, "d", "theirs"), []byte("theirs"), 0o600)
				},
			},
		}, nil
	}
	const script = "echo new > a; rm b; mkdir d; echo x > d/f; ln -s f d/l"
	inputs := map[string]any{
		"process_run": tool.Args{"argv": []string{"sh", "-c", script}},
		"shell_run":   tool.Args{"script": script},
	}
	var all []reverttest.Result
	runs := 0
	for _, one := range append(process.Tools(), process.ToolsOf("sh")[1]) {
		require.NotEmpty(t, inputs[one.Name()], one.Name())
		r := reverttest.Test(t, one, provenance.CrashUndoable, reverttest.Config{NewEnv: world, Inputs: []any{inputs[one.Name()]}, Seed: 1, Runs: statcheck.Size(8, 150)})
		all, runs = append(all, r), runs+r.Runs
	}
	reverttest.SaveGrades(t, "grades.json", all...)
	t.Logf("proved: fault kit, programs: %d tools in %d runs with faults, %d violations", len(all), runs, map[bool]int{true: 1}[t.Failed()])
}

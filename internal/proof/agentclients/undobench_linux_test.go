package agentclients_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/agentclients"
)

// undoTimeout is how long the benchmark waits for a command of an agent.
const undoTimeout = 40 * time.Second

// undoResult is the verdict on one step with one tool.
type undoResult struct {
	Step, Tool, Version string
	Verdict, Claim      string
	Words               string   `json:",omitempty"`
	Wrong               []string `json:",omitempty"`
	Work, Undo          int64    // milliseconds
}

// TestUndoBench lets real tools undo each of some steps, and judges what is
// left. REMIT_UNDO_BENCH is the folder for the results, from which it writes
// docs/evidence/undo-bench-tools.md with -update: "make undo-bench-tools".
func TestUndoBench(t *testing.T) {
	dir := os.Getenv("REMIT_UNDO_BENCH")
	if dir == "" {
		t.Skip("starts programs from npm some hundred times: make undo-bench-tools")
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	defer func() {
		if *update {
			updateUndoPage(t, dir)
		}
	}()
	program := filepath.Join(t.TempDir(), "remit")
	build := exec.Command("go", "build", "-o", program, "github.com/remit-dev/remit/cmd/remit")
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))
	for _, tool := range undoTools() {
		t.Run(tool.name, func(t *testing.T) {
			clients := agentclients.Clients()
			c := clients[slices.IndexFunc(clients, func(c agentclients.Client) bool { return c.Name == tool.client })].Install(t)
			var service *agentclients.Service
			if tool.serve != nil {
				service = tool.serve(t, c, t.TempDir())
			}
			name := filepath.Join(dir, fileName(tool.name))
			all := results(t, name)
			for _, step := range undoSteps() {
				t.Run(step.name, func(t *testing.T) {
					got := tryUndo(t, tool, &undoRun{t: t, client: c, program: program, step: step, tool: tool.name, service: service})
					all = append(slices.DeleteFunc(all, func(r undoResult) bool { return r.Step == step.name }), got)
					raw, err := json.MarshalIndent(all, "", " ")
					require.NoError(t, err)
					write(t, name, string(raw))
				})
			}
		})
	}
}

// results returns those of earlier runs.
func results(t *testing.T, name string) (all []undoResult) {
	raw, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &all))
	return all
}

func fileName(tool string) string {
	return strings.NewReplacer(" ", "-", "/", "", ",", "").Replace(tool) + ".json"
}

// tryUndo runs a step in a new project.
func tryUndo(t *testing.T, tool undoTool, r *undoRun) undoResult {
	base, err := os.MkdirTemp("", "undo")
	require.NoError(t, err)
	t.Cleanup(func() {
		agentclients.EndAll("XDG_STATE_HOME=" + filepath.Join(base, "state"))
		_ = os.RemoveAll(base)
	})
	step, c := r.step, r.client
	r.base, r.home = base, filepath.Join(base, "home")
	must(os.MkdirAll(r.home, 0o755))
	t.Setenv("PATH", filepath.Dir(c.Node())+":"+os.Getenv("PATH"))
	r.space = newUndoSpace(filepath.Join(r.home, "src"), step)
	other := newUndoSpace(filepath.Join(base, "other"), step)
	if tool.begin != nil {
		tool.begin(r)
	}
	before := r.space.look()
	result := undoResult{Step: step.name, Tool: tool.name, Version: c.Name + " " + c.Version}
	if tool.version != "" {
		result.Version = tool.version
	}
	began := time.Now()
	tool.work(r)
	result.Work = time.Since(began).Milliseconds()
	if step.late && eventually(func() bool { return endWaiting(r.space.dir, true) }, time.Second) {
		eventually(func() bool { _, err := os.Lstat(r.space.path("late.txt")); return err == nil }, 5*time.Second)
	}
	effect := len(differences(before, r.space.look())) > 0
	if step.person != nil {
		step.person(other)
		if !step.during {
			step.person(r.space)
		}
	}
	want, worked := other.look(), r.space.look()
	began = time.Now()
	result.Claim, result.Words = tool.undo(r)
	result.Undo = time.Since(began).Milliseconds()
	undone := r.space.look()
	result.Verdict, result.Wrong = verdict(before, worked, undone, want, result.Claim)
	if !effect {
		result.Verdict, result.Wrong = noEffect, nil
	}
	t.Logf("%s: %s (%s), %d + %d ms\n%s\n%s", step.name, result.Verdict, result.Claim, result.Work, result.Undo, short(result.Words), strings.Join(result.Wrong[:min(len(result.Wrong), 6)], "\n"))
	for i := range result.Wrong {
		result.Wrong[i] = short(result.Wrong[i])
	}
	result.Words = strings.ReplaceAll(short(result.Words), base, "")
	return result
}

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUndoOfARunningPrompt: an undo ends a prompt that the agent still works on,
// and says so. A prompt that had ended needs no word.
func TestUndoOfARunningPrompt(t *testing.T) {
	p := newAgentPlace(t)
	file := p.at("agent.sh")
	script := []string{
		"cd " + p.project, p.event("s1", "SessionStart", nil), p.event("s1", "UserPromptSubmit", map[string]any{"prompt": "go"}),
		p.writes("s1", "u1", "a.txt", "one"), "echo ready", "read go_on",
	}
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(script, "\n")), 0o600))
	agent := exec.Command("bash", file) // at work until its input ends
	agent.Env = p.env
	input, err := agent.StdinPipe()
	require.NoError(t, err)
	output, err := agent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, agent.Start())
	for lines := bufio.NewScanner(output); lines.Scan() && lines.Text() != "ready"; {
	}
	said := "the agent had not ended this prompt"
	code, out := p.person("undo")
	require.NoError(t, input.Close())
	_ = agent.Wait()
	require.Zero(t, code, out)
	require.Equal(t, 1, strings.Count(out, said), out)
	require.NoFileExists(t, filepath.Join(p.project, "a.txt"))

	p.runs(p.writes("s1", "u2", "b.txt", "two"), p.event("s1", "Stop", nil))
	code, out = p.person("undo")
	require.Zero(t, code, out)
	require.NotContains(t, out, said)
	require.NoFileExists(t, filepath.Join(p.project, "b.txt"))
}

// TestRedoAfterAKill: the resident process is killed while an observed call
// creates a file and deletes another, so the outcome of the call is unknown. What
// an undo then takes away is brought back by a redo.
func TestRedoAfterAKill(t *testing.T) {
	p := newAgentPlace(t)
	precious, keep := filepath.Join(p.project, "precious.txt"), filepath.Join(p.project, "keep.txt")
	require.NoError(t, os.WriteFile(keep, []byte("k"), 0o600))
	use := toolUse("u1", "mcp__x__y", map[string]any{"q": 1})
	next := p.inParts( // one process: the daemon ends the prompt of one that is gone
		[]string{p.event("s1", "SessionStart", nil), p.event("s1", "UserPromptSubmit", map[string]any{"prompt": "go"}), p.event("s1", "PreToolUse", use)},
		[]string{"printf precious > precious.txt; rm keep.txt"},
		[]string{p.event("s1", "PostToolUse", use), p.event("s1", "Stop", nil)},
	)
	next()
	pid := p.daemon()
	require.NotZero(t, pid)
	next()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	next()

	code, out := p.person("undo")
	require.Equal(t, 6, code, out)
	require.Contains(t, out, "unknown   tool://client_other")
	require.Contains(t, out, "redo these changes: remit redo t_")
	require.NoFileExists(t, precious)
	require.FileExists(t, keep)

	code, out = p.person("redo")
	require.Zero(t, code, out)
	require.FileExists(t, precious)
	require.NoFileExists(t, keep)
	code, out = p.person("undo")
	require.Equal(t, 6, code, out)
	require.NoFileExists(t, precious)
}

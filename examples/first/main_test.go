package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tutorial is the page that shows this program.
var tutorial = filepath.Join("..", "..", "docs", "tutorial", "first-tool.md")

// TestTutorialHoldsTheProgram checks that the tutorial contains this program,
// so that its code compiles and runs.
func TestTutorialHoldsTheProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	page, err := os.ReadFile(tutorial)
	require.NoError(t, err)
	require.Contains(t, string(page), "```go\n"+string(program)+"```\n")
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	for _, command := range []string{"`make run`", "`make test`"} {
		require.Contains(t, string(readme), command)
	}
}

// TestTutorialHoldsTheAnswer checks that the output in the tutorial names the
// current line of the rule.
func TestTutorialHoldsTheAnswer(t *testing.T) {
	const reason = "the history of the repository is out of reach"
	pack, err := os.ReadFile(filepath.Join("..", "..", "policies", "workspace", "workspace.rego"))
	require.NoError(t, err)
	page, err := os.ReadFile(tutorial)
	require.NoError(t, err)
	before, _, found := strings.Cut(string(pack), reason)
	require.True(t, found)
	line := 1 + strings.Count(before, "\n")
	require.Contains(t, string(page), fmt.Sprintf("file_write: denied: %s (builtin:workspace/workspace.rego:%d) (call c_", reason, line))
}

func TestFirstProgram(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, run(context.Background(), dir))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "the transaction was reverted")
}

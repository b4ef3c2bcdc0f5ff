package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README holds this program, so that what it shows compiles and runs.
func TestReadmeHoldsTheProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	require.Contains(t, string(readme), "```go\n"+string(program)+"```\n")
	for _, command := range []string{"`make run`", "`make test`"} {
		require.Contains(t, string(readme), command)
	}
}

func TestFirstTenMinutes(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, run(context.Background(), dir))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "the transaction was taken back")
}

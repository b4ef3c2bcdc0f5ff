package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

// TestTutorialHoldsTheTool checks that the tutorial shows the tool of this
// program unchanged.
func TestTutorialHoldsTheTool(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "tutorial", "first-tool.md"))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(program), "// newNoteTool writes")
	require.True(t, ok)
	function, _, ok := strings.Cut(rest, "\n}\n")
	require.True(t, ok)
	require.Contains(t, string(page), "```go\n// newNoteTool writes"+function+"\n}\n```\n")
}

// TestRunAfterRun checks that each run reverts what an earlier one left open,
// before it begins.
func TestRunAfterRun(t *testing.T) {
	ctx := context.Background()
	state, notes := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "notes")
	require.NoError(t, run(ctx, state, notes))
	leave(t, ctx, state, notes)
	_, err := os.Stat(filepath.Join(notes, "left.md"))
	require.NoError(t, err)

	require.NoError(t, run(ctx, state, notes))
	entries, err := os.ReadDir(notes)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{"plan.card", "plan.md"}, names)
}

// leave ends a process with its transaction open.
func leave(t *testing.T, ctx context.Context, state, notes string) {
	journal, err := sqlite.Open(ctx, state)
	require.NoError(t, err)
	policy, err := rego.Load(rego.Source{FS: rules})
	require.NoError(t, err)
	pairs, err := newNoteTool()
	require.NoError(t, err)
	rt, err := agent.New(agent.Tools(pairs), agent.Root("notes", notes), agent.Policy(policy), agent.Journal(journal))
	require.NoError(t, err)
	s, err := rt.Session(ctx, perm.Principal{ID: "writer"})
	require.NoError(t, err)
	tx, err := s.Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Invoke(ctx, "note_pair", tool.Args{"name": "left", "text": "x"})
	require.NoError(t, err)
	_, err = tx.Invoke(ctx, "note_pair", tool.Args{"name": "draft-1", "text": "x"})
	require.ErrorIs(t, err, tool.ErrDenied)
	require.NoError(t, rt.Close())
	require.NoError(t, journal.Close())
}

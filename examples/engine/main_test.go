package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestHours checks that a file can be read but not written at night, and both
// by day, and that a denial of the rules stays.
func TestHours(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("old"), 0o600))
	engine, err := newEngine()
	require.NoError(t, err)
	clock := hosttest.New(1) // midnight
	rt, err := agent.New(agent.Host(clock), agent.Policy(engine), agent.Tools(builtin.Files()...), agent.Root("workspace", dir))
	require.NoError(t, err)
	defer func() { require.NoError(t, rt.Close()) }()
	s, err := rt.Session(t.Context(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	try := func(name string, args tool.Args) error {
		_, err := s.Update(t.Context(), func(tx *agent.Txn) error {
			_, err := tx.Invoke(t.Context(), name, args)
			return err
		})
		return err
	}
	write := tool.Args{"path": "a.txt", "content": "new"}
	require.NoError(t, try("file_read", tool.Args{"path": "a.txt"}))
	err = try("file_write", write)
	require.ErrorIs(t, err, tool.ErrDenied)
	require.ErrorContains(t, err, "outside 8 to 18 o'clock")
	clock.Advance(10 * time.Hour)
	require.NoError(t, try("file_write", write))
	require.ErrorIs(t, try("file_write", tool.Args{"path": ".git/config", "content": "x"}), tool.ErrDenied)
}

// TestErrorsStayErrors checks that an engine that cannot decide returns an
// error.
func TestErrorsStayErrors(t *testing.T) {
	broken := perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.Decision{}, errors.New("no rules")
	})
	d, err := officeHoursEngine{0, 24, broken}.Decide(t.Context(), perm.Request{Purpose: perm.PurposeRun})
	require.EqualError(t, err, "no rules")
	require.Equal(t, perm.Deny, d.Effect())
}

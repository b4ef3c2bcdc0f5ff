package process_test

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/process"
)

func TestMain(m *testing.M) {
	handle.Main()
	code := m.Run()
	_ = os.RemoveAll(plainDir) // nothing, where it was not built
	os.Exit(code)
}

var plainDir string

// plain is these tests without the race detector.
var plain = sync.OnceValues(func() (program string, err error) {
	if plainDir, err = os.MkdirTemp("", "plain"); err != nil {
		return "", err
	}
	return statcheck.Program(plainDir)
})

// shim is what starts most programs here: these tests. Under the race detector they are slow to start, which is no matter of
// what a program did.
func shim(t *testing.T) string {
	t.Helper()
	if !statcheck.Racing {
		return ""
	}
	program, err := plain()
	require.NoError(t, err)
	return program
}

// programSetup is a workspace and a session that may do what it likes there.
type programSetup struct {
	dir string
	rt  *agent.Runtime
	s   *agent.Session
}

func newProgramSetup(t *testing.T, opts ...agent.Option) programSetup {
	t.Helper()
	w := newFastSetup(t, opts...)
	tx, err := w.s.Begin(t.Context())
	require.NoError(t, err)
	o, err := tx.Invoke(t.Context(), "process_run", tool.Args{"argv": []string{"true"}})
	require.NoError(t, tx.Commit(t.Context()))
	if err != nil && strings.Contains(o.Error.Why, "remit doctor") {
		t.Skip("this machine has no sandbox: " + o.Error.Why)
	}
	return w
}

func newFastSetup(t *testing.T, opts ...agent.Option) programSetup {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ws")
	require.NoError(t, os.Mkdir(dir, 0o755))
	return newFastSetupIn(t, dir, opts...)
}

// newFastSetupIn is newFastSetup for a folder that is there.
func newFastSetupIn(t *testing.T, dir string, opts ...agent.Option) programSetup {
	t.Helper()
	opts = append([]agent.Option{
		agent.Log(slog.New(slog.DiscardHandler)), agent.Tools(process.Tools()...), agent.Root("workspace", dir),
	}, opts...)
	rt, err := agent.New(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	s, err := rt.Session(t.Context(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	return programSetup{dir, rt, s}
}

// shell runs one script in a transaction of its own and commits it. On a busy machine, a script can take longer than the default timeout.
func (w programSetup) shell(t *testing.T, script string) (txn string, o tool.Outcome) {
	t.Helper()
	tx, err := w.s.Begin(t.Context())
	require.NoError(t, err)
	o, err = tx.Invoke(t.Context(), "shell_run", tool.Args{"script": script, "timeout_s": 3600})
	require.NoError(t, err, o.Text)
	require.NoError(t, tx.Commit(t.Context()))
	return tx.ID(), o
}

func TestShell(t *testing.T) {
	w := newProgramSetup(t)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "a"), []byte("old"), 0o644))
	txn, o := w.shell(t, "cat a; echo new > a; mkdir d; echo x > d/f; ln -s f d/l; exit 3")
	require.Equal(t, tool.StatusDone, o.Status)
	require.True(t, strings.HasPrefix(o.Text, "old"), o.Text)
	data, err := os.ReadFile(filepath.Join(w.dir, "a"))
	require.NoError(t, err)
	require.Equal(t, "new\n", string(data))
	rep, err := w.s.Revert(t.Context(), txn, revert.Options{})
	require.NoError(t, err, "%+v", rep)
	data, err = os.ReadFile(filepath.Join(w.dir, "a"))
	require.NoError(t, err)
	require.Equal(t, "old", string(data))
	_, err = os.Lstat(filepath.Join(w.dir, "d"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

package process_test

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/process"
)

// TestAllAsUser runs the tests of this package again as an ordinary user without
// any capability.
func TestAllAsUser(t *testing.T) {
	if os.Getuid() != 0 {
		return // this is an ordinary user already
	}
	t.Parallel() // it waits for a process of its own
	dir, err := os.MkdirTemp("", "user")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o777))
	exe, err := plain()
	require.NoError(t, err)
	data, err := os.ReadFile(exe)
	require.NoError(t, err)
	program := filepath.Join(dir, "process.test")
	require.NoError(t, os.WriteFile(program, data, 0o755))
	grades, err := os.ReadFile("grades.json") // a user of no capability comes to the same
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "grades.json"), grades, 0o644))
	foreign := filepath.Join(dir, "foreign")
	require.NoError(t, os.Mkdir(foreign, 0o777))
	require.NoError(t, os.Chown(foreign, 54321, 54321))
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "theirs"), []byte("theirs"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "own"), []byte("own"), 0o644))
	require.NoError(t, os.Chown(filepath.Join(foreign, "theirs"), 12345, 12345))
	require.NoError(t, os.Chown(filepath.Join(foreign, "own"), 54321, 54321))
	cmd := exec.Command(program, "-test.run", "^Test", "-test.skip", "^TestPrograms")
	cmd.Env = []string{foreignEnv + "=" + foreign, "TMPDIR=" + dir, "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + dir}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321, Groups: []uint32{54321, second}}}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Run(), &said)
}

// second is another group of the ordinary user.
const second = 54322

// TestForeignOwner checks that a program can run beside files of other users,
// which an overlay cannot take over. The runtime rejects its changes to such
// files, because their owner can change them concurrently.
func TestForeignOwner(t *testing.T) {
	dir := os.Getenv(foreignEnv)
	if dir == "" {
		return // run by TestAllAsUser
	}
	rt, err := agent.New(agent.Log(slog.New(slog.DiscardHandler)), agent.Tools(process.Tools()...), agent.Root("workspace", dir), allowAll())
	require.NoError(t, err)
	defer func() { require.NoError(t, rt.Close()) }()
	s, err := rt.Session(t.Context(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	w := programSetup{dir, rt, s}
	before := listing(t, dir, true)
	txn, o := w.shell(t, "cat theirs; echo mine > own; mkdir d; cp theirs d/copy")
	require.Contains(t, o.Text, "theirs")
	require.Len(t, o.Changes, 3)
	_, err = s.Revert(t.Context(), txn, revert.Options{})
	require.NoError(t, err)
	equal(t, before, listing(t, dir, true), "undo")
	_, o, err = w.invoke(t, "echo mine > own; rm theirs")
	require.ErrorIs(t, err, tool.ErrFailed)
	require.Contains(t, o.Error.Why, "which this process may not give to a file")
	equal(t, before, listing(t, dir, true), "nothing happened")
}

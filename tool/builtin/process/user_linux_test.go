package process_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAsUser runs the tests of this package again as an ordinary user without any
// capability.
func TestAsUser(t *testing.T) {
	if os.Getuid() != 0 {
		return // this is an ordinary user already
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	data, err := os.ReadFile(exe)
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "user")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o777))
	program := filepath.Join(dir, "process.test")
	require.NoError(t, os.WriteFile(program, data, 0o755))
	cmd := exec.Command(program, "-test.run", "^Test")
	cmd.Env = []string{"TMPDIR=" + dir, "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + dir}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Run(), &said)
}

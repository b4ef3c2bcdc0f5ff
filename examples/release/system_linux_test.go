package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ordinary makes a process of the program run as a user without privileges.
func ordinary(t *testing.T, cmd *exec.Cmd) {
	const uid = 54321
	dir, err := os.MkdirTemp("", "user")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	data, err := os.ReadFile(cmd.Path)
	require.NoError(t, err)
	cmd.Path = filepath.Join(dir, "release")
	syscall.ForkLock.RLock() // a concurrently started child would have it open for writing
	err = os.WriteFile(cmd.Path, data, 0o755)
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
	require.NoError(t, os.Chown(dir, uid, uid))
	cmd.Dir = dir
	cmd.Env = []string{beEnv + "=program", "TMPDIR=" + dir, "HOME=" + dir, "PATH=/usr/local/bin:/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
}

// TestWithoutSandbox checks that, without a sandbox, the program is refused and
// reported, and everything else is done and reverted.
func TestWithoutSandbox(t *testing.T) {
	cmd := program(t)
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	cmd.Args = []string{"sh", "-c", `echo 0 > /proc/sys/user/max_user_namespaces && exec "$0"`, cmd.Path}
	cmd.Path = sh
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if err := exec.Command(cmd.Path, "-c", "true").Run(); err != nil {
		t.Skip(err)
	}
	out, err := cmd.CombinedOutput()
	if cmd.Process == nil {
		t.Skip("there are no user namespaces at all: " + err.Error())
	}
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "NO PROGRAM RAN")
	require.Contains(t, string(out), "user.max_user_namespaces allows no more")
	require.NotContains(t, string(out), "shell_run      reversible  done")
}

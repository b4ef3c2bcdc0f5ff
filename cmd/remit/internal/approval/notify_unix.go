//go:build unix

package approval

import (
	"os/exec"
	"syscall"
)

// apart starts a program in its own process group. All of the group ends at the
// timeout.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

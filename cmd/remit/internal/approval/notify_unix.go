//go:build unix

package approval

import (
	"os/exec"
	"syscall"
)

// apart starts a program in a process group of its own, all of which ends when the program's time is up.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

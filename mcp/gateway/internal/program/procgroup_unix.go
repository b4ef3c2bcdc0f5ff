//go:build unix

package program

import (
	"os/exec"
	"syscall"
)

// newProcessGroup starts a server in its own process group, so that the gateway
// can end all its processes, and signals from the terminal do not reach it.
func newProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

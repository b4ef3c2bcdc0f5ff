//go:build unix

package gateway

import (
	"os/exec"
	"syscall"
)

// newProcessGroup gives a server a group of processes, so that all it starts can be ended with it, and a signal from the terminal
// is not meant for it.
func newProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

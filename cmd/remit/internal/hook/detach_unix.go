//go:build unix

package hook

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// detach makes a command outlive this process and its terminal. It passes the
// pipe on which the command tells that it listens.
func detach(cmd *exec.Cmd, ready *os.File) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir, cmd.ExtraFiles = "/", []*os.File{ready}
	cmd.Args = append(cmd.Args, "--ready-fd", strconv.Itoa(3))
}

// readyFile returns the pipe that detach passed.
func readyFile(fd int) *os.File { return os.NewFile(uintptr(fd), "ready") }

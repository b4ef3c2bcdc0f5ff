package hook

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"
)

// detach makes a command outlive this process and its console. It passes the
// pipe on which the command tells that it listens, as standard output: this
// system passes no other files.
func detach(cmd *exec.Cmd, ready *os.File) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
	cmd.Dir, cmd.Stdout = filepath.VolumeName(cmd.Path)+`\`, ready
	cmd.Args = append(cmd.Args, "--ready-fd", strconv.Itoa(3))
}

// readyFile returns the pipe that detach passed.
func readyFile(int) *os.File { return os.Stdout }

package agentclients

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Terminal is a terminal with a shell that a person opened beside the agent. No
// process of the test is above the shell: remit trusts one that began before the
// agent.
type Terminal struct {
	master *os.File
	lines  *bufio.Reader
}

// shell runs the lines that the terminal gets.
const shell = `while read -r line; do eval "$line"; echo "exit code $?"; done`

// OpenTerminal opens a terminal in a folder, before the agent starts. Close
// ends its shell.
func OpenTerminal(dir string, env []string) (*Terminal, error) {
	master, slave, err := terminal()
	if err != nil {
		return nil, err
	}
	start := exec.Command("setsid", "--ctty", "--fork", "bash", "-c", shell) // setsid ends at once
	start.Dir, start.Env = dir, env
	start.Stdin, start.Stdout, start.Stderr = slave, slave, slave
	err = start.Run()
	_ = slave.Close()
	v := &Terminal{master, bufio.NewReader(master)}
	if err == nil {
		_, _, err = v.Run("true") // the shell has begun
	}
	if err != nil {
		_ = master.Close()
	}
	return v, err
}

// Run runs a line, and returns what the terminal shows, and the exit code.
func (v *Terminal) Run(line string) (shown string, code int, err error) {
	if _, err := v.master.WriteString(line + "\n"); err != nil {
		return "", 0, err
	}
	for {
		text, err := v.lines.ReadString('\n')
		if _, bad := fmt.Sscanf(text, "exit code %d", &code); bad == nil || err != nil {
			return shown, code, err
		}
		shown += text
	}
}

// Close closes the terminal.
func (v *Terminal) Close() { _ = v.master.Close() }

// terminal opens a terminal.
func terminal() (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	fd := int(master.Fd()) //nolint:gosec // a descriptor
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)); err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		_ = master.Close()
	}
	return master, slave, err
}

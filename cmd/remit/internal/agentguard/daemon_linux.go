package agentguard

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/hookclient"
)

// ForeignDaemon describes the resident process that answers hooks; "": none
// runs. It returns an error if this is another program, or if it was started
// in another environment: then it can have another policy.
func ForeignDaemon(a *cli.App) (what string, err error) {
	home, err := state.Home(a.Getenv)
	if err != nil {
		return "", nil //nolint:nilerr // there is no place for one
	}
	pid := listens(filepath.Join(home, filepath.FromSlash(hookclient.Folder)))
	if pid == 0 {
		return "", nil
	}
	own, err := os.Executable()
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("the resident process (process %d)", pid)
	is, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return "", fmt.Errorf("%s cannot be checked: %w", name, err)
	}
	if real, err := filepath.EvalSymlinks(own); err == nil {
		own = real
	}
	if is == own+" (deleted)" {
		return name + " is an earlier version of this program; it ends when no agent works", nil
	}
	if is != own {
		return "", fmt.Errorf("%s is %s, and not %s", name, is, own)
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return "", fmt.Errorf("%s cannot be checked: %w", name, err)
	}
	for _, v := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "LD_PRELOAD", "GODEBUG"} {
		if got := variable(environ, v); got != a.Getenv(v) {
			return "", fmt.Errorf("%s was started with %s=%q, and this command with %q: its policy can be another one", name, v, got, a.Getenv(v))
		}
	}
	return name + " is this program, with the same configuration", nil
}

// listens returns the process that listens in a folder; 0: none.
func listens(dir string) (pid int) {
	at, err := os.Open(dir)
	if err != nil {
		return 0
	}
	defer func() { _ = at.Close() }()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", at.Fd(), hookclient.Socket), Net: "unix"})
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close() }()
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	if err != nil {
		return 0
	}
	return pid
}

func variable(environ []byte, name string) string {
	for _, line := range bytes.Split(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(line, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// inherited returns the folders for state of the processes above a command, by
// the environment that each was started in.
func inherited(who cli.Caller) (all []string) {
	for _, l := range who.Chain.Links {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", l.PID))
		if err != nil {
			continue // of another user, or it has ended
		}
		home, err := state.Home(func(name string) string { return variable(environ, name) })
		if err == nil && !slices.Contains(all, home) {
			all = append(all, home)
		}
	}
	return all
}

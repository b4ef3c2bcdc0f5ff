package agentclients

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// address is where agents find the stand-in, in the namespace of each.
const address = "127.0.0.1:4141"

// Main runs the tests of a package. It is also the other programs of the
// package: the recording hook, and the process that starts an agent.
func Main(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case hookArg:
			os.Exit(hook(os.Args[2]))
		case insideArg:
			os.Exit(inside(os.Args[2]))
		}
	}
	os.Exit(m.Run())
}

const insideArg = "agentclients-inside"

// order is what the process in the namespace starts.
type order struct {
	Socket  string
	Command []string
}

// command returns a command that runs an agent in a namespace, with a network
// that ends at the stand-in.
func (p *place) command(dir string, args ...string) (*exec.Cmd, error) {
	return p.start(dir, p.client.program(), args...)
}

// start returns a command that runs a program there.
func (p *place) start(dir, program string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	what, err := json.Marshal(order{p.socket, append([]string{program}, args...)})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, insideArg, string(what))
	cmd.Dir, cmd.Env = dir, p.env
	log, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setpgid: true}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
	}
	return cmd, nil
}

// inside runs in the namespace: it connects loopback to the stand-in, starts
// the agent, and returns its exit code.
func inside(what string) int {
	var o order
	listener, err := net.Listener(nil), json.Unmarshal([]byte(what), &o)
	if err == nil {
		err = loopback()
	}
	if err == nil {
		listener, err = net.Listen("tcp", address)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "agentclients:", err)
		return 125
	}
	go forward(listener, o.Socket)
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "agentclients:", err)
		return 126
	}
	_ = os.WriteFile(pidFile(filepath.Dir(o.Socket)), fmt.Append(nil, cmd.Process.Pid), 0o600)
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal())
		}
		return exit.ExitCode()
	}
	return 0
}

// pidFile names the file with the process of the agent. Its path is in the
// agent's environment as $REMIT_AGENT_RUN/pid.
func pidFile(run string) string { return filepath.Join(run, "pid") }

func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

func forward(from net.Listener, socket string) {
	for {
		in, err := from.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = in.Close() }()
			out, err := net.Dial("unix", socket)
			if err != nil {
				return
			}
			defer func() { _ = out.Close() }()
			go func() { _, _ = io.Copy(out, in) }()
			_, _ = io.Copy(in, out)
		}()
	}
}

// endAll ends the processes that have a mark in their environment.
func endAll(mark string) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range all {
		env, err := os.ReadFile(name)
		if err != nil || !strings.Contains("\x00"+string(env), "\x00"+mark+"\x00") {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(name, "/proc/%d/", &pid); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

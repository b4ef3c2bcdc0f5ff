//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/shim"
)

func processProbes() []probe {
	return []probe{
		{name: "signal a process", stops: []string{"mounts", "processes", "landlock"}, run: func() error { return unix.Kill(victim(), 0) }},
		{name: "signal its parent", stops: []string{"landlock"}, run: func() error { return unix.Kill(os.Getppid(), 0) }},
		{name: "signal a thread of its parent", stops: []string{"landlock"}, run: parentThread},
		{name: "limit a process", stops: []string{"processes"}, run: func() error {
			var now unix.Rlimit
			return unix.Prlimit(victim(), unix.RLIMIT_CORE, nil, &now)
		}},
		{name: "schedule a process", stops: []string{"processes"}, run: func() error {
			const batch, param = 3, 0
			_, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(victim()), batch, uintptr(unsafe.Pointer(&[]int32{param}[0])))
			if errno != 0 {
				return errno
			}
			return nil
		}, by: "user"},
		{name: "see a process", stops: []string{"mounts", "processes"}, run: func() error { _, err := os.Stat(fmt.Sprint("/proc/", victim(), "/stat")); return err }},
		{name: "descriptors of process 1", stops: []string{"dumpable", "landlock", "capabilities"}, run: parentFiles},
		{name: "root of process 1", stops: []string{"dumpable", "landlock", "capabilities"}, run: func() error { _, err := os.Readlink(parent("root")); return err }},
		{name: "memory of process 1", stops: []string{"dumpable", "landlock", "capabilities"}, run: func() error { f, err := os.Open(parent("mem")); return closed(f, err) }},
		{name: "environment of process 1", stops: []string{"dumpable", "landlock", "capabilities"}, run: func() error { _, err := os.ReadFile(parent("environ")); return err }},
		{name: "ptrace process 1", stops: []string{"seccomp", "dumpable", "landlock", "capabilities"}, run: attach},
		{name: "program of process 1", stops: []string{"dumpable", "landlock", "capabilities"}, run: func() error { f, err := os.Open(parent("exe")); return closed(f, err) }},
		{name: "pin a process", stops: []string{"processes", "landlock"}, run: pinVictim},
		{name: "inherited descriptors", stops: []string{"descriptors"}, run: inherited},
		{name: "a program with its owner's rights", stops: []string{"mounts", "privileges"}, run: ownersRights, by: "root"},
		{name: "another shim", stops: []string{"mounts", "landlock"}, run: anotherShim},
		{name: "shared memory", stops: []string{"messages"}, run: sysv(unix.SYS_SHMGET, "SHM", 4096)},
		{name: "message queue", stops: []string{"messages"}, run: sysv(unix.SYS_MSGGET, "MSG")},
		{name: "semaphores", stops: []string{"messages"}, run: sysv(unix.SYS_SEMGET, "SEM", 1)},
	}
}

// ipcKey is the key under which a test creates an object of each kind outside.
func ipcKey() uintptr {
	key, _ := strconv.Atoi(os.Getenv("IPC"))
	return uintptr(key)
}

// sysv checks whether it finds the object outside under the key.
func sysv(nr uintptr, _ string, size ...uintptr) func() error {
	return func() error {
		args := append([]uintptr{ipcKey()}, size...)
		args = append(args, 0, 0)
		_, _, errno := unix.Syscall(nr, args[0], args[1], args[2])
		if errno != 0 {
			return errno
		}
		return nil
	}
}

// parentThread searches for a thread of its parent that it may signal. The
// thread that started it has the same rights, and exists until it is scheduled
// once more. TestTrapThreadOfStarter covers what that permits. While it is the
// only one, parentThread waits, longer than any scheduler delays a thread.
func parentThread() error {
	for range 100_000 {
		switch threadsOf(os.Getppid()) {
		case 0:
			return errors.New("there is none that stays")
		case 1:
			_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		default:
			return nil
		}
	}
	return nil
}

// threadsOf returns the number of threads of a process, except its first, that
// this one may signal.
func threadsOf(pid int) (n int) {
	for tid := pid + 1; tid < pid+200; tid++ {
		if unix.Tgkill(pid, tid, 0) == nil {
			n++
		}
	}
	return n
}

// killStarter sends SIGKILL and SIGSTOP to every thread of its parent.
func killStarter() int {
	shim, reached := os.Getppid(), 0
	for tid := shim; tid < shim+200; tid++ {
		for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
			if unix.Tgkill(shim, tid, sig) == nil {
				reached++
			}
		}
	}
	fmt.Print("reached ", reached > 0)
	return 0
}

func parent(what string) string { return filepath.Join("/proc", fmt.Sprint(os.Getppid()), what) }

func parentFiles() error {
	names, err := os.ReadDir(parent("fd"))
	if err != nil {
		return err
	}
	for _, n := range names {
		if _, err = os.Readlink(filepath.Join(parent("fd"), n.Name())); err == nil {
			return nil
		}
	}
	return err
}

func attach() error {
	err := unix.PtraceSeize(os.Getppid())
	if err == nil {
		_ = unix.PtraceDetach(os.Getppid())
	}
	return err
}

// useMemory allocates more than TestMemory allows.
func useMemory() int {
	data, err := unix.Mmap(-1, 0, 128<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return 1
	}
	for i := 0; i < len(data); i += 4096 {
		data[i] = 1
	}
	return 0
}

func pinVictim() error {
	fd, err := unix.PidfdOpen(victim(), 0)
	if err == nil {
		err = unix.PidfdSendSignal(fd, 0, nil, 0)
		_ = unix.Close(fd)
	}
	return err
}

// inherited searches all open files for the secret.
func inherited() error {
	for fd := range 1000 {
		buf := make([]byte, 16)
		if n, err := unix.Pread(fd, buf, 0); err == nil && string(buf[:n]) == "secret" {
			return nil
		}
	}
	return errors.New("nothing is open")
}

// ownersRights runs a setuid program.
func ownersRights() error {
	said, err := exec.Command(root("setuid"), "-u").Output()
	if err == nil && strings.TrimSpace(string(said)) != fmt.Sprint(someOwner) {
		err = errors.New("it runs as " + string(said))
	}
	return err
}

// anotherShim runs the shim again, from inside, and lets it read a file outside
// without any layer.
func anotherShim() error {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	mine, theirs := os.NewFile(uintptr(ends[0]), "mine"), os.NewFile(uintptr(ends[1]), "theirs")
	second, err := os.StartProcess("/proc/self/exe", []string{shim.Name}, &os.ProcAttr{Env: shim.Environment(), Files: []*os.File{nil, os.Stdout, os.Stderr, theirs}})
	if err != nil {
		return err
	}
	_ = theirs.Close()
	defer func() { _ = mine.Close(); _, _ = second.Wait() }()
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	order := shim.StartRequest{
		Argv: []string{exe}, Env: append([]string{probeEnv + "=read outside"}, os.Environ()...), Dir: "/", Scratch: "/tmp", System: []string{"/"},
		Limits:  shim.Limits{Processes: 100, Files: 100, FileSize: 1 << 30, Data: 1 << 30, Scratch: 1 << 20, CPU: 60},
		Without: []string{"descriptors", "dumpable", "capabilities", "landlock", "seccomp", "limits"},
	}
	if err := shim.Send(ends[0], &order); err != nil {
		return err
	}
	for {
		var m shim.Message
		if _, err := shim.Receive(ends[0], &m); err != nil {
			return err
		}
		switch {
		case m.Kind == shim.Ended && m.Exit.Code == 0:
			return nil
		case m.Kind != shim.Began:
			return fmt.Errorf("it did not help: %+v", m)
		}
	}
}

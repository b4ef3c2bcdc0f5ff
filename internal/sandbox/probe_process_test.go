//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func processProbes() []probe {
	return []probe{
		{name: "signal a process", stops: []string{"mounts", "processes", "landlock"}, run: func() error { return unix.Kill(victim(), 0) }},
		{name: "signal its parent", stops: []string{"landlock"}, run: func() error { return unix.Kill(os.Getppid(), 0) }},
		{name: "see a process", stops: []string{"mounts", "processes"}, run: func() error { _, err := os.Stat(fmt.Sprint("/proc/", victim(), "/stat")); return err }},
		{name: "descriptors of process 1", stops: []string{"dumpable", "landlock", "capabilities"}, run: parentFiles},
		{name: "root of process 1", stops: []string{"dumpable", "landlock", "capabilities"}, run: func() error { _, err := os.Readlink(parent("root")); return err }},
		{name: "memory of process 1", stops: []string{"dumpable", "landlock", "capabilities"}, run: func() error { f, err := os.Open(parent("mem")); return closed(f, err) }},
		{name: "environment of process 1", stops: []string{"dumpable", "landlock", "capabilities"}, run: func() error { _, err := os.ReadFile(parent("environ")); return err }},
		{name: "ptrace process 1", stops: []string{"seccomp", "dumpable", "landlock", "capabilities"}, run: attach},
		{name: "shared memory", stops: []string{"messages"}, run: sysv(unix.SYS_SHMGET, "SHM", 4096)},
		{name: "message queue", stops: []string{"messages"}, run: sysv(unix.SYS_MSGGET, "MSG")},
		{name: "semaphores", stops: []string{"messages"}, run: sysv(unix.SYS_SEMGET, "SEM", 1)},
	}
}

// ipcKey is the key under which the test keeps something of each kind outside.
const ipcKey = 0x72656d69

// sysv looks whether it finds what lies outside under the key.
func sysv(nr uintptr, _ string, size ...uintptr) func() error {
	return func() error {
		args := append([]uintptr{ipcKey}, size...)
		args = append(args, 0, 0)
		_, _, errno := unix.Syscall(nr, args[0], args[1], args[2])
		if errno != 0 {
			return errno
		}
		return nil
	}
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

// useMemory takes more than TestMemory allows.
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

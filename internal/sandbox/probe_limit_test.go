//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// The limits of a probe's run, see outside.try.
var probeLimits = Limits{Processes: 301, Scratch: 8 << 20, Data: 1 << 30, FileSize: 64 << 20, Files: 512}

func limitProbes() []probe {
	limits := []string{"limits"}
	return []probe{
		{name: "fork bomb", stops: limits, run: forkBomb},
		{name: "take memory", stops: limits, run: func() error {
			_, err := unix.Mmap(-1, 0, int(probeLimits.Data)+1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
			return err
		}},
		{name: "fill the disk with one file", stops: limits, run: func() error {
			f, err := os.Create(root("large"))
			if err != nil {
				return err
			}
			defer func() { _ = f.Close(); _ = os.Remove(f.Name()) }()
			return f.Truncate(probeLimits.FileSize + 1)
		}},
		{name: "open everything", stops: limits, run: func() error {
			for range probeLimits.Files {
				if _, err := unix.Dup(0); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "leave a picture of its memory", stops: limits, run: func() error {
			var l unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil {
				return err
			}
			if l.Max == 0 {
				return errors.New("no core dumps")
			}
			return nil
		}},
		{name: "revert a limit", stops: limits, run: func() error {
			return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(probeLimits.FileSize) + 1, Max: uint64(probeLimits.FileSize) + 1})
		}},
	}
}

// forkBomb starts processes until the limit. Threads also count, so this
// process first creates all threads that it may need. The Go runtime ends a
// process that cannot get a new thread, which it needs when a system call takes
// long on a busy machine.
func forkBomb() error {
	spareThreads(16)
	for i := range 2 * probeLimits.Processes {
		pid := daemon()
		if pid < 0 {
			return fmt.Errorf("no more than %d", i)
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, 0, nil); err != nil || status.ExitStatus() != 0 {
			return fmt.Errorf("no more than %d", i)
		}
	}
	return nil
}

// spareThreads creates threads that stay.
func spareThreads(count int) {
	var made sync.WaitGroup
	made.Add(count)
	enough := make(chan struct{})
	for range count {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			made.Done()
			<-enough
		}()
	}
	made.Wait()
	close(enough)
}

// infoProbes returns probes for information about the machine in the sandbox.
func infoProbes() []probe {
	return []probe{
		{name: "name of the host", stops: []string{"name"}, run: func() error {
			name, err := os.Hostname()
			if err == nil && name != os.Getenv("HOST") {
				err = errors.New("it is called " + name)
			}
			return err
		}},
		{name: "environment of another process", stops: []string{"mounts", "processes", "landlock", "users", "capabilities"}, by: "root", run: func() error {
			text, err := os.ReadFile("/proc/" + os.Getenv("PARENT") + "/environ")
			if err == nil && len(text) == 0 {
				err = errors.New("empty")
			}
			return err
		}},
		{name: "command lines of others", stops: []string{"mounts", "processes"}, run: func() error {
			text, err := os.ReadFile(fmt.Sprint("/proc/", victim(), "/cmdline"))
			if err == nil && !strings.HasPrefix(string(text), "sleep") {
				err = errors.New("another process")
			}
			return err
		}},
		{name: "log of the kernel", stops: []string{"mounts"}, run: func() error { _, err := os.Stat("/dev/kmsg"); return err }},
		{name: "read the log of the kernel", stops: []string{"seccomp", "users", "capabilities"}, by: "root", run: func() error {
			const size = 10
			_, _, errno := unix.Syscall(unix.SYS_SYSLOG, size, 0, 0)
			if errno != 0 {
				return errno
			}
			return nil
		}},
		{name: "interrupts", stops: []string{"mounts"}, run: func() error {
			text, err := os.ReadFile("/proc/interrupts")
			if err == nil && len(text) == 0 {
				err = errors.New("nothing in it")
			}
			return err
		}},
		{name: "what only the root user may read", stops: []string{"mounts"}, by: "root", run: func() error {
			text, err := os.ReadFile("/proc/sys/kernel/usermodehelper/bset")
			if err == nil && len(text) == 0 {
				err = errors.New("nothing in it")
			}
			return err
		}},
		{name: "mounts of the host", stops: []string{"mounts"}, run: func() error {
			text, err := os.ReadFile("/proc/self/mountinfo")
			if err == nil && !strings.Contains(string(text), " /sys ") {
				err = errors.New("only its own")
			}
			return err
		}},
	}
}

//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reaches makes a system call and reports whether it passed the filter: any
// result but that of the filter comes from the kernel.
func reaches(nr uintptr, filtered unix.Errno, args ...uintptr) func() error {
	return func() error {
		var a [6]uintptr
		copy(a[:], args)
		_, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
		if errno == filtered {
			return fmt.Errorf("call %d: %w", nr, errno)
		}
		return nil
	}
}

func victim() int {
	pid, _ := strconv.Atoi(os.Getenv("VICTIM"))
	return pid
}

func kernelProbes() []probe {
	filter := []string{"seccomp"}
	caps := []string{"seccomp", "capabilities"}
	bad := ^uintptr(0)
	return []probe{
		{name: "io_uring", stops: filter, run: reaches(unix.SYS_IO_URING_SETUP, unix.ENOSYS, 0, 0)},
		{name: "io_uring enter", stops: filter, run: reaches(unix.SYS_IO_URING_ENTER, unix.ENOSYS, bad)},
		{name: "clone3", stops: filter, run: reaches(unix.SYS_CLONE3, unix.ENOSYS, 0, 0)},
		{name: "bpf", stops: caps, run: reaches(unix.SYS_BPF, unix.EPERM, 100, 0, 0)},
		{name: "userfaultfd", stops: filter, run: reaches(unix.SYS_USERFAULTFD, unix.EPERM, 1)},
		{name: "perf events", stops: filter, run: reaches(unix.SYS_PERF_EVENT_OPEN, unix.EPERM, 0, 0, bad, bad, 0)},
		{name: "add key", stops: filter, run: reaches(unix.SYS_ADD_KEY, unix.EPERM, 0, 0, 0, 0, 0)},
		{name: "request key", stops: filter, run: reaches(unix.SYS_REQUEST_KEY, unix.EPERM, 0, 0, 0, 0)},
		{name: "keyctl", stops: filter, run: reaches(unix.SYS_KEYCTL, unix.EPERM, 0, bad)},
		{name: "ptrace itself", stops: filter, run: reaches(unix.SYS_PTRACE, unix.EPERM, unix.PTRACE_TRACEME)},
		{name: "kcmp", stops: filter, run: reaches(unix.SYS_KCMP, unix.EPERM, bad, bad, 0)},
		{name: "pidfd_getfd", stops: filter, run: reaches(unix.SYS_PIDFD_GETFD, unix.EPERM, bad, 0, 0)},
		{name: "process_vm_readv", stops: filter, run: reaches(unix.SYS_PROCESS_VM_READV, unix.EPERM, bad, 0, 0, 0, 0, 0)},
		{name: "open by handle", stops: filter, run: reaches(unix.SYS_NAME_TO_HANDLE_AT, unix.EPERM, bad, 0, 0, 0, 0)},
		{name: "setns", stops: filter, run: reaches(unix.SYS_SETNS, unix.EPERM, bad, 0)},
		{name: "unshare users", stops: filter, run: unshareUsers},
		{name: "clone users", stops: filter, run: cloneUsers},
		{name: "mount", stops: append(caps, "landlock"), run: mountTmpfs},
		{name: "pivot_root", stops: caps, run: reaches(unix.SYS_PIVOT_ROOT, unix.EPERM, 0, 0)},
		{name: "chroot", stops: caps, run: func() error { return unix.Chroot("/usr") }, by: "root"},
		{name: "fsopen", stops: caps, run: reaches(unix.SYS_FSOPEN, unix.EPERM, 0, 0)},
		{name: "open_tree", stops: filter, run: reaches(unix.SYS_OPEN_TREE, unix.EPERM, bad, 0, 0)},
		{name: "move_mount", stops: caps, run: reaches(unix.SYS_MOVE_MOUNT, unix.EPERM, bad, 0, bad, 0, 0)},
		{name: "mount_setattr", stops: caps, run: reaches(unix.SYS_MOUNT_SETATTR, unix.EPERM, bad, 0, 0, 0, 0)},
		{name: "host name", stops: caps, run: func() error { return unix.Sethostname([]byte("mine")) }, by: "root"},
		{name: "move pages", stops: filter, run: reaches(unix.SYS_MOVE_PAGES, unix.EPERM, bad, 0, 0, 0, 0, 0)},
		{name: "fanotify", stops: filter, run: reaches(unix.SYS_FANOTIFY_MARK, unix.EPERM, bad, 0, 0, 0, 0)},
		{name: "advise another process", stops: filter, run: reaches(unix.SYS_PROCESS_MADVISE, unix.EPERM, bad, 0, 0, 0, 0)},
		{name: "reap another process", stops: filter, run: reaches(unix.SYS_PROCESS_MRELEASE, unix.EPERM, bad, 0)},
		{name: "fsconfig", stops: filter, run: reaches(unix.SYS_FSCONFIG, unix.EPERM, bad, 0, 0, 0, 0)},
		{name: "mbind", stops: filter, run: reaches(unix.SYS_MBIND, unix.EPERM, 0, 0, bad, 0, 0, bad)},
		{name: "memory policy", stops: filter, run: reaches(unix.SYS_SET_MEMPOLICY, unix.EPERM, bad, 0, 0)},
		{name: "migrate pages", stops: filter, run: reaches(unix.SYS_MIGRATE_PAGES, unix.EPERM, 1<<30, 0, 0, 0)},
		{name: "adjust the clock", stops: filter, run: reaches(unix.SYS_ADJTIMEX, unix.EPERM, 0)},
		{name: "adjust a clock", stops: filter, run: reaches(unix.SYS_CLOCK_ADJTIME, unix.EPERM, bad, 0)},
		{name: "quota", stops: filter, run: reaches(unix.SYS_QUOTACTL_FD, unix.EPERM, bad, 0, 0, 0)},
		{name: "type into a terminal", stops: filter, run: typeIntoTerminal},
		{name: "capabilities", stops: []string{"capabilities"}, run: hasCapabilities},
	}
}

func unshareUsers() error {
	runtime.LockOSThread()
	err := unix.Unshare(unix.CLONE_NEWUSER)
	if errors.Is(err, unix.EINVAL) { // the kernel checked: a process with threads may not
		return nil
	}
	return err
}

func cloneUsers() error {
	// An impossible combination of flags: the kernel refuses it, if the call
	// reaches it.
	_, _, errno := unix.RawSyscall6(unix.SYS_CLONE, unix.CLONE_NEWUSER|unix.CLONE_FS, 0, 0, 0, 0, 0)
	if errno == unix.EINVAL {
		return nil
	}
	return errno
}

func mountTmpfs() error {
	return unix.Mount("none", "/tmp", "tmpfs", 0, "")
}

func typeIntoTerminal() error {
	c := byte('x')
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&c)))
	if errno == unix.EPERM {
		return errno
	}
	return nil
}

func hasCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	if err := unix.Capget(&header, &now[0]); err != nil {
		return err
	}
	if now == ([2]unix.CapUserData{}) {
		return errors.New("none")
	}
	return nil
}

package killtest_test

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The child reports each system call that can make something durable to the
// parent, which decides its result: the kernel's user notification of seccomp.
// So real requests fail, from any code in the child: SQLite, the journal's
// blobs, the handles, the sandbox.

// trapped are these calls, and their actions.
var trapped = map[int32]action{
	unix.SYS_WRITE: {"write", 0, -1}, unix.SYS_PWRITE64: {"write", 0, -1}, unix.SYS_WRITEV: {"writev", 0, -1}, unix.SYS_PWRITEV: {"writev", 0, -1},
	unix.SYS_FSYNC: {"sync", 0, -1}, unix.SYS_FDATASYNC: {"sync", 0, -1}, unix.SYS_SYNCFS: {"sync", 0, -1},
	unix.SYS_OPENAT: {"open", 0, 1}, unix.SYS_OPENAT2: {"open", 0, 1},
	unix.SYS_RENAMEAT2: {"name", 0, 1}, unix.SYS_RENAMEAT: {"name", 0, 1}, unix.SYS_MKDIRAT: {"name", 0, 1},
	unix.SYS_LINKAT: {"name", 2, 3}, unix.SYS_SYMLINKAT: {"name", 1, 2}, unix.SYS_UNLINKAT: {"remove", 0, 1},
	unix.SYS_FTRUNCATE: {"room", 0, -1}, unix.SYS_FALLOCATE: {"room", 0, -1},
	unix.SYS_FCHMOD: {"attribute", 0, -1}, unix.SYS_FCHMODAT: {"attribute", 0, 1}, unix.SYS_UTIMENSAT: {"attribute", 0, 1},
	unix.SYS_FSETXATTR: {"attribute", 0, -1}, unix.SYS_COPY_FILE_RANGE: {"write", 2, -1},
}

// action is the effect of a call, and which of its arguments name the target: a
// descriptor, and a path from there unless that is negative.
type action struct {
	does     string
	fd, path int
}

const (
	filterListener = 1<<0 | 1<<3 | 1<<4 | 1<<5 // all threads, with a listener, and only a death interrupts
	notifyReceive  = 0xc0502100
	notifySend     = 0xc0182101
	retNotify      = 0x7fc00000
	letItBe        = 1 // the flag of a response
)

// notice and verdict are the kernel's seccomp_notif and seccomp_notif_resp.
type notice struct {
	ID         uint64
	Pid, Flags uint32
	Nr         int32
	Arch       uint32
	At         uint64
	Args       [6]uint64
}

type answer struct {
	ID    uint64
	Value int64
	Error int32
	Flags uint32
}

// reportCalls makes the kernel report all trapped calls of this process, and
// sends the listener to the parent.
func reportCalls(to int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	prog := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	for nr := range trapped {
		prog = append(prog, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 0, Jf: 1, K: uint32(nr)},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: retNotify})
	}
	prog = append(prog, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, filterListener, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return fmt.Errorf("%w: %w", errNoTrap, errno)
	}
	err := unix.Sendmsg(to, []byte{1}, unix.UnixRights(int(fd)), nil, 0)
	return errors.Join(err, unix.Close(int(fd)), unix.Close(to))
}

var errNoTrap = errors.New("this kernel reports no system calls")

// listener receives the listener of a child; negative if the child has ended
// before.
func listener(from int) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	n, size, _, _, err := unix.Recvmsg(from, make([]byte, 1), oob, 0)
	if err != nil || n == 0 {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:size])
	if err != nil {
		return -1, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}

// serveReports answers all reports until the child and all its processes have ended.
func serveReports(fd int, decide func(*notice) answer) error {
	for {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if ready[0].Revents&unix.POLLIN == 0 {
			if ready[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0 {
				return nil
			}
			continue
		}
		var n notice
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), notifyReceive, uintptr(unsafe.Pointer(&n))); errno != 0 {
			if errno == unix.ENOENT || errno == unix.EINTR { // it was killed meanwhile
				continue
			}
			return errno
		}
		a := decide(&n)
		a.ID = n.ID
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), notifySend, uintptr(unsafe.Pointer(&a))); errno != 0 && errno != unix.ENOENT {
			return errno
		}
	}
}

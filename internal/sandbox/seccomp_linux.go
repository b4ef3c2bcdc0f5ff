//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
	offArg0   = 16 // the low half of the first argument, on a little-endian machine
	offArg1   = 24
)

// What the filter answers.
const (
	retAllow = unix.SECCOMP_RET_ALLOW
	retEPERM = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	retNoSys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	retNoFam = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	retKill  = unix.SECCOMP_RET_KILL_PROCESS
)

// namespaceFlags are the flags of clone and unshare that make a namespace: in a
// new user namespace a program would have capabilities again.
const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// refused are the system calls that no program here has a use for and that reach
// past the other layers: other processes, the kernel's keys and programs, mounts,
// files by handle, clocks and modules. io_uring would do what a filter of system
// calls refuses.
func refused() []uint32 {
	return []uint32{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
		unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
		unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
		unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT,
		unix.SYS_REBOOT, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_SYSLOG,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
		unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE,
		unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES, unix.SYS_MBIND, unix.SYS_SET_MEMPOLICY,
	}
}

// unknown are the calls that are answered as if the kernel did not have them, so
// that a library falls back to one that the filter can look into.
func unknown() []uint32 {
	return []uint32{unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}
}

// lastKnown is the newest system call that was looked at when this list was made.
// What a later kernel adds is answered as if it were not there.
const lastKnown = 470

// filter is the program that the kernel runs at each system call: everything that
// is not refused is allowed, since other layers bound what a file, a signal or a
// limit can do.
func filter(network bool) []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: retKill}, // another calling convention has other numbers
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: lastKnown, SkipTrue: 1},
		bpf.RetConstant{Val: retNoSys}, // also x32, whose numbers begin far above
	}
	answer := func(numbers []uint32, with uint32) {
		for _, nr := range numbers {
			p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: 1}, bpf.RetConstant{Val: with})
		}
	}
	answer(append(refused(), refusedHere()...), retEPERM)
	answer(unknown(), retNoSys)
	look := func(nr uint32, off uint32, then ...bpf.Instruction) {
		then = append([]bpf.Instruction{bpf.LoadAbsolute{Off: off, Size: 4}}, then...)
		then = append(then, bpf.LoadAbsolute{Off: offNumber, Size: 4}) // for whoever looks next
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: uint8(len(then))})
		p = append(p, then...)
	}
	for _, nr := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		look(nr, offArg0,
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: namespaceFlags, SkipFalse: 1}, bpf.RetConstant{Val: retEPERM})
	}
	// Typing into, or pasting to, a terminal that the program was left.
	look(unix.SYS_IOCTL, offArg1,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipFalse: 1}, bpf.RetConstant{Val: retEPERM},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCLINUX, SkipFalse: 1}, bpf.RetConstant{Val: retEPERM})
	for _, nr := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		look(nr, offArg0, families(network)...)
	}
	return append(p, bpf.RetConstant{Val: retAllow})
}

// families refuses every kind of socket but those that are meant.
func families(network bool) []bpf.Instruction {
	allowed := []uint32{unix.AF_UNIX}
	if network {
		allowed = append(allowed, unix.AF_INET, unix.AF_INET6)
	}
	var p []bpf.Instruction
	for i, family := range allowed {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: family, SkipTrue: uint8(len(allowed) - i)})
	}
	return append(p, bpf.RetConstant{Val: retNoFam})
}

// loadFilter puts the filter on this thread, and on what it starts.
func loadFilter(network bool) error {
	raw, err := bpf.Assemble(filter(network))
	if err != nil {
		return err
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]} //nolint:gosec // a few hundred
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"slices"

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

// shared are the calls that reach what is not a file and has no namespace of its
// own, where the program has none.
func shared() []uint32 {
	return []uint32{
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
		unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
		unix.SYS_SETPRIORITY, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETAFFINITY, unix.SYS_IOPRIO_SET,
		unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM,
	}
}

// answers says of each system call that is not simply allowed what becomes of it:
// one answer, or a look at its arguments. paths allows sockets that lie in folders:
// where the host's are in sight no layer else keeps the program from them.
func answers(network, namespaces, paths bool) map[uint32][]bpf.Instruction {
	all := map[uint32][]bpf.Instruction{}
	with := func(numbers []uint32, then ...bpf.Instruction) {
		for _, nr := range numbers {
			all[nr] = then
		}
	}
	look := func(off uint32, then ...bpf.Instruction) []bpf.Instruction {
		return append([]bpf.Instruction{bpf.LoadAbsolute{Off: off, Size: 4}}, then...)
	}
	ret := func(value uint32) bpf.Instruction { return bpf.RetConstant{Val: value} }
	with(append(refused(), refusedHere()...), ret(retEPERM))
	with(unknown(), ret(retNoSys))
	with([]uint32{unix.SYS_CLONE, unix.SYS_UNSHARE},
		look(offArg0, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: namespaceFlags, SkipFalse: 1}, ret(retEPERM), ret(retAllow))...)
	// Typing into, or pasting to, a terminal that the program was left.
	with([]uint32{unix.SYS_IOCTL}, look(offArg1,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCLINUX, SkipFalse: 1}, ret(retEPERM), ret(retAllow))...)
	with([]uint32{unix.SYS_SOCKETPAIR}, look(offArg0, families(unix.AF_UNIX)...)...)
	if !namespaces {
		with(shared(), ret(retEPERM))
		// Another process, which would be one of the machine, has no limits to look at or set.
		with([]uint32{unix.SYS_PRLIMIT64}, look(offArg0, bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, ret(retEPERM), ret(retAllow))...)
	}
	var allowed []uint32
	if paths {
		allowed = append(allowed, unix.AF_UNIX)
	}
	if network {
		allowed = append(allowed, unix.AF_INET, unix.AF_INET6)
	}
	with([]uint32{unix.SYS_SOCKET}, look(offArg0, families(allowed...)...)...)
	return all
}

// families refuses every kind of socket but those that are meant.
func families(allowed ...uint32) (p []bpf.Instruction) {
	for i, family := range allowed {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: family, SkipTrue: uint8(len(allowed) - i)}) //nolint:gosec // three at most
	}
	return append(p, bpf.RetConstant{Val: retNoFam}, bpf.RetConstant{Val: retAllow})
}

// span is a row of system calls that are treated alike.
type span struct {
	first uint32
	then  []bpf.Instruction
}

// filter is the program that the kernel runs at each system call: everything that
// is not refused is allowed, since other layers bound what a file, a signal or a
// limit can do. It searches by halves: the kernel runs it for every number when it
// is loaded, and for many at each call.
func filter(network, namespaces, paths bool) []bpf.Instruction {
	all := answers(network, namespaces, paths)
	allow := []bpf.Instruction{bpf.RetConstant{Val: retAllow}}
	spans := []span{{0, allow}}
	for nr := uint32(0); nr <= lastKnown; nr++ {
		then, ok := all[nr]
		if !ok {
			then = allow
		}
		if !slices.Equal(then, spans[len(spans)-1].then) {
			spans = append(spans, span{nr, then})
		}
	}
	// Also x32, whose numbers begin far above.
	spans = append(spans, span{lastKnown + 1, []bpf.Instruction{bpf.RetConstant{Val: retNoSys}}})
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: retKill}, // another calling convention has other numbers
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}, halves(spans)...)
}

func halves(spans []span) []bpf.Instruction {
	if len(spans) == 1 {
		return spans[0].then
	}
	middle := len(spans) / 2
	low, high := halves(spans[:middle]), halves(spans[middle:])
	p := []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: spans[middle].first, SkipFalse: 1},
		bpf.Jump{Skip: uint32(len(low))}, //nolint:gosec // a few hundred
	}
	if len(low) <= 255 {
		p = []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: spans[middle].first, SkipTrue: uint8(len(low))}}
	}
	return append(append(p, low...), high...)
}

// assembled is the filter as the kernel takes it.
func assembled(network, namespaces, paths bool) ([]byte, error) {
	raw, err := bpf.Assemble(filter(network, namespaces, paths))
	if err != nil {
		return nil, err
	}
	var code []byte
	for _, r := range raw {
		code = binary.NativeEndian.AppendUint16(code, r.Op)
		code = append(code, r.Jt, r.Jf)
		code = binary.NativeEndian.AppendUint32(code, r.K)
	}
	return code, nil
}

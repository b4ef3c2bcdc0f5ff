//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"maps"
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
	offArg2   = 32
)

// The results of the filter. For a reported refusal, the kernel notifies the
// shim, which records it and returns the same number.
const (
	retAllow   = unix.SECCOMP_RET_ALLOW
	retNotify  = unix.SECCOMP_RET_USER_NOTIF
	retEPERM   = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	retNoSys   = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	retNoFam   = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	retNoProto = unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)
	retKill    = unix.SECCOMP_RET_KILL_PROCESS
)

// filterOptions describe what a program may reach beyond its files.
type filterOptions struct {
	network    bool // the host's network
	namespaces bool // it has its own namespaces
	loopback   bool // its own network with only a loopback
	paths      bool // sockets in folders: if the host's are visible, no other layer blocks them
	report     bool // refusals are reported to the shim
	moves      bool // renames and links wait for the shim, if it gets reports
}

// or returns the result of a refused call.
func (d filterOptions) or(refusal uint32) uint32 {
	if d.report {
		return retNotify
	}
	return refusal
}

// namespaceFlags are the flags of clone and unshare that create a namespace. In
// a new user namespace a program would have capabilities again.
const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// refused returns the system calls that no program here needs and that bypass
// the other layers. They concern other processes, the kernel's keys and
// programs, mounts, files by handle, clocks and modules. io_uring would bypass
// a filter of system calls. The names are for people.
func refused() map[uint32]string {
	all := map[uint32]string{
		unix.SYS_PTRACE: "ptrace", unix.SYS_PROCESS_VM_READV: "process_vm_readv",
		unix.SYS_PROCESS_VM_WRITEV: "process_vm_writev", unix.SYS_KCMP: "kcmp", unix.SYS_PIDFD_GETFD: "pidfd_getfd",
		unix.SYS_PROCESS_MADVISE: "process_madvise", unix.SYS_PROCESS_MRELEASE: "process_mrelease", unix.SYS_KEYCTL: "keyctl",
		unix.SYS_ADD_KEY: "add_key", unix.SYS_REQUEST_KEY: "request_key", unix.SYS_BPF: "bpf",
		unix.SYS_PERF_EVENT_OPEN: "perf_event_open", unix.SYS_USERFAULTFD: "userfaultfd",
		unix.SYS_FANOTIFY_INIT: "fanotify_init", unix.SYS_FANOTIFY_MARK: "fanotify_mark", unix.SYS_MOUNT: "mount",
		unix.SYS_UMOUNT2: "umount2", unix.SYS_PIVOT_ROOT: "pivot_root", unix.SYS_CHROOT: "chroot",
		unix.SYS_MOVE_MOUNT: "move_mount", unix.SYS_OPEN_TREE: "open_tree", unix.SYS_FSOPEN: "fsopen",
		unix.SYS_FSCONFIG: "fsconfig", unix.SYS_FSMOUNT: "fsmount", unix.SYS_FSPICK: "fspick",
		unix.SYS_MOUNT_SETATTR: "mount_setattr", unix.SYS_SETNS: "setns", unix.SYS_OPEN_BY_HANDLE_AT: "open_by_handle_at",
		unix.SYS_NAME_TO_HANDLE_AT: "name_to_handle_at", unix.SYS_SWAPON: "swapon", unix.SYS_SWAPOFF: "swapoff",
		unix.SYS_QUOTACTL: "quotactl", unix.SYS_QUOTACTL_FD: "quotactl_fd", unix.SYS_ACCT: "acct", unix.SYS_REBOOT: "reboot",
		unix.SYS_KEXEC_LOAD: "kexec_load", unix.SYS_KEXEC_FILE_LOAD: "kexec_file_load", unix.SYS_INIT_MODULE: "init_module",
		unix.SYS_FINIT_MODULE: "finit_module", unix.SYS_DELETE_MODULE: "delete_module", unix.SYS_SYSLOG: "syslog",
		unix.SYS_SETTIMEOFDAY: "settimeofday", unix.SYS_CLOCK_SETTIME: "clock_settime",
		unix.SYS_CLOCK_ADJTIME: "clock_adjtime", unix.SYS_ADJTIMEX: "adjtimex", unix.SYS_SETHOSTNAME: "sethostname",
		unix.SYS_SETDOMAINNAME: "setdomainname", unix.SYS_VHANGUP: "vhangup", unix.SYS_LOOKUP_DCOOKIE: "lookup_dcookie",
		unix.SYS_MOVE_PAGES: "move_pages", unix.SYS_MIGRATE_PAGES: "migrate_pages", unix.SYS_MBIND: "mbind",
		unix.SYS_SET_MEMPOLICY: "set_mempolicy",
	}
	maps.Copy(all, refusedHere())
	return all
}

// callName returns the name of a system call that the filter refuses, or "".
func callName(nr uint32) string {
	switch nr {
	case unix.SYS_CLONE:
		return "clone, with a namespace"
	case unix.SYS_UNSHARE:
		return "unshare, with a namespace"
	case unix.SYS_IOCTL:
		return "ioctl, on a terminal"
	case unix.SYS_PRLIMIT64:
		return "prlimit64, of another process"
	}
	return refused()[nr]
}

// moving returns the calls that an overlay refuses, or that it handles
// differently from other file systems.
func moving() []uint32 {
	return append(movingHere(), unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT)
}

// unknown returns the calls that fail as if the kernel did not have them, so
// that a library uses one that the filter can check.
func unknown() []uint32 {
	return []uint32{unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}
}

// lastKnown is the newest system call at the time of this list. Later ones fail
// as if the kernel did not have them.
const lastKnown = 470

// shared returns the calls on objects that are not files and that a program
// without its own namespace shares.
func shared() []uint32 {
	return []uint32{
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
		unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
		unix.SYS_SETPRIORITY, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETAFFINITY, unix.SYS_IOPRIO_SET,
		unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM,
	}
}

// answers returns the result of each system call that is not simply allowed: a
// fixed one, or a check of its arguments.
func (d filterOptions) answers() map[uint32][]bpf.Instruction {
	all := map[uint32][]bpf.Instruction{}
	with := func(numbers []uint32, then ...bpf.Instruction) {
		for _, nr := range numbers {
			all[nr] = then
		}
	}
	no := ret(d.or(retEPERM))
	for nr := range refused() {
		with([]uint32{nr}, no)
	}
	with(unknown(), ret(retNoSys))
	with([]uint32{unix.SYS_CLONE, unix.SYS_UNSHARE},
		load(offArg0, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: namespaceFlags, SkipFalse: 1}, no, ret(retAllow))...)
	// Typing into, or pasting to, an inherited terminal.
	with([]uint32{unix.SYS_IOCTL}, load(offArg1, slices.Concat(when(unix.TIOCSTI, no), when(unix.TIOCLINUX, no), always(retAllow))...)...)
	with([]uint32{unix.SYS_SOCKETPAIR}, load(offArg0, slices.Concat(when(unix.AF_UNIX, ret(retAllow)), always(d.or(retNoFam)))...)...)
	if !d.namespaces {
		with(shared(), no)
		// Without a namespace, another process belongs to the machine: its
		// limits must not be read or set.
		with([]uint32{unix.SYS_PRLIMIT64}, load(offArg0, slices.Concat(when(0, ret(retAllow)), always(d.or(retEPERM)))...)...)
	}
	with([]uint32{unix.SYS_SOCKET}, d.socket()...)
	if d.report && d.moves {
		with(moving(), ret(retNotify))
	}
	return all
}

// socket allows only the intended kinds of sockets.
func (d filterOptions) socket() []bpf.Instruction {
	allow, no := always(retAllow), always(d.or(retNoFam))
	var p []bpf.Instruction
	if d.paths {
		p = append(p, when(unix.AF_UNIX, allow...)...)
	}
	switch {
	case d.network:
		p = append(p, when(unix.AF_INET, allow...)...)
		p = append(p, when(unix.AF_INET6, allow...)...)
	case d.loopback:
		// TCP and UDP only. Programs try MPTCP first and continue without it,
		// so that is not reported.
		kinds := load(offArg1, slices.Concat([]bpf.Instruction{bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf}},
			when(unix.SOCK_STREAM, load(offArg2, slices.Concat(when(0, allow...), when(unix.IPPROTO_TCP, allow...), when(unix.IPPROTO_MPTCP, ret(retNoProto)), no)...)...),
			when(unix.SOCK_DGRAM, load(offArg2, slices.Concat(when(0, allow...), when(unix.IPPROTO_UDP, allow...), no)...)...), no)...)
		p = append(p, when(unix.AF_INET, kinds...)...)
		p = append(p, when(unix.AF_INET6, kinds...)...)
		// Listing the interfaces needs it. Changes need a capability.
		p = append(p, when(unix.AF_NETLINK, load(offArg2, slices.Concat(when(unix.NETLINK_ROUTE, allow...), no)...)...)...)
	}
	return load(offArg0, append(p, no...)...)
}

// load loads half an argument for a check.
func load(off uint32, then ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.LoadAbsolute{Off: off, Size: 4}}, then...)
}

// when returns instructions for one value of the loaded half. They must end
// with a result.
func when(value uint32, then ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: value, SkipFalse: uint8(len(then))}}, then...) //nolint:gosec // a few
}

func ret(value uint32) bpf.Instruction { return bpf.RetConstant{Val: value} }

func always(value uint32) []bpf.Instruction { return []bpf.Instruction{ret(value)} }

// syscallRange is a range of system calls with the same result.
type syscallRange struct {
	first uint32
	then  []bpf.Instruction
}

// filter returns the program that the kernel runs at each system call. It
// allows every call that it does not refuse, because other layers bound files,
// signals and limits. It uses binary search: the kernel runs it for every
// number when it loads the filter, and often after that.
func (d filterOptions) filter() []bpf.Instruction {
	all, allow := d.answers(), always(retAllow)
	spans := []syscallRange{{0, allow}}
	for nr := uint32(0); nr <= lastKnown; nr++ {
		then, ok := all[nr]
		if !ok {
			then = allow
		}
		if !slices.Equal(then, spans[len(spans)-1].then) {
			spans = append(spans, syscallRange{nr, then})
		}
	}
	// This includes x32, whose numbers are far above.
	spans = append(spans, syscallRange{lastKnown + 1, []bpf.Instruction{bpf.RetConstant{Val: retNoSys}}})
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: retKill}, // another calling convention has other numbers
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}, halves(spans)...)
}

func halves(spans []syscallRange) []bpf.Instruction {
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

// assembled returns the filter in the kernel's format.
func assembled(d filterOptions) ([]byte, error) {
	raw, err := bpf.Assemble(d.filter())
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

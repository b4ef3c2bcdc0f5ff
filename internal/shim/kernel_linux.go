//go:build amd64 || arm64

package shim

import (
	"syscall"
	"unsafe"
)

// The structures of system calls. A test compares their sizes and offsets with
// golang.org/x/sys/unix.
type (
	capUserHeader struct {
		version uint32
		pid     int32
	}
	capUserData struct {
		effective, permitted, inheritable uint32
	}
	mountAttr struct {
		set, clear, propagation, userns uint64
	}
	openHow struct {
		flags, mode, resolve uint64
	}
	// notification is a system call that waits for its result.
	notification struct {
		id         uint64
		pid, flags uint32
		number     int32
		arch       uint32
		pointer    uint64
		args       [6]uint64
	}
	notificationAnswer struct {
		id    uint64
		value int64
		err   int32
		flags uint32
	}
	// interfaceFlags is struct ifreq with the flags of a network interface.
	interfaceFlags struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}
	pollFd struct {
		fd              int32
		events, revents int16
	}
	// landlockRulesetAttr has only the first fields: the kernel treats the
	// later ones as zero.
	landlockRulesetAttr struct {
		handledFS, handledNet, scoped uint64
	}
	landlockPathBeneathAttr struct {
		allowed uint64
		parent  int32
	}
)

// failed returns the error of a system call's number.
func failed(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

func prctl(option int, arg2, arg3 uintptr) error {
	_, _, errno := syscall.Syscall6(syscall.SYS_PRCTL, uintptr(option), arg2, arg3, 0, 0, 0)
	return failed(errno)
}

func capget(of *capUserHeader, data *[2]capUserData) error {
	_, _, errno := syscall.Syscall(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(of)), uintptr(unsafe.Pointer(data)), 0)
	return failed(errno)
}

func capset(of *capUserHeader, data *[2]capUserData) error {
	_, _, errno := syscall.Syscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(of)), uintptr(unsafe.Pointer(data)), 0)
	return failed(errno)
}

func closeRange(first, last uint, flags int) error {
	_, _, errno := syscall.Syscall(sysCloseRange, uintptr(first), uintptr(last), uintptr(flags))
	return failed(errno)
}

// mountSetattr changes a mount and, depending on flags, those below it.
func mountSetattr(path string, flags int, attr *mountAttr) error {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	at := atFDCWD
	_, _, errno := syscall.Syscall6(sysMountSetattr, uintptr(at), uintptr(unsafe.Pointer(p)), uintptr(flags),
		uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr), 0)
	return failed(errno)
}

// moveMount attaches a detached mount.
func moveMount(mount int, to string) error {
	p, err := syscall.BytePtrFromString(to)
	if err != nil {
		return err
	}
	empty, at := [1]byte{}, atFDCWD
	_, _, errno := syscall.Syscall6(sysMoveMount, uintptr(mount), uintptr(unsafe.Pointer(&empty)),
		uintptr(at), uintptr(unsafe.Pointer(p)), moveMountFEmptyPath, 0)
	return failed(errno)
}

func openat2(folder int, path string, how *openHow) (int, error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	fd, _, errno := syscall.Syscall6(sysOpenat2, uintptr(folder), uintptr(unsafe.Pointer(p)),
		uintptr(unsafe.Pointer(how)), unsafe.Sizeof(*how), 0, 0)
	return int(fd), failed(errno)
}

// fstatat describes a name in a folder, and follows no symbolic link.
func fstatat(folder int, name string, is *syscall.Stat_t) error {
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall6(sysFstatat, uintptr(folder), uintptr(unsafe.Pointer(p)),
		uintptr(unsafe.Pointer(is)), atSymlinkNofollow, 0, 0)
	return failed(errno)
}

// setTimes sets access and modification time, and follows no symbolic link.
func setTimes(path string, times *[2]syscall.Timespec) error {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	at := atFDCWD
	_, _, errno := syscall.Syscall6(syscall.SYS_UTIMENSAT, uintptr(at), uintptr(unsafe.Pointer(p)),
		uintptr(unsafe.Pointer(times)), atSymlinkNofollow, 0, 0)
	return failed(errno)
}

func pidfdOpen(pid int) (int, error) {
	fd, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(pid), 0, 0)
	return int(fd), failed(errno)
}

func pidfdSendSignal(fd int, signal syscall.Signal) error {
	_, _, errno := syscall.Syscall6(sysPidfdSendSignal, uintptr(fd), uintptr(signal), 0, 0, 0, 0)
	return failed(errno)
}

// poll waits for one of some events on a descriptor.
func poll(fd int32, events int16) error {
	p := pollFd{fd: fd, events: events}
	_, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, 0, 0, 0, 0)
	return failed(errno)
}

func seccomp(flags uintptr, prog *syscall.SockFprog) (int, error) {
	fd, _, errno := syscall.Syscall(sysSeccomp, seccompSetModeFilter, flags, uintptr(unsafe.Pointer(prog)))
	return int(fd), failed(errno)
}

// hungUp reports whether the other end of a descriptor is closed.
func hungUp(fd int) bool {
	p := pollFd{fd: int32(fd), events: pollIn} //nolint:gosec // a descriptor
	var now syscall.Timespec
	_, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return errno == 0 && p.revents&pollHup != 0
}

// receiveNotification waits for a system call that the filter reports.
func receiveNotification(listener int, n *notification) error {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(listener), seccompIoctlNotifRecv, uintptr(unsafe.Pointer(n)))
	return failed(errno)
}

func answerNotification(listener int, a *notificationAnswer) error {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(listener), seccompIoctlNotifSend, uintptr(unsafe.Pointer(a)))
	return failed(errno)
}

// stillWaits reports whether a system call still waits for its result.
func stillWaits(listener int, n *notification) bool {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(listener), seccompIoctlNotifIDValid, uintptr(unsafe.Pointer(&n.id)))
	return errno == 0
}

// ioctl gets or sets the flags of a network interface.
func ioctl(fd int, request uintptr, of *interfaceFlags) error {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(of)))
	return failed(errno)
}

// landlockVersion returns the kernel's Landlock version, or 0 without Landlock.
func landlockVersion() int {
	v, _, errno := syscall.Syscall(sysLandlockCreateRuleset, 0, 0, landlockCreateRulesetVersion)
	if errno != 0 {
		return 0
	}
	return int(v)
}

func landlockCreateRuleset(attr *landlockRulesetAttr) (int, error) {
	fd, _, errno := syscall.Syscall(sysLandlockCreateRuleset, uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr), 0)
	return int(fd), failed(errno)
}

func landlockAddRule(ruleset int, rule *landlockPathBeneathAttr) error {
	_, _, errno := syscall.Syscall6(sysLandlockAddRule, uintptr(ruleset), landlockRulePathBeneath,
		uintptr(unsafe.Pointer(rule)), 0, 0, 0)
	return failed(errno)
}

func landlockRestrictSelf(ruleset int) error {
	_, _, errno := syscall.Syscall(sysLandlockRestrictSelf, uintptr(ruleset), 0, 0)
	return failed(errno)
}

//go:build amd64 || arm64

package shim

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dropCapabilities takes every capability from this thread, and the means of
// getting one again: all four sets and the bounding set. What it starts from
// then on has none either, whatever the user's id.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	for c := uintptr(0); ; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
			break // past the last one that the kernel knows
		} else if err != nil && hasCapability(unix.CAP_SETPCAP) {
			return fmt.Errorf("bounding set: %w", err)
		} else if err != nil {
			break // no way to get one from there either: no_new_privs is set
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none, now [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	if err := unix.Capget(&header, &now[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	if now != none {
		return fmt.Errorf("capabilities are left: %x", now)
	}
	return nil
}

func hasCapability(c uint) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	return unix.Capget(&header, &now[0]) == nil && now[c/32].Effective&(1<<(c%32)) != 0
}

// limit bounds the program. Limits are the shim's own too, and it stays well
// within them.
func (s *stage) limit() error {
	if s.leaveOut("limits") {
		return nil
	}
	for _, l := range []struct {
		name  string
		which int
		max   uint64
	}{
		{"core dumps", unix.RLIMIT_CORE, 0},
		{"open files", unix.RLIMIT_NOFILE, s.Limits.Files},
		{"processes", unix.RLIMIT_NPROC, s.Limits.Processes},
		{"file size", unix.RLIMIT_FSIZE, s.Limits.FileSize},
		{"private memory", unix.RLIMIT_DATA, s.Limits.Data},
		{"locked memory", unix.RLIMIT_MEMLOCK, 8 << 20},
		{"message queues", unix.RLIMIT_MSGQUEUE, 1 << 20},
		{"processor time", unix.RLIMIT_CPU, s.Limits.CPU},
	} {
		var had unix.Rlimit
		if err := unix.Prlimit(0, l.which, nil, &had); err != nil {
			return fmt.Errorf("limit of %s: %w", l.name, err)
		}
		to := min(l.max, had.Max) // never raised
		if err := unix.Prlimit(0, l.which, &unix.Rlimit{Cur: to, Max: to}, nil); err != nil {
			return fmt.Errorf("limit of %s: %w", l.name, err)
		}
	}
	return nil
}

// loadFilter puts the filter of system calls on this thread, and on what it
// starts.
func loadFilter(code []byte) error {
	const one = int(unsafe.Sizeof(unix.SockFilter{}))
	if len(code) == 0 || len(code)%one != 0 {
		return errors.New("no filter")
	}
	prog := unix.SockFprog{Len: uint16(len(code) / one), Filter: (*unix.SockFilter)(unsafe.Pointer(&code[0]))} //nolint:gosec // a few hundred
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}

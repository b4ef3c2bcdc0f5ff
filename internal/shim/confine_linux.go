//go:build amd64 || arm64

package shim

import (
	"errors"
	"slices"
	"strconv"
	"syscall"
	"unsafe"
)

// dropCapabilities removes every capability from this thread, and the means of
// getting one again: all four sets and the bounding set. Its later children
// have none either, for any user ID.
func dropCapabilities() error {
	if err := prctl(prCapAmbient, prCapAmbientClearAll, 0); err != nil {
		return failedAt("ambient capabilities", err)
	}
	for c := uintptr(0); ; c++ {
		if err := prctl(syscall.PR_CAPBSET_DROP, c, 0); errors.Is(err, syscall.EINVAL) {
			break // beyond the last capability of the kernel
		} else if err != nil && hasCapability(capSetPCap) {
			return failedAt("bounding set", err)
		} else if err != nil {
			break // cannot give one either: no_new_privs is set
		}
	}
	header := capUserHeader{version: linuxCapabilityVersion3}
	var none, now [2]capUserData
	if err := capset(&header, &none); err != nil {
		return failedAt("capset", err)
	}
	if err := capget(&header, &now); err != nil {
		return failedAt("capget", err)
	}
	if now != none {
		return errors.New("capabilities are left: [" + now[0].String() + " " + now[1].String() + "]")
	}
	return nil
}

// String returns the remaining capabilities of one half, in hexadecimal digits.
func (d capUserData) String() string {
	hex := func(n uint32) string { return strconv.FormatUint(uint64(n), 16) }
	return "{" + hex(d.effective) + " " + hex(d.permitted) + " " + hex(d.inheritable) + "}"
}

func hasCapability(c uint) bool {
	header := capUserHeader{version: linuxCapabilityVersion3}
	var now [2]capUserData
	return capget(&header, &now) == nil && now[c/32].effective&(1<<(c%32)) != 0
}

// limit sets the limits of the program. They also apply to the shim, which
// stays well within them.
func (s *sandboxBuild) limit() error {
	if s.leaveOut("limits") {
		return nil
	}
	for _, l := range []struct {
		name  string
		which int
		max   uint64
	}{
		{"core dumps", syscall.RLIMIT_CORE, 0},
		{"open files", syscall.RLIMIT_NOFILE, s.Limits.Files},
		{"processes", rlimitNproc, s.Limits.Processes},
		{"file size", syscall.RLIMIT_FSIZE, s.Limits.FileSize},
		{"private memory", syscall.RLIMIT_DATA, s.Limits.Data},
		{"locked memory", rlimitMemlock, 8 << 20},
		{"message queues", rlimitMsgqueue, 1 << 20},
		{"processor time", syscall.RLIMIT_CPU, s.Limits.CPU},
	} {
		var had syscall.Rlimit
		if err := syscall.Getrlimit(l.which, &had); err != nil {
			return failedAt("limit of "+l.name, err)
		}
		to := min(l.max, had.Max) // never raised
		// Package syscall raised the limit of open files at its start. It would
		// restore that for the program if it had not set this limit itself.
		if err := syscall.Setrlimit(l.which, &syscall.Rlimit{Cur: to, Max: to}); err != nil {
			return failedAt("limit of "+l.name, err)
		}
	}
	return nil
}

// filter installs the filter of system calls on this thread and its later
// children. It prefers a filter that reports refusals. If the kernel cannot do
// that (before Linux 5.19, or below another listener), it uses one that does
// not.
func (s *sandboxBuild) filter() error {
	// Without WAIT_KILLABLE_RECV a signal could end a call that is being
	// served.
	listener, err := -1, errors.New("left out")
	if !slices.Contains(s.Without, "supervisor") {
		listener, err = loadFilter(s.Filter, seccompFilterFlagNewListener|seccompFilterFlagWaitKillableRecv)
	}
	if err == nil {
		s.supervisor = &supervisor{listener: listener, roots: s.watched()}
		go s.watch(listener)
		return nil
	}
	s.alone = err.Error()
	_, err = loadFilter(s.Plain, 0)
	return err
}

func loadFilter(code []byte, flags uintptr) (listener int, err error) {
	const one = int(unsafe.Sizeof(syscall.SockFilter{}))
	if len(code) == 0 || len(code)%one != 0 {
		return -1, errors.New("no filter")
	}
	prog := syscall.SockFprog{Len: uint16(len(code) / one), Filter: (*syscall.SockFilter)(unsafe.Pointer(&code[0]))} //nolint:gosec // a few hundred
	return seccomp(flags, &prog)
}

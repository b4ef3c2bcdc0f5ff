//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"time"

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
		} else if err != nil {
			return fmt.Errorf("bounding set: %w", err)
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

// limit bounds the program. Limits are the shim's own too, and it stays well
// within them.
func (s *stage) limit() error {
	cpu := uint64((s.Limits.CPU + time.Second - 1) / time.Second) //nolint:gosec // positive
	for _, l := range []struct {
		name  string
		which int
		max   uint64
	}{
		{"core dumps", unix.RLIMIT_CORE, 0},
		{"open files", unix.RLIMIT_NOFILE, uint64(s.Limits.Files)},   //nolint:gosec // positive
		{"processes", unix.RLIMIT_NPROC, uint64(s.Limits.Processes)}, //nolint:gosec // positive
		{"file size", unix.RLIMIT_FSIZE, uint64(s.Limits.FileSize)},  //nolint:gosec // positive
		{"private memory", unix.RLIMIT_DATA, uint64(s.Limits.Data)},  //nolint:gosec // positive
		{"locked memory", unix.RLIMIT_MEMLOCK, 8 << 20},
		{"message queues", unix.RLIMIT_MSGQUEUE, 1 << 20},
		{"processor time", unix.RLIMIT_CPU, cpu},
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

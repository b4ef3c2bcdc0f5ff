//go:build unix

package agentguard

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks a file until it is closed or its process ends. It does not wait.
func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// isLocked reports whether another process has locked a file.
func isLocked(f *os.File) bool { return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil }

package sqlite

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// writeOut has the system begin to write a file out, and waits for nothing. The next sync
// of anything on the same disk makes it durable then: so power loss leaves the head file
// about one batch behind. It is a hint; elsewhere, and where it fails, the system writes
// within about half a minute.
func writeOut(f *os.File) {
	_ = unix.SyncFileRange(int(f.Fd()), 0, headSize, unix.SYNC_FILE_RANGE_WRITE)
}

// bootID tells one run of the system from another.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(id)), "")
}

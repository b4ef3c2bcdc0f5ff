package sqlite

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// writeOut makes the system start to write a file to disk, without waiting. The
// next sync on the same disk then makes it durable, so a power failure leaves
// the head file a few milliseconds of appends behind. It is a hint: on other systems, and if
// it fails, the system writes within about half a minute.
func writeOut(f *os.File) {
	_ = unix.SyncFileRange(int(f.Fd()), 0, headSize, unix.SYNC_FILE_RANGE_WRITE)
}

// bootID identifies one run of the system.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(id)), "")
}

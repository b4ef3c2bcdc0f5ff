package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

func syncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// processorTime returns the processor time of this process, garbage collection
// included.
func processorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// writtenBytes returns the number of bytes that this process has passed to
// write calls. ok is false if the system does not count them.
func writtenBytes() (n int64, ok bool) {
	counters, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, false
	}
	_, rest, ok := strings.Cut(string(counters), "wchar: ")
	if ok {
		_, err = fmt.Sscan(rest, &n)
	}
	return n, ok && err == nil
}

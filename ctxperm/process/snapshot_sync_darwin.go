package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncPlain gives the data of a file to the disk, which can still hold it in
// its own memory. (*os.File).Sync waits for the disk too, which takes long for
// many files.
func syncPlain(f *os.File) error { return unix.Fsync(int(f.Fd())) }

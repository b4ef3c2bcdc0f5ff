package sparse

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// hole asks the file system where the next data begins. It returns 0 at a final
// hole. A file whose file system cannot tell counts as a file without holes.
func hole(f *os.File) (int64, error) {
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	next, err := f.Seek(at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		next, err = f.Seek(0, io.SeekEnd)
	case err != nil:
		return 0, nil
	}
	if err == nil && next < at { // it was truncated meanwhile
		next, err = f.Seek(at, io.SeekStart)
	}
	return next - at, err
}

package sparse

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// hole asks the file system where data goes on. A file that ends in a hole has none any more.
// One whose file system does not know is taken for having no holes.
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
	if err == nil && next < at { // it was cut off meanwhile
		next, err = f.Seek(at, io.SeekStart)
	}
	return next - at, err
}

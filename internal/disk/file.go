//go:build !linux || portable

package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/remit-dev/remit/internal/sparse"
)

// openFile is a File on the real disk.
type openFile struct {
	file  *os.File
	name  string // as the caller gave it, relative to the root
	holes bool   // its file system reports holes reliably
}

func (f *openFile) Read(p []byte) (int, error) {
	n, err := f.file.Read(p)
	return n, f.relative(err)
}

func (f *openFile) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	return n, f.relative(err)
}

func (f *openFile) Skip(n int64) error {
	end, err := f.file.Seek(n, io.SeekCurrent)
	if err == nil {
		err = f.file.Truncate(end)
	}
	return f.relative(err)
}

// Hole skips the zeros that come next, if the file system reports them.
func (f *openFile) Hole() (int64, error) {
	if !f.holes {
		return 0, nil
	}
	n, err := sparse.File{File: f.file}.Hole()
	return n, f.relative(err)
}

func (f *openFile) Sync() error { return f.relative(f.file.Sync()) }

func (f *openFile) Close() error { return f.relative(f.file.Close()) }

func (f *openFile) Stat() (Info, error) {
	info, err := stat(f.file)
	_, info.Name = split(f.name)
	return info, f.relative(err)
}

// relative removes host paths, which the standard library puts into its errors.
func (f *openFile) relative(err error) error {
	if wrapped, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: wrapped.Op, Path: f.name, Err: wrapped.Err}
	}
	return err
}

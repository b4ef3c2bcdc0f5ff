//go:build !portable

package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// CloneTo makes an empty file share the content of this one, if the file system
// supports it and contains both. A write to one does not change the other.
func (f *openFile) CloneTo(to *os.File) error {
	return control(to, func(dest int) error {
		return control(f.file, func(src int) error { return unix.IoctlFileClone(dest, src) })
	})
}

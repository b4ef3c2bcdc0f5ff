//go:build !portable

package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// CloneTo makes an empty file share the content of this one, where the file system can
// and both are on it. Neither sees what is written to the other.
func (f *openFile) CloneTo(to *os.File) error {
	return control(to, func(dest int) error {
		return control(f.file, func(src int) error { return unix.IoctlFileClone(dest, src) })
	})
}

package disk

import (
	"io/fs"
	"strings"
)

// CheckPath returns nil for a clean relative path: valid UTF-8, elements
// separated by single slashes, none of them empty, "." or "..". Everything
// else is ErrPath: absolute and empty names, trailing slashes, NUL, and on
// Windows also what that system reads as another name. The single "." is
// refused too; methods that allow it say so. Length is left to the kernel.
func CheckPath(name string) error {
	if name == "." || !fs.ValidPath(name) || strings.IndexByte(name, 0) >= 0 || !hostPath(name) {
		return ErrPath
	}
	return nil
}

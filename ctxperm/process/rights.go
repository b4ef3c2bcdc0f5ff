package process

import (
	"fmt"
	"io/fs"
	"path"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/sandbox"
)

// withinReach refuses changes that an owner without further privileges could
// not make, or not revert, because of the bits that a program left.
func withinReach(root disk.Root, all []sandbox.OverlayEntry) error {
	left := map[string]fs.FileMode{}
	for _, w := range all {
		if w.Name == "." { // keeps its bits
			continue
		}
		what := ""
		switch {
		case w.Kind == sandbox.File && w.Mode&0o400 == 0:
			what = "read it"
		case w.Kind == sandbox.Folder && w.Mode&0o500 != 0o500:
			what = "look into it"
		}
		if what != "" {
			return fmt.Errorf("run: %w: the program left %q with the bits %04o: its owner may not %s, so the change could not be reverted; let the program keep that right, or remove the file",
				ctxperm.ErrInvalid, w.Name, w.Mode.Perm(), what)
		}
		if w.Kind == sandbox.Folder {
			left[w.Name] = w.Mode
		}
	}
	for _, w := range all {
		dir := path.Dir(w.Name)
		if dir == "." || !moves(root, w) {
			continue
		}
		bits, known := left[dir]
		if there, err := root.Lstat(dir); err == nil && there.Type == disk.TypeDir && (!known || w.Kind == sandbox.Deleted) {
			bits, known = there.Perm, true // removals come before folders get their bits
		}
		if known && bits&0o300 != 0o300 {
			return fmt.Errorf("run: %w: %q was written, but its owner may not write in its folder, which has the bits %04o; remit writes there as the owner, so keep the folder writable before and after the program",
				ctxperm.ErrInvalid, w.Name, bits.Perm())
		}
	}
	return nil
}

// moves reports whether a name is added or removed. An overlay also lists files
// that were only opened, and the parents of written files.
func moves(root disk.Root, w sandbox.OverlayEntry) bool {
	there, err := root.Lstat(w.Name)
	if err != nil {
		return w.Kind != sandbox.Deleted
	}
	switch w.Kind {
	case sandbox.Folder:
		return there.Type != disk.TypeDir || w.Replaced
	case sandbox.File:
		return there.Type != disk.TypeFile || there.Perm != w.Mode || !there.Mtime.Equal(w.Mtime)
	case sandbox.Link:
		return there.Type != disk.TypeLink || !there.Mtime.Equal(w.Mtime)
	case sandbox.Deleted:
		return true
	default:
		return false
	}
}

package process

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/sandbox"
)

// leftOut says what of a program's work in a root is not going to be applied.
func (h *handle) leftOut(dir, name string, all []sandbox.Written) (out []string) {
	root := h.call.Config().Roots[name]
	for _, w := range all {
		switch {
		case w.Kind == sandbox.Other:
			out = append(out, fmt.Sprintf("%s/%s: a socket, a pipe or a device", name, w.Name))
		case w.Name == ".":
			out = append(out, ofRoot(root, name, w)...)
		case w.Kind == sandbox.File && w.Mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
			out = append(out, fmt.Sprintf("%s/%s: the setuid and setgid bits, which no program gives", name, w.Name))
		}
	}
	return append(out, h.owners(root, dir, name, all)...)
}

// ofRoot is what a program did to a root's own folder: whoever configured the root says
// what that is like.
func ofRoot(root disk.Root, name string, w sandbox.Written) (out []string) {
	is, err := root.Lstat(".")
	if err == nil && is.Perm != w.Mode {
		out = append(out, fmt.Sprintf("%s: the bits %04o of the root itself, which keeps %04o", name, w.Mode.Perm(), is.Perm.Perm()))
	}
	had, err := root.Xattrs(".")
	if err == nil && !maps.EqualFunc(had, w.Xattrs, slices.Equal) {
		out = append(out, name+": attributes of the root itself, which keeps those that it has")
	}
	return out
}

// owners says what belonged to others and is going to belong to whoever runs remit: what
// is written is a new file. Programs give nothing away by themselves, since they run
// without the right to. Only the root user's change what belongs to others.
func (h *handle) owners(root disk.Root, dir, name string, all []sandbox.Written) []string {
	ours := owner{os.Geteuid(), os.Getegid()}
	if ours.uid != 0 {
		return nil
	}
	n, first := 0, ""
	for _, w := range all {
		is, ok := h.owner(dir, w)
		if !ok || is == ours || is.uid == ours.uid && inherits(root, w.Name) {
			continue
		}
		if n++; n == 1 {
			first = fmt.Sprintf("%q of %d:%d", w.Name, is.uid, is.gid)
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: the owners of %d names, such as %s, which belong to whoever runs remit from now on, %d:%d",
		name, n, first, ours.uid, ours.gid)}
}

// owner is to whom what a program wrote belonged: the file in its place, or the one that
// it was elsewhere, which an overlay knows. Folders that stay keep their owners.
func (h *handle) owner(dir string, w sandbox.Written) (owner, bool) {
	if w.Name == "." || w.Kind != sandbox.File && w.Kind != sandbox.Folder {
		return owner{}, false
	}
	if is, there := ownerAt(filepath.Join(dir, filepath.FromSlash(w.Name))); there {
		return is, w.Kind == sandbox.File || w.Replaced
	}
	f, err := h.open(dir, w.Name)
	if err != nil {
		return owner{}, false
	}
	defer func() { _ = f.Close() }()
	return ownerOf(f)
}

type owner struct{ uid, gid int }

// inherits reports whether what is new in a folder gets the folder's group.
func inherits(root disk.Root, name string) bool {
	is, err := root.Lstat(path.Dir(name))
	return err == nil && is.Perm&fs.ModeSetgid != 0
}

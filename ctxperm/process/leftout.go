package process

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/sandbox"
)

// leftOut says what of a program's work in a root is not going to be applied.
func (h *handle) leftOut(name string, all []sandbox.Written) (out []string) {
	root := h.call.Config().Roots[name]
	for _, w := range all {
		switch {
		case w.Kind == sandbox.Other:
			out = append(out, plainly(name, w.Name)+": a socket, a pipe or a device")
		case w.Name == ".":
			out = append(out, ofRoot(root, name, w)...)
		case w.Kind == sandbox.File && w.Xattrs[disk.XattrCapability] != nil && !h.there(root, w):
			out = append(out, plainly(name, w.Name)+": its capabilities, which no program gives")
		case w.Kind == sandbox.File && w.Mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
			out = append(out, plainly(name, w.Name)+": the setuid and setgid bits, which no program gives")
		}
	}
	return out
}

// plainly is a name as people read it. One with characters that a terminal or a
// page would not show is quoted: without them it could be another file's.
func plainly(root, name string) string {
	at := root + "/" + name
	if strconv.Quote(at) != `"`+at+`"` {
		return strconv.Quote(at)
	}
	return at
}

// ofRoot is what a program did to a root's own folder: whoever configured the root says
// what that is like.
func ofRoot(root disk.Root, name string, w sandbox.Written) (out []string) {
	is, err := root.Lstat(".")
	if err == nil && is.Perm != w.Mode {
		out = append(out, fmt.Sprintf("%s: the bits %04o of the root itself, which keeps %04o", name, w.Mode.Perm(), is.Perm.Perm()))
	}
	if err == nil && is.Owner != ownerOf(w) {
		out = append(out, fmt.Sprintf("%s: the owner of the root itself, which keeps its own", name))
	}
	had, err := root.Xattrs(".")
	maps.DeleteFunc(had, func(key string, _ []byte) bool { return !visible(key) })
	if err == nil && !maps.EqualFunc(had, versionOf("dir", w).Xattrs, slices.Equal) {
		out = append(out, name+": attributes of the root itself, which keeps those that it has")
	}
	return out
}

// there reports whether a root has a file by the name of what a program wrote.
func (h *handle) there(root disk.Root, w sandbox.Written) bool {
	is, err := root.Lstat(w.Name)
	return err == nil && is.Type == disk.TypeFile
}

// visible reports whether the overlay shows a program an attribute of the root itself.
func visible(key string) bool { return (disk.Self{}).Sets(key) }

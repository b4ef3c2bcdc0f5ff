package process

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/sandbox"
)

// leftOut returns the program's changes in a root that the runtime will not
// apply.
func (h *runHandle) leftOut(dir, name string, all []sandbox.OverlayEntry) (out []string) {
	root := h.call.Config().Roots[name]
	kept := map[uint64]bool{} // files that already had these privileges, by inode
	for _, w := range all {
		if privileged(w) && h.unchanged(dir, root, w) {
			kept[w.Ino] = true
		}
	}
	for _, w := range all {
		switch {
		case w.Kind == sandbox.Other:
			out = append(out, plainly(name, w.Name)+": a socket, a pipe or a device")
		case w.Kind == sandbox.Deleted:
			out = append(out, undeleted(root, name, w.Name)...)
		case w.Name == ".":
			out = append(out, ofRoot(root, name, w)...)
		case w.Kind == sandbox.Link && onlyLater(root, w):
			out = append(out, plainly(name, w.Name)+": the time of the symbolic link, which keeps the one that it has")
		case w.Kind == sandbox.Folder && w.Replaced:
			out = append(out, undeletedIn(root, name, w.Name)...)
		case w.Links > 1 && !w.Same && h.alike(dir, root, w):
			out = append(out, plainly(name, w.Name)+": the link: the file that is there is just like the one that it was to be another name of, and stays a file of its own")
		case !privileged(w) || kept[w.Ino]:
		case w.Xattrs[disk.XattrCapability] != nil:
			out = append(out, plainly(name, w.Name)+": its capabilities, which no program gives")
		default:
			out = append(out, plainly(name, w.Name)+": the setuid and setgid bits, which no program gives")
		}
	}
	return out
}

// undeleted returns what stays of a deleted name: sockets, pipes and devices,
// which could not be made again, and the folders above them.
func undeleted(root disk.Root, name, deleted string) (out []string) {
	switch is, err := root.Lstat(deleted); {
	case err != nil:
		return nil
	case is.Type == disk.TypeOther:
		return []string{plainly(name, deleted) + ": the deletion of a socket, a pipe or a device, which a revert could not make again"}
	case is.Type != disk.TypeDir:
		return nil
	}
	return undeletedIn(root, name, deleted)
}

// undeletedIn is undeleted for all entries of a folder.
func undeletedIn(root disk.Root, name, dir string) (out []string) {
	found, err := root.ReadDir(dir)
	if err != nil { // the change set meets it too, and refuses
		return nil
	}
	for _, e := range found {
		if e.Type == disk.TypeOther || e.Type == disk.TypeDir {
			out = append(out, undeleted(root, name, path.Join(dir, e.Name))...)
		}
	}
	return out
}

// plainly returns a name in readable form. It quotes a name with characters
// that a terminal or a page does not show, because it could look like another
// name.
func plainly(root, name string) string {
	return plainText(root + "/" + name)
}

// plainText returns a text that a program chose, quoted if a terminal or a page
// does not show all of it.
func plainText(text string) string {
	if strconv.Quote(text) != `"`+text+`"` {
		return strconv.Quote(text)
	}
	return text
}

// ofRoot returns the changes to a root's own folder. The configuration of the
// root determines its attributes.
func ofRoot(root disk.Root, name string, w sandbox.OverlayEntry) (out []string) {
	is, err := root.Lstat(".")
	if err == nil && is.Perm != w.Mode {
		out = append(out, fmt.Sprintf("%s: the bits %04o of the root itself, which keeps %04o", name, w.Mode.Perm(), is.Perm.Perm()))
	}
	if err == nil && is.Owner != ownerOf(w) {
		out = append(out, fmt.Sprintf("%s: the owner of the root itself, which keeps its own", name))
	}
	had, err := root.Xattrs(".")
	maps.DeleteFunc(had, func(key string, _ []byte) bool { return !visible(key) })
	if err == nil && !maps.EqualFunc(had, versionOf("dir", root, w).Xattrs, slices.Equal) {
		out = append(out, name+": attributes of the root itself, which keeps those that it has")
	}
	return out
}

// privileged reports whether a file has bits or attributes to run as another
// user, or with capabilities.
func privileged(w sandbox.OverlayEntry) bool {
	return w.Kind == sandbox.File && (w.Mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 || w.Xattrs[disk.XattrCapability] != nil)
}

// unchanged reports whether a written file still equals the one of the root in
// owner, content and privileges.
func (h *runHandle) unchanged(dir string, root disk.Root, w sandbox.OverlayEntry) bool {
	is, err := root.Lstat(w.Name)
	if err != nil || !w.Same || is.Owner != ownerOf(w) || w.Mode&^is.Perm&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return false
	}
	had, err := root.Xattrs(w.Name)
	return err == nil && bytes.Equal(w.Xattrs[disk.XattrCapability], had[disk.XattrCapability]) && h.sameContent(dir, root, w, is)
}

// onlyLater reports whether a symbolic link equals the one of the root, except
// for its time.
func onlyLater(root disk.Root, w sandbox.OverlayEntry) bool {
	is, err := root.Lstat(w.Name)
	if err != nil || is.Type != disk.TypeLink || is.Owner != ownerOf(w) || is.Mtime.Equal(w.Mtime) {
		return false
	}
	target, err := root.Readlink(w.Name)
	return err == nil && target == w.Target
}

// alike reports whether a new file equals the different file of the root.
func (h *runHandle) alike(dir string, root disk.Root, w sandbox.OverlayEntry) bool {
	is, err := root.Lstat(w.Name)
	return err == nil && w.Kind == sandbox.File && is.Owner == ownerOf(w) && is.Perm == w.Mode && is.Mtime.Equal(w.Mtime) && h.sameContent(dir, root, w, is)
}

func (h *runHandle) sameContent(dir string, root disk.Root, w sandbox.OverlayEntry, is disk.Info) bool {
	if is.Type != disk.TypeFile || is.Size != w.Size {
		return false
	}
	was, err := root.Open(w.Name)
	if err != nil {
		return false
	}
	defer func() { _ = was.Close() }()
	now, err := h.open(dir, w.Name)
	if err != nil {
		return false
	}
	defer func() { _ = now.Close() }()
	before, err := digest(was)
	after, errNow := digest(now)
	return err == nil && errNow == nil && before == after
}

func digest(r io.Reader) (canon.Digest, error) {
	h := canon.NewHash()
	_, err := io.Copy(h, r)
	return h.Digest(), err
}

// visible reports whether the overlay shows a program an attribute of the root
// itself.
func visible(key string) bool { return (disk.Self{}).Sets(key) }

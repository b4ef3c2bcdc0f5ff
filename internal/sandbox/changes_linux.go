//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Changes returns the entries that a program wrote in a root with an overlay,
// folders before their entries and names sorted as bytes. Call it after Wait.
func (p *Process) Changes(root string) ([]OverlayEntry, error) {
	if n, ok := p.native[root]; ok {
		return n.changes()
	}
	upper, ok := p.uppers[root]
	if !ok {
		return nil, fmt.Errorf("%s is not a root that was seen through an overlay", root)
	}
	all, err := written(upper)
	locked := map[uint64]fs.FileMode{} // by inode: the shim changed one of its names
	for _, w := range all {
		if mode, ok := p.locked[root+"\x00"+w.Name]; ok {
			locked[w.Ino] = modeOf(mode)
		}
	}
	for i, w := range all {
		all[i].Same = w.Copied && w.Kind == File || w.Kind == Folder && !w.Replaced // or another one that was moved here, which looks the same
		if mode, ok := locked[w.Ino]; ok {
			all[i].Mode = mode
		}
	}
	return all, err
}

// Open opens the content of a file from Changes. It follows no symbolic links
// on the path.
func (p *Process) Open(root, name string) (*os.File, error) {
	if n, ok := p.native[root]; ok {
		return n.open(name)
	}
	upper, ok := p.uppers[root]
	if !ok {
		return nil, fmt.Errorf("%s is not a root that was seen through an overlay", root)
	}
	return openBelow(upper, name, unix.O_RDONLY|unix.O_NONBLOCK)
}

func openBelow(upper *os.File, name string, flags uint64) (*os.File, error) {
	how := unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	fd, err := unix.Openat2(int(upper.Fd()), name, &how)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// stride is the number of folder levels after which a walk starts from a new
// descriptor. So it needs few descriptors, and a deeper name costs no more.
const stride = 32

// written walks an upper folder. The overlay marks a replaced folder only at
// the topmost replaced folder.
func written(upper *os.File) (all []OverlayEntry, err error) {
	var walk func(from *os.File, rel, name string, depth int, replaced bool) error
	walk = func(from *os.File, rel, name string, depth int, replaced bool) error {
		w, err := look(from, rel, userOverlayPrefix)
		if err != nil {
			return err
		}
		w.Name = name
		w.Replaced = w.Kind == Folder && (w.Replaced || replaced)
		all = append(all, w)
		if w.Kind != Folder {
			return nil
		}
		names, err := readNames(from, rel)
		if err != nil {
			return err
		}
		if depth > 0 && depth%stride == 0 {
			if from, err = openBelow(from, rel, unix.O_PATH|unix.O_DIRECTORY); err != nil {
				return err
			}
			defer func() { _ = from.Close() }()
			rel = "."
		}
		for _, n := range names {
			if err := walk(from, path.Join(rel, n), path.Join(name, n), depth+1, w.Replaced); err != nil {
				return err
			}
		}
		return nil
	}
	return all, walk(upper, ".", ".", 0, false)
}

func readNames(upper *os.File, name string) ([]string, error) {
	dir, err := openBelow(upper, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// Look describes one name of a folder without an overlay, after a program wrote
// in the folder.
func Look(dir *os.File, name string) (OverlayEntry, error) { return look(dir, name, "") }

// userOverlayPrefix is the prefix of the attributes in which an overlay of a user
// namespace keeps its metadata, beside those of programs.
const userOverlayPrefix = "user.overlay."

// look describes one name of a folder. Attributes that begin with books are the
// overlay's metadata. Books is empty without an overlay.
func look(upper *os.File, name, books string) (OverlayEntry, error) {
	pin, err := openBelow(upper, name, unix.O_PATH)
	if err != nil {
		return OverlayEntry{}, err
	}
	defer func() { _ = pin.Close() }()
	var is unix.Stat_t
	if err := unix.Fstat(int(pin.Fd()), &is); err != nil {
		return OverlayEntry{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	w := OverlayEntry{
		Name: name, Kind: kindOf(is), Mode: modeOf(is.Mode), Mtime: time.Unix(is.Mtim.Unix()).UTC(), Size: is.Size,
		HiddenPrefix: books, Ino: is.Ino, Links: uint64(is.Nlink), Dev: uint64(is.Rdev), Uid: is.Uid, Gid: is.Gid, //nolint:unconvert // other widths elsewhere
	}
	switch w.Kind {
	case Link:
		w.Target, err = readlink(pin)
	case File, Folder:
		err = w.attributes(pin, books)
	case Deleted, Other:
	}
	if err != nil {
		return OverlayEntry{}, &fs.PathError{Op: "look at", Path: name, Err: err}
	}
	return w, nil
}

func kindOf(is unix.Stat_t) Kind {
	switch is.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return File
	case unix.S_IFDIR:
		return Folder
	case unix.S_IFLNK:
		return Link
	case unix.S_IFCHR:
		if is.Rdev == 0 {
			return Deleted
		}
	}
	return Other
}

func modeOf(raw uint32) fs.FileMode {
	m := fs.FileMode(raw & 0o777)
	for bit, mode := range map[uint32]fs.FileMode{
		unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky,
	} {
		if raw&bit != 0 {
			m |= mode
		}
	}
	return m
}

func readlink(pin *os.File) (string, error) {
	buf := make([]byte, 4096) // no link is longer
	n, err := unix.Readlinkat(int(pin.Fd()), "", buf)
	return string(buf[:max(n, 0)]), err
}

// attributes reads the attributes of a file or folder, and the overlay's
// metadata in them.
func (w *OverlayEntry) attributes(pin *os.File, prefix string) error {
	at := fmt.Sprintf("/proc/self/fd/%d", pin.Fd()) // an attribute needs a path, or a file open for reading
	names, err := sized(func(buf []byte) (int, error) { return unix.Listxattr(at, buf) })
	if err != nil {
		if errors.Is(err, unix.ENOTSUP) {
			return nil
		}
		return err
	}
	for name := range bytes.SplitSeq(names, []byte{0}) {
		key := string(name)
		if key == "" {
			continue
		}
		value, err := sized(func(buf []byte) (int, error) { return unix.Getxattr(at, key, buf) })
		if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EOPNOTSUPP) { // not for this process
			continue
		}
		if err != nil {
			return err
		}
		if rest, books := strings.CutPrefix(key, prefix); books && prefix != "" {
			w.Replaced = w.Replaced || rest == "opaque" && string(value) == "y"
			w.Copied = w.Copied || rest == "origin"
			if key = w.escaped(rest); key == "" {
				continue
			}
		}
		if w.Xattrs == nil {
			w.Xattrs = map[string][]byte{}
		}
		w.Xattrs[key] = value
	}
	return nil
}

// escaped returns the program's name of an attribute that the overlay renamed,
// or "" for the overlay's own.
func (*OverlayEntry) escaped(rest string) string {
	if rest, theirs := strings.CutPrefix(rest, "overlay."); theirs {
		return "user.overlay." + rest
	}
	return ""
}

// sized calls get with a buffer that is large enough.
func sized(get func([]byte) (int, error)) ([]byte, error) {
	for size := 256; ; size *= 4 {
		buf := make([]byte, size)
		n, err := get(buf)
		if errors.Is(err, unix.ERANGE) && size < 1<<20 {
			continue
		}
		return buf[:max(n, 0)], err
	}
}

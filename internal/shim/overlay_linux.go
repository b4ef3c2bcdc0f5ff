//go:build amd64 || arm64

package shim

import (
	"errors"
	"slices"
	"strconv"
	"syscall"
)

// overlay shows a root through an overlay. A root to read gets an overlay too:
// sockets in it are then unreachable, and masked names are absent.
func (s *sandboxBuild) overlay(i int, r Root, lower int, is syscall.Stat_t) error {
	options := "userxattr,lowerdir=" + descriptorPath(lower)
	if r.View != Overlay || len(r.Masked) > 0 { // an overlay has an upper folder or two lower ones
		hidden := layers + "/" + strconv.Itoa(i)
		if err := mask(host, hidden, lower, is, r.Masked); err != nil {
			return failedAt("masking", err)
		}
		options = "userxattr,lowerdir=" + hidden + ":" + descriptorPath(lower)
	}
	if r.View == Overlay {
		upper, work, err := s.upper(i, r, lower, is)
		if err != nil {
			return failedAt("the upper folder", err)
		}
		// Without volatile the kernel would sync each file that is copied up.
		options += ",volatile,upperdir=" + descriptorPath(upper) + ",workdir=" + descriptorPath(work)
		defer func() { _ = syscall.Close(work) }()
		s.uppers = append(s.uppers, upper)
	}
	return syscall.Mount("overlay", inside+r.Dir, "overlay", syscall.MS_NOSUID|syscall.MS_NODEV, options)
}

// upper opens the folder for the written entries, and the work folder of the
// overlay. The upper folder is the root that the program sees, so it gets the
// attributes of the real one.
func (s *sandboxBuild) upper(i int, r Root, lower int, is syscall.Stat_t) (upper, work int, err error) {
	base := host + r.Upper
	if r.Upper == "" {
		base = layers + "/" + strconv.Itoa(i) + ".written"
		if err := syscall.Mkdir(base, 0o700); err != nil {
			return -1, -1, err
		}
	}
	if upper, err = makeFolder(base + "/upper"); err != nil {
		return -1, -1, err
	}
	if err = alike(host, base+"/upper", lower, is); err == nil {
		work, err = makeFolder(base + "/work")
	}
	if err != nil {
		_ = syscall.Close(upper)
		return -1, -1, err
	}
	return upper, work, nil
}

// Layers are the folders of an overlay, each an open descriptor. Hidden is -1
// without masked names.
type Layers struct{ Lower, Hidden, Upper, Work int }

// Layers creates the folders of an overlay of a root below base, an empty
// folder, for a process that mounts the overlay itself. The caller closes them.
func (r Root) Layers(base string) (l Layers, err error) {
	l = Layers{-1, -1, -1, -1}
	defer func() {
		if err != nil {
			l.Close()
		}
	}()
	var is syscall.Stat_t
	if l.Lower, is, err = r.open("/"); err != nil {
		return l, err
	}
	if len(r.Masked) > 0 {
		hidden := base + "/hidden"
		if err = mask("", hidden, l.Lower, is, r.Masked); err != nil {
			return l, failedAt("masking", err)
		}
		if l.Hidden, err = syscall.Open(hidden, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0); err != nil {
			return l, err
		}
	}
	if l.Upper, err = makeFolder(base + "/upper"); err != nil {
		return l, err
	}
	if err = alike("", base+"/upper", l.Lower, is); err != nil {
		return l, err
	}
	l.Work, err = makeFolder(base + "/work")
	return l, err
}

// Close closes the folders.
func (l Layers) Close() {
	for _, fd := range []int{l.Lower, l.Hidden, l.Upper, l.Work} {
		if fd >= 0 {
			_ = syscall.Close(fd)
		}
	}
}

func makeFolder(path string) (fd int, err error) {
	if err := syscall.Mkdir(path, 0o700); err != nil {
		return -1, err
	}
	return syscall.Open(path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
}

// alike sets the owner, attributes, bits and time of a folder to those of
// another. An overlay shows those of the topmost folder, and new entries
// inherit its default list.
func alike(top, path string, of int, is syscall.Stat_t) error {
	var now syscall.Stat_t
	if err := syscall.Lstat(path, &now); err != nil {
		return err
	}
	if now.Uid != is.Uid || now.Gid != is.Gid {
		if err := syscall.Lchown(path, int(is.Uid), int(is.Gid)); err != nil {
			return failedAt("owner "+strconv.Itoa(int(is.Uid))+":"+strconv.Itoa(int(is.Gid)), err)
		}
	}
	if err := attributed(path, top+descriptorOf(of)); err != nil {
		return failedAt("attributes", err)
	}
	if err := syscall.Chmod(path, is.Mode&0o7777); err != nil {
		return err
	}
	return setTimes(path, &[2]syscall.Timespec{is.Mtim, is.Mtim})
}

// mask creates a layer that hides names: a whiteout for each, in folders that
// look like those below.
func mask(top, layer string, lower int, is syscall.Stat_t, names []string) error {
	if err := syscall.Mkdir(layer, 0o700); err != nil {
		return err
	}
	// A folder precedes its entries: a hidden folder also hides them.
	for _, name := range slices.Sorted(slices.Values(names)) {
		if err := maskName(top, layer, lower, name); err != nil {
			return failedAt(name, err)
		}
	}
	return alike(top, layer, lower, is)
}

func maskName(top, layer string, lower int, name string) error {
	at := ""
	for folder, rest, below := cut(name, '/'); below; folder, rest, below = cut(rest, '/') {
		at += "/" + folder
		var is syscall.Stat_t
		if err := fstatat(lower, at[1:], &is); err != nil || is.Mode&syscall.S_IFMT != syscall.S_IFDIR {
			return ignore(syscall.ENOENT, err) // the name does not exist, or leads elsewhere
		}
		switch err := syscall.Mkdir(layer+at, 0o700); {
		case errors.Is(err, syscall.EEXIST), errors.Is(err, syscall.ENOTDIR): // created before, or hidden
			continue
		case err != nil:
			return err
		}
		if err := alikeBelow(top, layer, lower, at[1:], is); err != nil {
			return err
		}
	}
	return ignore(syscall.ENOTDIR, ignore(syscall.EEXIST, syscall.Mknod(layer+"/"+name, syscall.S_IFCHR, 0)))
}

// alikeBelow is alike for a folder of a layer and the one of that name below
// another.
func alikeBelow(top, layer string, lower int, name string, is syscall.Stat_t) error {
	of, err := openFolder(top+descriptorOf(lower), name)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(of) }()
	return alike(top, layer+"/"+name, of, is)
}

// The attributes with access control lists.
const (
	accessList  = "system.posix_acl_access"
	defaultList = "system.posix_acl_default"
)

// attributed sets the visible attributes of a folder to those of another,
// without the overlay's metadata. It cannot set a list with users that have no
// ID in this namespace.
func attributed(path, of string) error {
	for _, list := range []string{accessList, defaultList} { // inherited from its parent
		err := syscall.Removexattr(path, list)
		if err = ignore(syscall.ENODATA, ignore(syscall.ENOTSUP, err)); err != nil {
			return err
		}
	}
	n, err := syscall.Listxattr(of, nil)
	if err != nil || n == 0 {
		return ignore(syscall.ENOTSUP, err)
	}
	names := make([]byte, 64<<10) // the maximum size
	if n, err = syscall.Listxattr(of, names); err != nil {
		return err
	}
	value := make([]byte, 64<<10)
	for name, rest, more := cut(string(names[:n]), 0); more; name, rest, more = cut(rest, 0) {
		if name != accessList && name != defaultList && (!begins(name, "user.") || begins(name, "user.overlay.")) {
			continue
		}
		n, err := syscall.Getxattr(of, name, value)
		if err == nil {
			err = syscall.Setxattr(path, name, value[:n], 0)
		}
		if err != nil {
			return failedAt(name, err)
		}
	}
	return nil
}

func begins(s, with string) bool { return len(s) >= len(with) && s[:len(with)] == with }

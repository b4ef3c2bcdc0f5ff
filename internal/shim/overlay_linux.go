//go:build amd64 || arm64

package shim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// overlay shows a root through an overlay. One to be read is overlaid too: by
// that a socket in it leads to nobody, and what is masked is not there at all.
func (s *stage) overlay(i int, r Root, lower int, is unix.Stat_t) error {
	options := "userxattr,lowerdir=" + descriptorPath(lower)
	if r.View != Overlay || len(r.Masked) > 0 { // an overlay has an upper folder or two lower ones
		hidden := layers + "/" + strconv.Itoa(i)
		if err := mask(hidden, lower, is, r.Masked); err != nil {
			return fmt.Errorf("masking: %w", err)
		}
		options = "userxattr,lowerdir=" + hidden + ":" + descriptorPath(lower)
	}
	if r.View == Overlay {
		upper, work, err := s.upper(i, r, is)
		if err != nil {
			return fmt.Errorf("the upper folder: %w", err)
		}
		// Without volatile each file that is copied up would be synced.
		options += ",volatile,upperdir=" + descriptorPath(upper) + ",workdir=" + descriptorPath(work)
		defer func() { _ = unix.Close(work) }()
		s.uppers = append(s.uppers, upper)
	}
	return unix.Mount("overlay", inside+r.Dir, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options)
}

// upper opens the folder that takes what is written, and the one that the
// overlay works in. The upper folder is the root of what the program sees, so it
// looks as the real one does.
func (s *stage) upper(i int, r Root, is unix.Stat_t) (upper, work int, err error) {
	base := host + r.Upper
	if r.Upper == "" {
		base = layers + "/" + strconv.Itoa(i) + ".written"
		if err := unix.Mkdir(base, 0o700); err != nil {
			return -1, -1, err
		}
	}
	if upper, err = makeFolder(base + "/upper"); err != nil {
		return -1, -1, err
	}
	if err = alike(base+"/upper", is); err == nil {
		work, err = makeFolder(base + "/work")
	}
	if err != nil {
		_ = unix.Close(upper)
		return -1, -1, err
	}
	return upper, work, nil
}

func makeFolder(path string) (fd int, err error) {
	if err := unix.Mkdir(path, 0o700); err != nil {
		return -1, err
	}
	return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// alike gives a folder the owner, bits and time of another.
func alike(path string, is unix.Stat_t) error {
	var now unix.Stat_t
	if err := unix.Lstat(path, &now); err != nil {
		return err
	}
	if now.Uid != is.Uid || now.Gid != is.Gid {
		if err := unix.Lchown(path, int(is.Uid), int(is.Gid)); err != nil {
			return fmt.Errorf("owner %d:%d: %w", is.Uid, is.Gid, err)
		}
	}
	if err := unix.Chmod(path, is.Mode&0o7777); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{is.Mtim, is.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

// mask makes a layer that hides names: a whiteout for each, in folders that look
// like those below.
func mask(layer string, lower int, is unix.Stat_t, names []string) error {
	if err := unix.Mkdir(layer, 0o700); err != nil {
		return err
	}
	// A folder comes before what is in it: what hides the folder hides that too.
	for _, name := range slices.Sorted(slices.Values(names)) {
		if err := maskName(layer, lower, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return alike(layer, is)
}

func maskName(layer string, lower int, name string) error {
	at, rest := "", strings.Split(name, "/")
	for ; len(rest) > 1; rest = rest[1:] {
		at += "/" + rest[0]
		var is unix.Stat_t
		if err := unix.Fstatat(lower, at[1:], &is, unix.AT_SYMLINK_NOFOLLOW); err != nil || is.Mode&unix.S_IFMT != unix.S_IFDIR {
			return ignore(unix.ENOENT, err) // nothing is there by that name, or the name leads elsewhere
		}
		switch err := unix.Mkdir(layer+at, 0o700); {
		case errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOTDIR): // made before, or hidden
			continue
		case err != nil:
			return err
		}
		if err := alike(layer+at, is); err != nil {
			return err
		}
	}
	return ignore(unix.ENOTDIR, ignore(unix.EEXIST, unix.Mknod(layer+"/"+name, unix.S_IFCHR, 0)))
}

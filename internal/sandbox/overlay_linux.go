//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// overlay shows a root through an overlay. One to be read is overlaid too: by
// that a socket in it leads to nobody, and what is masked is not there at all.
func (s *stage) overlay(i int, r orderRoot, at string, lower int, is unix.Stat_t) error {
	hidden := filepath.Join(layers, strconv.Itoa(i))
	if err := mask(hidden, lower, is, stringsOf(r.Masked)); err != nil {
		return fmt.Errorf("masking: %w", err)
	}
	options := "userxattr,lowerdir=" + hidden + ":" + descriptorPath(lower)
	if r.View == Overlay && len(r.Masked) == 0 {
		options = "userxattr,lowerdir=" + descriptorPath(lower)
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
	return unix.Mount("overlay", at, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options)
}

// upper opens the folder that takes what is written, and the one that the
// overlay works in. The upper folder is the root of what the program sees, so it
// looks as the real one does.
func (s *stage) upper(i int, r orderRoot, is unix.Stat_t) (upper, work int, err error) {
	base := host + string(r.Upper)
	if len(r.Upper) == 0 {
		base = filepath.Join(layers, strconv.Itoa(i)+".written")
		if err := os.Mkdir(base, 0o700); err != nil {
			return -1, -1, err
		}
		if err := s.memory(base, "0700"); err != nil {
			return -1, -1, err
		}
	}
	for _, name := range []string{"upper", "work"} {
		if err := os.Mkdir(filepath.Join(base, name), 0o700); err != nil {
			return -1, -1, err
		}
	}
	if err := alike(filepath.Join(base, "upper"), is); err != nil {
		return -1, -1, err
	}
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if upper, err = unix.Open(filepath.Join(base, "upper"), flags, 0); err != nil {
		return -1, -1, err
	}
	if work, err = unix.Open(filepath.Join(base, "work"), flags, 0); err != nil {
		_ = unix.Close(upper)
		return -1, -1, err
	}
	return upper, work, nil
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
	if err := os.Mkdir(layer, 0o700); err != nil {
		return err
	}
	for _, name := range names {
		if err := maskName(layer, lower, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return alike(layer, is)
}

func maskName(layer string, lower int, name string) error {
	at, rest := "", strings.Split(name, "/")
	for ; len(rest) > 1; rest = rest[1:] {
		at = filepath.Join(at, rest[0])
		var is unix.Stat_t
		if err := unix.Fstatat(lower, at, &is, unix.AT_SYMLINK_NOFOLLOW); err != nil || is.Mode&unix.S_IFMT != unix.S_IFDIR {
			return err // nothing is there by that name, or the name leads elsewhere
		}
		if err := os.Mkdir(filepath.Join(layer, at), 0o700); err != nil {
			if os.IsExist(err) {
				continue
			}
			return err
		}
		if err := alike(filepath.Join(layer, at), is); err != nil {
			return err
		}
	}
	err := unix.Mknod(filepath.Join(layer, name), unix.S_IFCHR, 0)
	if os.IsExist(err) {
		return nil
	}
	return err
}

// Discard removes an upper folder with everything in it, also what its owner may
// not enter: an overlay leaves such folders. It follows no link.
func Discard(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d == nil || !d.IsDir() {
			return nil // gone, or no folder: removing needs no right to it
		}
		if info, ierr := d.Info(); ierr == nil && info.Mode().Perm()&0o700 != 0o700 {
			return errors.Join(os.Chmod(path, 0o700), err) //nolint:gosec // to be removed
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(dir))
}

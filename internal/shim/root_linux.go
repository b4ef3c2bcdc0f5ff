//go:build amd64 || arm64

package shim

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

var errReplaced = errors.New("another folder is there than the one that was granted")

// roots shows each granted root.
func (s *stage) roots() error {
	var made folders
	for i, r := range s.Roots {
		lower, is, err := r.open(host)
		if err == nil {
			err = made.above(inside + r.Dir + "/")
		}
		if err == nil {
			err = s.root(i, r, lower, is)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.Dir, err)
		}
	}
	return nil
}

// open opens the folder that was granted, and no other.
func (r Root) open(top string) (fd int, is unix.Stat_t, err error) {
	fd, err = openFolder(top, r.Dir)
	if err != nil {
		return -1, is, err
	}
	err = unix.Fstat(fd, &is)
	if err == nil && (r.Dev != 0 || r.Ino != 0) && (uint64(is.Dev) != r.Dev || is.Ino != r.Ino) { //nolint:unconvert // other widths elsewhere
		err = errReplaced
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return fd, is, err
}

func (s *stage) root(i int, r Root, lower int, is unix.Stat_t) error {
	defer func() { _ = unix.Close(lower) }()
	if r.View == Direct && r.Upper != "" {
		copied, _, err := Root{Dir: r.Upper}.open(host)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(copied) }()
		return direct(inside+r.Dir, copied)
	}
	if r.View == Direct {
		return direct(inside+r.Dir, lower)
	}
	if err := s.overlay(i, r, lower, is); err != nil {
		return refusal{NoOverlay, r.Dir, err}
	}
	return nil
}

func direct(at string, lower int) error {
	if err := unix.Mount(descriptorPath(lower), at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return unix.MountSetattr(unix.AT_FDCWD, at, unix.AT_RECURSIVE,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV})
}

// look does what can be done where nothing can be built: it sees that the roots
// are those that were granted. What could only be shown otherwise is refused.
func (s *stage) look() error {
	for _, r := range s.Roots {
		if r.View == Overlay || len(r.Masked) > 0 || r.View == Direct && r.Upper != "" {
			return refusal{NoOverlay, r.Dir, errors.New("without namespaces nothing can be laid over a folder or shown in its place, and nothing in it hidden")}
		}
		fd, _, err := r.open("/")
		if err != nil {
			return fmt.Errorf("sandbox: the roots: %s: %w", r.Dir, err)
		}
		s.folders = append(s.folders, fd)
	}
	// What the program leaves running becomes a child of this process.
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

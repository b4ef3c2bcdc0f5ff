//go:build amd64 || arm64

package shim

import (
	"errors"
	"syscall"
)

var errReplaced = errors.New("another folder is there than the one that was granted")

// roots shows each granted root.
func (s *sandboxBuild) roots() error {
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
			return failedAt(r.Dir, err)
		}
	}
	return nil
}

// open opens exactly the granted folder.
func (r Root) open(top string) (fd int, is syscall.Stat_t, err error) {
	fd, err = openFolder(top, r.Dir)
	if err != nil {
		return -1, is, err
	}
	err = syscall.Fstat(fd, &is)
	if err == nil && (r.Dev != 0 || r.Ino != 0) && (uint64(is.Dev) != r.Dev || is.Ino != r.Ino) { //nolint:unconvert // other widths elsewhere
		err = errReplaced
	}
	if err != nil {
		_ = syscall.Close(fd)
	}
	return fd, is, err
}

func (s *sandboxBuild) root(i int, r Root, lower int, is syscall.Stat_t) error {
	defer func() { _ = syscall.Close(lower) }()
	if r.View == Direct && r.Upper != "" {
		copied, _, err := Root{Dir: r.Upper}.open(host)
		if err != nil {
			return err
		}
		defer func() { _ = syscall.Close(copied) }()
		return direct(inside+r.Dir, copied)
	}
	if r.View == Direct {
		return direct(inside+r.Dir, lower)
	}
	if r.Attached {
		if len(s.mounts) == 0 {
			return errReplaced
		}
		mount := s.mounts[0]
		s.mounts = s.mounts[1:]
		defer func() { _ = syscall.Close(mount) }()
		return moveMount(mount, inside+r.Dir)
	}
	if err := s.overlay(i, r, lower, is); err != nil {
		return refusal{NoOverlay, r.Dir, err}
	}
	return nil
}

func direct(at string, lower int) error {
	if err := syscall.Mount(descriptorPath(lower), at, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return err
	}
	return mountSetattr(at, atRecursive,
		&mountAttr{set: mountAttrNosuid | mountAttrNodev})
}

// look does what is possible without a file system of its own: it checks that
// the roots are the granted ones. It refuses roots that need another view.
func (s *sandboxBuild) look() error {
	for _, r := range s.Roots {
		if r.View == Overlay || len(r.Masked) > 0 || r.View == Direct && r.Upper != "" {
			return refusal{NoOverlay, r.Dir, errors.New("without namespaces nothing can be laid over a folder or shown in its place, and nothing in it hidden")}
		}
		fd, _, err := r.open("/")
		if err != nil {
			return failedAt("sandbox: the roots: "+r.Dir, err)
		}
		s.folders = append(s.folders, fd)
	}
	// The program's orphans become children of this process.
	return prctl(prSetChildSubreaper, 1, 0)
}

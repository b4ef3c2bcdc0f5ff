//go:build !portable

package process

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/disk"
)

// packName reads one name. The hint is its probable stamp. It reports false for
// what needs a file in the tree, and after every error: the other way handles
// it.
func (s *snapshotStore) packName(name string, hint fileStamp, b []byte) (p packName, ok bool) {
	at := filepath.Join(s.root, name)
	if hint.mode&unix.S_IFMT == unix.S_IFREG && hint.size <= maxPacked {
		return s.packFile(at, name, b)
	}
	is, raw, err := stampOf(at)
	if err != nil {
		return p, false
	}
	p.t.root, p.links = is, uint64(raw.Nlink) //nolint:unconvert // other widths elsewhere
	switch is.mode & unix.S_IFMT {
	case unix.S_IFREG:
		return s.packFile(at, name, b)
	case unix.S_IFLNK:
		if p.same = s.unchanged(name, &p.t); p.same {
			return p, true
		}
		target, err := os.Readlink(at)
		p.content = []byte(target)
		return p, err == nil
	case unix.S_IFDIR:
		p.t.at, p.links = 1, 1
		p.same = s.unchanged(name, &p.t)
		n, err := unix.Llistxattr(at, b)
		return p, plain(b, n, err) && !unlistable(at)
	}
	return p, false
}

// packFile reads a regular file.
func (s *snapshotStore) packFile(at, name string, b []byte) (p packName, ok bool) {
	const how = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Open(at, how|unix.O_NOATIME, 0) // else each file is written for its time
	if errors.Is(err, unix.EPERM) {
		fd, err = unix.Open(at, how, 0)
	}
	if err != nil {
		return p, false
	}
	defer func() { _ = unix.Close(fd) }()
	var raw unix.Stat_t
	if unix.Fstat(fd, &raw) != nil || raw.Mode&unix.S_IFMT != unix.S_IFREG || raw.Size > maxPacked {
		return p, false
	}
	p.t.root, p.links = stampFrom(&raw), uint64(raw.Nlink) //nolint:unconvert // other widths elsewhere
	if p.same = s.unchanged(name, &p.t); p.same {
		return p, true
	}
	if n, err := unix.Flistxattr(fd, b); !plain(b, n, err) {
		return p, false
	}
	for n := 0; n < len(b); {
		got, err := unix.Read(fd, b[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return p, false
		}
		if n += got; got == 0 || int64(n) == raw.Size { // one that grows meanwhile gets another stamp
			p.content = bytes.Clone(b[:n])
			return p, true
		}
	}
	return p, false
}

// plain reports whether a list of attributes has none that remit keeps.
func plain(b []byte, n int, err error) bool {
	if err != nil {
		return errors.Is(err, unix.ENOTSUP)
	}
	for name := range strings.SplitSeq(string(b[:n]), "\x00") {
		if disk.CheckXattr(name) == nil {
			return false
		}
	}
	return true
}

package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/sparse"
)

// hostRoot is a root accessed through the host's scheduling points: each method
// passes one before it accesses the disk.
type hostRoot struct {
	root disk.Root
	host host.Host
	most int // bound of the bytes of a file that is read or written whole
}

func (s hostRoot) rename(ctx context.Context, from, to string) error {
	if err := s.host.Point(ctx, "files.rename"); err != nil {
		return err
	}
	return s.root.RenameNoReplace(from, to)
}

func (s hostRoot) exchange(ctx context.Context, a, b string) error {
	if err := s.host.Point(ctx, "files.exchange"); err != nil {
		return err
	}
	return s.root.Exchange(a, b)
}

func (s hostRoot) remove(ctx context.Context, name string) error {
	if err := s.host.Point(ctx, "files.remove"); err != nil {
		return err
	}
	return s.root.Remove(name)
}

// syncDir makes the names in the directory of a file durable.
func (s hostRoot) syncDir(ctx context.Context, name string) error {
	return s.syncIn(ctx, path.Dir(name))
}

// syncIn makes the names in a directory durable, and its own bits.
func (s hostRoot) syncIn(ctx context.Context, dir string) error {
	if err := s.host.Point(ctx, "files.syncdir"); err != nil {
		return err
	}
	//mutant:barrier
	return s.root.SyncDir(dir)
}

// syncAll makes all written data durable at once. It returns
// disk.ErrUnsupported if the system cannot do that.
func (s hostRoot) syncAll(ctx context.Context) error {
	if err := s.host.Point(ctx, "files.syncall"); err != nil {
		return err
	}
	//mutant:barrier
	return s.root.SyncAll()
}

func (s hostRoot) lstat(ctx context.Context, name string) (disk.Info, error) {
	if err := s.host.Point(ctx, "files.lstat"); err != nil {
		return disk.Info{}, err
	}
	return s.root.Lstat(name)
}

// quiet fails with disk.ErrBusy while a program has the file open for writing.
// It returns nil if the system cannot tell.
func (s hostRoot) quiet(ctx context.Context, name string) error {
	if err := s.host.Point(ctx, "files.quiet"); err != nil {
		return err
	}
	//mutant:lease
	err := s.root.TryLease(name)
	if errors.Is(err, disk.ErrUnsupported) || errors.Is(err, disk.ErrType) {
		return nil
	}
	return err
}

// entries returns the names in a directory, including reserved ones.
func (s hostRoot) entries(ctx context.Context, name string) ([]disk.Info, error) {
	if err := s.host.Point(ctx, "files.readdir"); err != nil {
		return nil, err
	}
	return s.root.ReadDir(name)
}

// straight refuses a path that leads through a symbolic link, and names the
// link. A link can replace a directory after the check. The system refuses such
// a link (disk.WithoutLinks) or, if it cannot, follows it below the root.
func (s hostRoot) straight(ctx context.Context, name string) error {
	if s.root.Features().Straight { // one check, which follows no link
		info, err := s.lstat(ctx, parentOf(name))
		if missing(err) || err == nil && info.Type != disk.TypeLink {
			return nil
		}
		if err != nil && !errors.Is(err, disk.ErrEscape) {
			return err
		}
	}
	for i, c := range name {
		if c != '/' {
			continue
		}
		info, err := s.lstat(ctx, name[:i])
		if missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if info.Type == disk.TypeLink {
			return fmt.Errorf("%s: its folder %s %w; use the target of the link", name, name[:i], errAlias)
		}
	}
	return nil
}

// contentSink consumes a file's content and returns its digest.
type contentSink func(r io.Reader) (digest string, err error)

func hashing(r io.Reader) (string, error) {
	h := canon.NewHash()
	buf, giveBack := borrowBuffer()
	defer giveBack()
	if _, err := sparse.Copy(h, r, buf); err != nil {
		return "", err
	}
	return string(h.Digest()), nil
}

// looks bounds how often a file that changes during a read is read again.
const looks = 16

// look reads the state of a name, and the content of a file into the sink. It
// never mixes two versions if writers change size or time. A file that keeps
// changing is ErrConflict.
func (s hostRoot) look(ctx context.Context, name string, into contentSink) (state, error) {
	var err error
	for range looks {
		if err = s.host.Point(ctx, "files.look"); err != nil {
			return state{}, err
		}
		var st state
		if st, err = s.lookOnce(name, into); err == nil || !moving(err) {
			return st, err
		}
	}
	return state{}, conflict(name, "it changes while it is read")
}

func (s hostRoot) lookOnce(name string, into contentSink) (state, error) {
	info, err := s.root.Lstat(name)
	if missing(err) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	st := state{Version: Version{Type: info.Type.String(), Perm: info.Perm, Owner: Owner(info.Owner)}, info: info}
	switch info.Type {
	case disk.TypeLink:
		st.Perm = 0 // a link has no bits
		st.Target, err = s.root.Readlink(name)
	case disk.TypeFile:
		st.Content, st.Xattrs, err = s.content(name, info, into)
	case disk.TypeDir, disk.TypeOther:
	}
	if err != nil {
		return state{}, err
	}
	if st.Xattrs == nil {
		if st.Xattrs, err = s.root.Xattrs(name); err != nil {
			return state{}, err
		}
	}
	again, err := s.root.Lstat(name)
	if err == nil && (again.Inode != info.Inode || again.Device != info.Device || again.Perm != info.Perm || again.Owner != info.Owner || again.Type != info.Type) {
		err = disk.ErrBusy
	}
	return st, err
}

// content reads a file, and its attributes if the open file provides them.
func (s hostRoot) content(name string, info disk.Info, into contentSink) (digest string, attrs map[string][]byte, err error) {
	f, err := s.root.Open(name)
	if errors.Is(err, disk.ErrEscape) { // a link replaced it: read again
		err = fmt.Errorf("%w: %w", disk.ErrBusy, err)
	}
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = f.Close() }()
	before, err := f.Stat()
	if err != nil {
		return "", nil, err
	}
	if before.Inode != info.Inode || before.Device != info.Device || before.Size != info.Size || !before.Mtime.Equal(info.Mtime) {
		return "", nil, disk.ErrBusy
	}
	if digest, err = into(f); err != nil {
		return "", nil, err
	}
	if own, ok := f.(interface {
		Xattrs() (map[string][]byte, error)
	}); ok {
		if attrs, err = own.Xattrs(); err != nil {
			return "", nil, err
		}
	}
	after, err := f.Stat()
	if err == nil && (after.Size != before.Size || !after.Mtime.Equal(before.Mtime)) {
		err = disk.ErrBusy
	}
	return digest, attrs, err
}

// StagePrefix is the prefix of the temporary names of an exchange. It is
// reserved, in upper and lower case.
const StagePrefix = ".remit-stage-"

func reserved(base string) bool {
	return len(base) >= len(StagePrefix) && strings.EqualFold(base[:len(StagePrefix)], StagePrefix)
}

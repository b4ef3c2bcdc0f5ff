package files

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
)

// hostRoot is a root accessed through the host's scheduling points: each method
// passes one before it accesses the disk.
type hostRoot struct {
	root disk.Root
	near disk.Root // a view of root with one open folder, see pin; nil: none
	host host.Host
	most int // bound of the bytes of a file that is read or written whole
}

// on returns the root or its view, on which operations act.
func (s hostRoot) on() disk.Root {
	if s.near != nil {
		return s.near
	}
	return s.root
}

// pin keeps the folder of a name open until end is called, for a sequence of
// operations on names in it. Then they walk to the folder once, and all act on
// the same one: if another process moves it meanwhile, as if it did so
// afterwards. So do not wait for anything but the disk and the journal before
// end. A walk to the folder that meets a link fails. Then, and if the system
// has no such view, each operation walks and returns its own error.
func (s hostRoot) pin(name string) (pinned hostRoot, end func()) {
	p, ok := s.root.(disk.FolderPinner)
	if !ok || s.near != nil || !s.root.Features().Straight {
		return s, func() {}
	}
	view, err := p.PinFolder(parentOf(name))
	if err != nil {
		return s, func() {}
	}
	s.near = view
	return s, func() { _ = view.Close() } // nothing was written through it
}

func (s hostRoot) rename(ctx context.Context, from, to string) error {
	if err := s.host.Point(ctx, "files.rename"); err != nil {
		return err
	}
	return s.on().RenameNoReplace(from, to)
}

func (s hostRoot) exchange(ctx context.Context, a, b string) error {
	if err := s.host.Point(ctx, "files.exchange"); err != nil {
		return err
	}
	return s.on().Exchange(a, b)
}

func (s hostRoot) remove(ctx context.Context, name string) error {
	if err := s.host.Point(ctx, "files.remove"); err != nil {
		return err
	}
	return s.on().Remove(name)
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
	return s.on().SyncDir(dir)
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
	return s.on().Lstat(name)
}

// quiet fails with disk.ErrBusy while a program has the file open for writing.
// It returns nil if the system cannot tell.
func (s hostRoot) quiet(ctx context.Context, name string) error {
	if err := s.host.Point(ctx, "files.quiet"); err != nil {
		return err
	}
	//mutant:lease
	err := s.on().TryLease(name)
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
	return s.on().ReadDir(name)
}

// straight refuses a path that leads through a symbolic link, and names the
// link. A link can replace a directory after the check. The system refuses such
// a link (disk.WithoutLinks) or, if it cannot, follows it below the root.
func (s hostRoot) straight(ctx context.Context, name string) error {
	if s.near != nil { // the walk to the pinned folder followed no link
		return nil
	}
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

// StagePrefix is the prefix of the temporary names of an exchange. It is
// reserved, in upper and lower case.
const StagePrefix = ".remit-stage-"

func reserved(base string) bool {
	return len(base) >= len(StagePrefix) && strings.EqualFold(base[:len(StagePrefix)], StagePrefix)
}

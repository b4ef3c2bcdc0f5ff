package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/record"
)

// differences returns the pre-images of all names that may have changed. The
// error lost lists changed files without a copy.
func (t *folderCopy) differences(ctx context.Context, d *Driver, now time.Time) (before []files.FilePreImage, lost, err error) {
	hidden, err := d.hiddenIn(ctx, t.usageMarker, t.root, now)
	if err != nil {
		return nil, nil, err
	}
	masked, err := t.stamps(hidden)
	if err != nil {
		return nil, nil, err
	}
	t.untracked = t.compareMasked(masked)
	is, err := t.walk(ctx, hidden)
	if err != nil {
		return nil, nil, fmt.Errorf("what was changed in %s cannot be told: %w", Folder{t.Name, t.Folder}, err)
	}
	names := maps.Clone(is)
	for name := range t.seen {
		if _, there := names[name]; !there {
			names[name] = fileStamp{}
		}
	}
	twins := t.otherNames(is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, kept := t.seen[name]
		full := path.Join(t.Folder, name)
		switch {
		case full == ".": // the configuration of the root determines its attributes
		case kept && !old.fresh && old.root == names[name]:
		case !kept:
			before = append(before, files.FilePreImage{Path: full})
		case old.shut:
			lost = errors.Join(lost, fmt.Errorf("%s: it was changed, and what it held could not be read before", full))
		default:
			b, err := t.before(name, old)
			if err != nil {
				return nil, nil, err
			}
			b.Path, b.HardLink = full, twins[name]
			before = append(before, b)
		}
	}
	return before, lost, nil
}

// stamps returns the stamps of masked names, without their entries. The stamp
// of a folder changes when a name is added or removed, as in .git with each
// commit.
func (t *folderCopy) stamps(masked map[string]bool) (map[string]fileStamp, error) {
	all := make(map[string]fileStamp, len(masked))
	for name := range masked {
		is, _, err := stampOf(filepath.Join(t.Dir, t.Folder, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		all[name] = is
	}
	return all, nil
}

// compareMasked compares masked names by their stamps. A snapshot holds nothing
// of their content.
func (t *folderCopy) compareMasked(after map[string]fileStamp) (u record.MaskedFiles) {
	for name, is := range after {
		to := &u.Names
		if was, there := t.masked[name]; !there {
			to = &u.Added
		} else if was != is {
			to = &u.Changed
		}
		*to = append(*to, path.Join(t.Name, t.Folder, name))
	}
	for name := range t.masked {
		if _, there := after[name]; !there {
			u.Gone = append(u.Gone, path.Join(t.Name, t.Folder, name))
		}
	}
	return u
}

// walk visits each name, except masked names and those of remit.
func (t *folderCopy) walk(ctx context.Context, hidden map[string]bool) (map[string]fileStamp, error) {
	is := map[string]fileStamp{}
	err := filepath.WalkDir(t.rootCopy.root, func(at string, e fs.DirEntry, err error) error {
		name := below(t.rootCopy.root, at)
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil // gone by now, or compared by its entries
		}
		if err != nil {
			return err
		}
		base := path.Base(name)
		if hidden[name] || len(base) >= len(files.StagePrefix) && strings.EqualFold(base[:len(files.StagePrefix)], files.StagePrefix) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		s, _, err := stampOf(at)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if kind := s.mode & unix.S_IFMT; err == nil && (kind == unix.S_IFREG || kind == unix.S_IFDIR || kind == unix.S_IFLNK) {
			is[name] = s
		}
		return err
	})
	return is, err
}

// otherNames finds another name for each file that had several, preferably an
// untouched one.
func (t *folderCopy) otherNames(is map[string]fileStamp) map[string]string {
	names := map[uint64][]string{}
	for name, old := range t.seen {
		if old.root.mode&unix.S_IFMT == unix.S_IFREG {
			names[old.root.ino] = append(names[old.root.ino], name)
		}
	}
	twin := map[string]string{}
	for _, some := range names {
		if len(some) < 2 {
			continue
		}
		slices.Sort(some)
		first := some[0]
		if at := slices.IndexFunc(some, func(name string) bool { return is[name] == t.seen[name].root }); at >= 0 {
			first = some[at]
		}
		for _, name := range some {
			if name != first {
				twin[name] = path.Join(t.Folder, first)
			}
		}
	}
	return twin
}

// before returns the pre-image of one name.
func (t *folderCopy) before(name string, old entryState) (b files.FilePreImage, err error) {
	at := filepath.Join(t.dir, name)
	b.Mtime = time.Unix(old.root.mtime.Unix()).UTC()
	b.Owner = files.Owner{Known: true, User: old.root.uid, Group: old.root.gid}
	switch old.root.mode & unix.S_IFMT {
	case unix.S_IFLNK:
		b.Type = disk.TypeLink.String()
		b.Target, err = os.Readlink(at)
		return b, err
	case unix.S_IFDIR:
		b.Type = disk.TypeDir.String()
	default:
		b.Type = disk.TypeFile.String()
		b.Open = func() (io.ReadCloser, error) { return t.open(name) }
	}
	b.Perm = bitsOf(old.root.mode)
	b.Xattrs, err = attributes(at)
	return b, err
}

func bitsOf(mode uint32) fs.FileMode {
	bits := fs.FileMode(mode) & fs.ModePerm
	for bit, is := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if mode&bit != 0 {
			bits |= is
		}
	}
	return bits
}

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/record"
)

// differences returns the pre-images of all names that may have changed. The
// error lost lists changed files without a copy.
func (t *folderCopy) differences(ctx context.Context, d *Driver, now time.Time) (before []files.FilePreImage, lost, err error) {
	t.settleUndone()
	l, err := t.look(ctx, d, now)
	if err != nil {
		return nil, nil, fmt.Errorf("what was changed in %s cannot be told: %w", Folder{t.Name, t.Folder}, err)
	}
	masked, err := t.stamps(l.hidden)
	if err != nil {
		return nil, nil, err
	}
	t.untracked, t.hiddenAt, t.found = t.compareMasked(masked), l.hidden, nil
	twins := t.otherNames(l.names)
	for _, name := range slices.Sorted(maps.Keys(l.names)) {
		old, kept := t.seen[name]
		is, full := l.names[name], path.Join(t.Folder, name)
		_, touched := t.dirty[name] // an event tells more than times
		one := files.FilePreImage{Path: full}
		switch {
		case full == ".": // the configuration of the root determines its attributes
			continue
		case !kept && is == fileStamp{}, kept && !old.fresh && old.root == is && (!touched || is.folder()):
			continue
		case !kept:
		case old.shut:
			if old.root != is {
				lost = errors.Join(lost, fmt.Errorf("%s: it was changed, and what it held could not be read before", full))
			}
			continue
		default:
			if one, err = t.before(name, old); err != nil {
				return nil, nil, err
			}
			one.Path, one.HardLink = full, twins[name]
		}
		before = append(before, one)
		t.found = append(t.found, foundName{Name: name, Is: entryState{root: is, copy: old.root}.mark()})
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

// otherNames finds another name for each file that had several, preferably an
// untouched one.
func (t *folderCopy) otherNames(is map[string]fileStamp) map[string]string {
	names := map[uint64][]string{}
	add := func(name string) {
		if old, ok := t.seen[name]; ok && old.root.mode&typeMask == typeFile {
			names[old.root.ino] = append(names[old.root.ino], name)
		}
	}
	if t.unchecked {
		for name := range t.seen { // an index of links needs a walk before the changes
			add(name)
		}
	} else {
		for name := range t.linked {
			add(name)
		}
	}
	twin := map[string]string{}
	for _, some := range names {
		if len(some) < 2 {
			continue
		}
		slices.Sort(some)
		first := some[0]
		if at := slices.IndexFunc(some, func(name string) bool {
			now, differs := is[name]
			return !differs || now == t.seen[name].root
		}); at >= 0 {
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
	b.Owner = files.Owner{Known: knowsOwners, User: old.root.uid, Group: old.root.gid}
	switch old.root.mode & typeMask {
	case typeLink:
		b.Type = disk.TypeLink.String()
		if old.packed() {
			target, err := t.content(old)
			b.Target = string(target)
			return b, err
		}
		b.Target, err = copiedLink(at)
		return b, err
	case typeFolder:
		b.Type = disk.TypeDir.String()
	default:
		b.Type = disk.TypeFile.String()
		b.Open = func() (io.ReadCloser, error) { return t.open(name) }
	}
	b.Perm = bitsOf(old.root.mode)
	if old.packed() {
		b.Xattrs = map[string][]byte{} // else it has a file in the tree
		return b, nil
	}
	b.Xattrs, err = attributes(at)
	return b, err
}

func bitsOf(mode uint32) fs.FileMode {
	bits := fs.FileMode(mode) & fs.ModePerm
	for bit, is := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&bit != 0 {
			bits |= is
		}
	}
	return bits
}

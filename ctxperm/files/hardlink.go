package files

import (
	"context"
	"path"
	"slices"

	"github.com/remit-dev/remit/internal/disk"
)

// joined records another name of each displaced file, so that a revert can link
// to it again.
func (s hostRoot) joined(ctx context.Context, all []fileEdit) error {
	names, altered := map[uint64][]string{}, map[string]bool{}
	for i := range all {
		a := &all[i]
		altered[a.path] = true
		info, err := s.displaced(ctx, *a)
		if err != nil {
			return err
		}
		if info.Type == disk.TypeFile && info.Links > 1 {
			a.shared, a.links, names[info.Inode] = info.Inode, info.Links, nil
		}
	}
	if len(names) == 0 {
		return nil
	}
	if err := s.collect(ctx, ".", names); err != nil {
		return err
	}
	for i := range all {
		a := &all[i]
		if a.shared == 0 {
			continue
		}
		known := names[a.shared]
		a.hardLink = leader(known, altered, a.path)
		if a.hardLink == "" || altered[a.hardLink] { // else the rest of the file keeps them
			a.elsewhere = max(0, int(a.links)-len(known))
		}
	}
	return nil
}

// leader returns the name from which the other names of a file are linked
// again. It is one that is not altered, or else the first, which then has no
// other name.
func leader(names []string, altered map[string]bool, name string) string {
	at := max(0, slices.IndexFunc(names, func(name string) bool { return !altered[name] }))
	if len(names) == 0 || names[at] == name {
		return ""
	}
	return names[at]
}

// displaced describes the file that an edit displaces. It reads the file if no
// earlier check did.
func (s hostRoot) displaced(ctx context.Context, a fileEdit) (disk.Info, error) {
	switch {
	case a.was != nil:
		return a.was.info, nil
	case a.seen.Type != 0 || a.first != nil:
		return a.seen, nil
	}
	info, err := s.lstat(ctx, a.path)
	if missing(err) || elsewhere(err) {
		return disk.Info{}, nil
	}
	return info, refused(err)
}

// collect finds the names of some files. It walks the root, which is necessary
// only for hard links.
func (s hostRoot) collect(ctx context.Context, dir string, names map[uint64][]string) error {
	found, err := s.entries(ctx, dir)
	if err != nil {
		if passing(err) {
			return nil
		}
		return refused(err)
	}
	for _, e := range found {
		name := path.Join(dir, e.Name)
		if _, ok := names[e.Inode]; ok && e.Type == disk.TypeFile {
			names[e.Inode] = append(names[e.Inode], name)
		}
		if e.Type == disk.TypeDir {
			if err := s.collect(ctx, name, names); err != nil {
				return err
			}
		}
	}
	return nil
}

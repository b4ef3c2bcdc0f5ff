package files

import (
	"context"
	"slices"

	"github.com/remit-dev/remit/internal/disk"
)

// groupSyncMin is the number of files from which one sync of the whole file system
// replaces single syncs. It costs less than one sync per file. It also costs
// other files a little. It applies to directories too.
const groupSyncMin = 32

// maxDraftBytes bounds the bytes of drafts that wait for one sync. Until then they lie
// beside the files that they will replace.
const maxDraftBytes = 64 << 20

// wave returns how many swaps can make their drafts before the first of them is
// performed: none of them makes the directory of another.
func wave(n int, at func(i int) (w *swap, folder bool)) int {
	made := map[rootPath]bool{}
	for i := range n {
		w, folder := at(i)
		if w == nil {
			continue
		}
		if made[rootPath{w.root, parentOf(w.target)}] {
			return i
		}
		made[rootPath{w.root, w.target}] = folder
	}
	return n
}

// drafts reports whether the draft of an image is content that can be synced
// together with that of others.
func (img fileImage) drafts() bool { return img.Type == typeFile && img.hardLink == "" }

// pendingSyncs holds the directories whose names are not durable yet.
type pendingSyncs struct{ dirs []rootPath }

// deferSync lets a swap leave its last sync to the set.
func (d *pendingSyncs) deferSync(w *swap) {
	w.later = func(dir string) { d.dirs = append(d.dirs, rootPath{w.root, dir}) }
}

// add makes sync do for a swap what syncName does.
func (d *pendingSyncs) add(ctx context.Context, w *swap) error {
	is, err := w.lstat(ctx, w.target)
	if err != nil && !missing(err) {
		return err
	}
	if is.Type == disk.TypeDir {
		d.dirs = append(d.dirs, rootPath{w.root, w.target}) // the directory's own bits
	}
	d.dirs = append(d.dirs, rootPath{w.root, parentOf(w.target)})
	return nil
}

// sync makes the names durable. One sync covers many directories of a root. If a
// directory is gone or is now something else, its parent is among the others.
// It returns the errors by root.
func (d *pendingSyncs) sync(ctx context.Context, s hostRoot) map[disk.Root]error {
	failed, dirs := map[disk.Root]error{}, map[disk.Root][]string{}
	var roots []disk.Root
	owed := d.dirs
	d.dirs = nil
	for _, at := range owed {
		if dirs[at.root] == nil {
			roots = append(roots, at.root)
		}
		dirs[at.root] = append(dirs[at.root], at.path)
	}
	for _, root := range roots {
		s.root = root
		slices.Sort(dirs[root])
		if err := s.syncNames(ctx, slices.Compact(dirs[root])); err != nil {
			failed[root] = err
		}
	}
	return failed
}

func (s hostRoot) syncNames(ctx context.Context, dirs []string) error {
	if len(dirs) >= groupSyncMin && s.root.Features().SyncAll {
		return s.syncAll(ctx)
	}
	for _, dir := range dirs {
		if err := s.syncIn(ctx, dir); err != nil && !gone(err) && !elsewhere(err) {
			return err
		}
	}
	return nil
}

package files

import (
	"context"
	"slices"

	"github.com/remit-dev/remit/internal/disk"
)

// together is from how many files on their content is synced by one step for the whole
// file system, which costs less than one step for each, and others a little too. It
// holds for directories as well.
const together = 32

// room is how many bytes of drafts wait for one sync at most: until then they lie beside
// what they are going to replace.
const room = 64 << 20

// wave is how many swaps can have their drafts made before the first of them is done:
// none of them makes the directory of another.
func wave(n int, at func(i int) (w *swap, folder bool)) int {
	made := map[place]bool{}
	for i := range n {
		w, folder := at(i)
		if w == nil {
			continue
		}
		if made[place{w.root, parentOf(w.target)}] {
			return i
		}
		made[place{w.root, w.target}] = folder
	}
	return n
}

// drafts reports whether the draft of an image is content that is worth being synced
// with that of others.
func (img fileImage) drafts() bool { return img.Type == typeFile && img.twin == "" }

// pendingSyncs are the directories whose names are not durable yet.
type pendingSyncs struct{ owed []place }

// lend has a swap leave its last sync to pay.
func (d *pendingSyncs) lend(w *swap) {
	w.later = func(dir string) { d.owed = append(d.owed, place{w.root, dir}) }
}

// owe has pay do for a swap what harden does.
func (d *pendingSyncs) owe(ctx context.Context, w *swap) error {
	is, err := w.lstat(ctx, w.target)
	if err != nil && !missing(err) {
		return err
	}
	if is.Type == disk.TypeDir {
		d.owed = append(d.owed, place{w.root, w.target}) // its own bits
	}
	d.owed = append(d.owed, place{w.root, parentOf(w.target)})
	return nil
}

// pay makes the names durable, those of many directories of a root in one step. One that
// is gone, or that is something else by now, has its parent among the others. It returns
// the errors by root.
func (d *pendingSyncs) pay(ctx context.Context, s hostRoot) map[disk.Root]error {
	failed, dirs := map[disk.Root]error{}, map[disk.Root][]string{}
	var roots []disk.Root
	owed := d.owed
	d.owed = nil
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
	if len(dirs) >= together && s.root.Features().SyncAll {
		return s.syncAll(ctx)
	}
	for _, dir := range dirs {
		if err := s.syncIn(ctx, dir); err != nil && !gone(err) && !elsewhere(err) {
			return err
		}
	}
	return nil
}

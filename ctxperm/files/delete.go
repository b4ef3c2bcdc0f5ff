package files

import (
	"context"
	"slices"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/journal"
)

// Delete removes a file, a link or an empty directory.
func (f *Files) Delete(ctx context.Context, path string) error {
	p, text, err := f.permit(ctx, path, perm.Delete)
	if err != nil {
		return err
	}
	defer p.End()
	info, err := f.site.lstat(ctx, path)
	if err != nil {
		return refused(err)
	}
	switch info.Type {
	case disk.TypeDir:
		if err := f.empty(ctx, path); err != nil {
			return err
		}
	case disk.TypeFile, disk.TypeLink:
	default:
		return invalid(path, "it is neither a file nor a link nor a directory, and could not be made again")
	}
	return f.alter(ctx, p, fileEdit{path: path, text: text, seen: info, build: func(was state, _ *journal.Blob) (fileImage, error) {
		if was.Type != info.Type.String() {
			return fileImage{}, conflict(path, "it was replaced")
		}
		return fileImage{}, nil
	}})
}

func (f *Files) empty(ctx context.Context, path string) error {
	entries, err := f.site.entries(ctx, path)
	if err == nil && len(entries) > 0 {
		return invalid(path, "the directory is not empty; delete what is in it first")
	}
	return err
}

// DeleteAll removes a file, a link, or a directory with everything in it. It
// authorizes listing each directory and deleting each entry. If one access is
// denied, or an entry could not be created again, it refuses before any effect.
func (f *Files) DeleteAll(ctx context.Context, path string) error {
	t, err := f.tree(ctx, path, perm.Delete)
	if err != nil {
		return err
	}
	p, err := f.hold(ctx, t.accesses)
	if err != nil {
		return err
	}
	defer p.End()
	return f.alter(ctx, p, t.removal(nil)...)
}

// removal returns the edits that remove a tree, the entries of a directory
// before it. The argument taken holds entries that were already read.
func (t *tree) removal(taken map[string]capture) []fileEdit {
	var all []fileEdit
	for _, n := range slices.Backward(t.nodes) {
		a := fileEdit{path: n.path, text: n.text, seen: n.info, build: func(was state, _ *journal.Blob) (fileImage, error) {
			return fileImage{}, n.still(was)
		}}
		if c, ok := taken[n.path]; ok {
			a.was, a.blob = &c.was, c.blob
		}
		all = append(all, a)
	}
	return all
}

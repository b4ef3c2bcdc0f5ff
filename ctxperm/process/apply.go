package process

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/sandbox"
)

// collect lists the files that the program wrote, so that the tool can report
// them.
func (h *runHandle) collect(r *Result) error {
	wrote := map[string][]sandbox.OverlayEntry{}
	for dir, name := range h.view.names {
		all, err := h.changes(dir)
		if err != nil {
			return fmt.Errorf("what the program wrote in root %s cannot be told, and is dropped: %w", name, err)
		}
		r.SkippedChanges = append(append(r.SkippedChanges, h.leftOut(dir, name, all)...), h.unshown(dir, name)...)
		r.Restrictions = append(r.Restrictions, h.deleted(dir, all)...)
		for _, w := range all {
			if w.Name != "." {
				r.ChangedFiles++
			}
		}
		wrote[dir] = all
	}
	slices.Sort(r.SkippedChanges)
	h.wrote = wrote
	return nil
}

// Prepare authorizes and records the changes that the program proposes. None of
// them has happened yet.
func (h *runHandle) Prepare(ctx context.Context) error {
	if h.wrote == nil { // killed, or never started
		return nil
	}
	b, err := fileInternals.NewChangeSet(h.call)
	if err != nil {
		return err
	}
	h.batch = b
	for _, dir := range slices.Sorted(maps.Keys(h.view.names)) {
		wanted, err := h.wanted(dir)
		if err != nil {
			return err
		}
		if err := b.Add(ctx, h.view.names[dir], h.since, wanted); err != nil {
			return err
		}
	}
	return b.Record(ctx)
}

// Finish performs the changes.
func (h *runHandle) Finish(ctx context.Context) error {
	defer h.close()
	if h.batch == nil {
		return nil
	}
	return h.batch.Perform(ctx)
}

// Abort discards the program's changes.
func (h *runHandle) Abort(context.Context) { h.close() }

// close ends the remaining processes and removes what lies beside the roots. It
// ignores what it cannot remove.
func (h *runHandle) close() {
	if h.batch != nil {
		h.batch.Close()
		h.batch = nil
	}
	if h.proc != nil {
		_ = h.proc.Close()
		h.proc = nil
	}
	for _, s := range h.copies {
		h.driver.returnCopy(s)
	}
	h.copies = nil
	h.scratch.close()
	h.scratch = nil
}

// wanted returns the desired files of the program in one root.
func (h *runHandle) wanted(dir string) ([]files.DesiredFile, error) {
	all, root := h.wrote[dir], h.call.Config().Roots[h.view.names[dir]]
	if !overrides() {
		if err := withinReach(root, all); err != nil {
			return nil, err
		}
	}
	names := map[uint64]int{}
	for _, w := range all {
		if w.Kind == sandbox.File && w.Links > 1 {
			names[w.Ino]++
		}
	}
	out := make([]files.DesiredFile, 0, len(all))
	for _, w := range all {
		want := files.DesiredFile{Path: w.Name, Mtime: w.Mtime, Replaced: w.Replaced, Copied: w.Copied, Same: w.Same}
		switch w.Kind {
		case sandbox.File:
			want.Version = versionOf("file", root, w)
			want.Open = func() (io.ReadCloser, error) { return h.open(dir, w.Name) }
			if names[w.Ino] > 1 {
				want.Inode = w.Ino
			}
		case sandbox.Folder:
			want.Version = versionOf("dir", root, w)
		case sandbox.Link:
			want.Version = files.Version{Type: "link", Target: w.Target, Owner: files.Owner(ownerOf(w))}
		case sandbox.Deleted:
		case sandbox.Other:
			there, err := root.Lstat(w.Name)
			if err == nil {
				return nil, fmt.Errorf("run: %w: the program put a socket, a pipe or a device where %s was, or changed it: %q", ctxperm.ErrInvalid, typed(there.Type), w.Name)
			}
			continue
		}
		out = append(out, want)
	}
	return out, nil
}

// typed returns the name of a type for people.
func typed(t disk.Type) string {
	if t == disk.TypeOther {
		return "one"
	}
	return "a " + t.String()
}

// versionOf returns the version that a program left, with the attributes that
// remit keeps.
func versionOf(kind string, root disk.Root, w sandbox.OverlayEntry) files.Version {
	v := files.Version{Type: kind, Perm: w.Mode, Owner: files.Owner(ownerOf(w)), Xattrs: map[string][]byte{}}
	for key, value := range w.Xattrs {
		if disk.CheckXattr(key) == nil {
			v.Xattrs[key] = value
		}
	}
	if w.HiddenPrefix != "" && w.Same {
		if had, err := root.Xattrs(w.Name); err == nil {
			v.Xattrs = unhide(v.Xattrs, had, w.HiddenPrefix)
		}
	}
	return v
}

// unhide restores the names of attributes that a program left in an overlay.
// The overlay does not show names that begin with prefix. It shows names that
// begin with prefix and "overlay." without "overlay.".
func unhide(left, had map[string][]byte, prefix string) map[string][]byte {
	out := make(map[string][]byte, len(left))
	for key, value := range left {
		if rest, ok := strings.CutPrefix(key, prefix); ok && had[prefix+"overlay."+rest] != nil {
			key = prefix + "overlay." + rest
		}
		out[key] = value
	}
	for key, value := range had {
		rest, ok := strings.CutPrefix(key, prefix)
		if ok && !strings.HasPrefix(rest, "overlay.") && out[key] == nil {
			out[key] = value
		}
	}
	return out
}

func ownerOf(w sandbox.OverlayEntry) disk.Owner {
	return disk.Owner{Known: true, User: w.Uid, Group: w.Gid}
}

var _ callstate.Handle = (*runHandle)(nil)

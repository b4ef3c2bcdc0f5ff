package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
)

// Bounds of the items on a page.
const (
	PageEntries = 500
	PageMatches = 100
)

// Page is a part of a list. The first page is 1. There is no total, because
// that requires reading the rest.
type Page[T any] struct {
	Items   []T
	HasMore bool
	LeftOut map[string]int // skipped entries up to the end of the page, by reason; a directory counts once
}

// The reasons to omit an entry.
const (
	leftDenied   = "denied"     // a grant or the policy denies it
	leftName     = "name"       // its name has no resource
	leftFailed   = "unreadable" // the system refuses it, or it changed meanwhile
	leftMount    = "mount"      // another file system
	leftLink     = "link"       // links are not followed
	leftSpecial  = "special"    // neither a file nor a link nor a directory
	leftTooLarge = "too_large"
	leftNoText   = "not_text"
)

// pager collects one page.
type pager[T any] struct {
	page Page[T]
	skip int
	size int
}

func newPager[T any](number, size int) (*pager[T], error) {
	const most = 1 << 20
	if number < 1 || number > most {
		return nil, invalid("page", "pages are counted from 1")
	}
	return &pager[T]{page: Page[T]{Items: []T{}}, skip: (number - 1) * size, size: size}, nil
}

// add reports whether more is wanted.
func (p *pager[T]) add(item T) bool {
	switch {
	case p.skip > 0:
		p.skip--
	case len(p.page.Items) < p.size:
		p.page.Items = append(p.page.Items, item)
	default:
		p.page.HasMore = true
	}
	return !p.page.HasMore
}

// ListPage returns one page of List.
func (f *Files) ListPage(ctx context.Context, dir string, page int) (Page[Info], error) {
	p, err := newPager[Info](page, PageEntries)
	if err != nil {
		return Page[Info]{}, err
	}
	found, err := f.List(ctx, dir)
	if err != nil {
		return Page[Info]{}, err
	}
	for _, e := range found {
		if !p.add(e) {
			break
		}
	}
	return p.page, nil
}

// Entry is one file that Walk found.
type Entry struct {
	Path string // path below the root
	Info
}

// Walk describes everything below a directory, "." for the root itself. A
// directory precedes its entries; otherwise they are sorted by name. It
// authorizes listing each entry, with one approval request if any is necessary.
// It omits a denied entry with everything below it, and reserved names. It does
// not follow links or enter mounts.
func (f *Files) Walk(ctx context.Context, dir string, page int) (Page[Entry], error) {
	p, err := newPager[Entry](page, PageEntries)
	if err != nil {
		return Page[Entry]{}, err
	}
	h, err := f.entrySearch(ctx)
	if err != nil {
		return Page[Entry]{}, err
	}
	err = h.all(ctx, dir, perm.List, func(disk.Info, string) bool { return true }, func(name string, d disk.Info) (bool, error) {
		return p.add(Entry{Path: name, Info: infoOf(d)}), nil
	})
	return withLeft(p.page, h, err)
}

// entrySearch finds entries below a directory.
type entrySearch struct {
	*reach
	files *Files
	left  map[string]int
}

func (f *Files) entrySearch(ctx context.Context) (*entrySearch, error) {
	r, err := f.reach(ctx)
	return &entrySearch{reach: r, files: f, left: map[string]int{}}, err
}

// adviseFolder adds advice to a denial of one folder that needs an approval and got
// none, which fails the whole search. A result that silently omits the folder
// looks complete.
func adviseFolder(err error) error {
	var denied *callstate.DeniedError
	if errors.As(err, &denied) && denied.Unanswered {
		denied.Around = "name a path without what a person must approve, in one call for each of the other folders"
	}
	return err
}

func (h *entrySearch) leave(why string) { h.left[why]++ }

// withLeft returns a page with the omitted entries of the search.
func withLeft[T any](p Page[T], h *entrySearch, err error) (Page[T], error) {
	if err != nil {
		return Page[T]{}, err
	}
	if len(h.left) > 0 {
		p.LeftOut = h.left
	}
	return p, nil
}

// all visits the wanted entries below a directory for which an action is
// permitted. From the first entry that needs an approval, it collects all
// others. It requests one approval for them, and visits them then.
func (h *entrySearch) all(ctx context.Context, dir string, a perm.Action, wanted func(disk.Info, string) bool, visit func(name string, d disk.Info) (more bool, err error)) error {
	type entry struct {
		name string
		info disk.Info
	}
	var later []entry
	err := h.enter(ctx, dir)
	if err == nil {
		err = h.collect(ctx, dir, a, wanted, func(name string, d disk.Info) (bool, error) {
			if !h.Asks() {
				return visit(name, d)
			}
			if len(later) == h.files.entries {
				return false, invalid(dir, fmt.Sprintf("a person would have to approve more than %d entries of it; take it in parts", h.files.entries))
			}
			later = append(later, entry{name, d})
			return true, nil
		})
	}
	if err = h.end(ctx, err); err != nil {
		return adviseFolder(err)
	}
	for _, e := range later {
		if ok, err := h.still(ctx, a, e.name); !ok || err != nil {
			return err
		}
		if more, err := visit(e.name, e.info); !more || err != nil {
			return err
		}
	}
	return nil
}

// collect finds the wanted entries below a directory. For reading, it also
// accepts a named file, and does not silently omit that.
func (h *entrySearch) collect(ctx context.Context, dir string, a perm.Action, wanted func(disk.Info, string) bool, found func(name string, d disk.Info) (more bool, err error)) error {
	top := disk.Info{Type: disk.TypeDir}
	if a != perm.List {
		var err error
		if top, err = h.files.site.lstat(ctx, dir); err != nil {
			return refused(err)
		}
	}
	if top.Type == disk.TypeFile {
		text, err := h.files.resource(dir)
		if err == nil {
			err = h.Need(ctx, perm.Access(a, text))
		}
		if err == nil && wanted(top, dir) {
			_, err = found(dir, top)
		}
		return err
	}
	_, err := h.walkTree(ctx, dir, func(name string, d disk.Info) (bool, error) {
		if !wanted(d, name) {
			return true, nil
		}
		if a != perm.List || d.Type != disk.TypeDir { // otherwise already decided
			if ok, err := h.may(ctx, a, name); !ok || err != nil {
				return true, err
			}
		}
		return found(name, d)
	})
	return err
}

// still checks again whether the call may do what was approved, because its
// grant can have ended meanwhile.
func (h *entrySearch) still(ctx context.Context, a perm.Action, name string) (bool, error) {
	text, err := h.files.resource(name)
	if err != nil {
		return false, err
	}
	p, err := h.files.authorize(ctx, text, a)
	p.End()
	return err == nil, err
}

// enter authorizes listing a directory that the caller named. A denial is an
// error.
func (h *entrySearch) enter(ctx context.Context, dir string) error {
	if dir != "." {
		if _, err := h.files.resource(dir); err != nil {
			return err
		}
	}
	text, err := h.files.text(dir)
	if err != nil {
		return err
	}
	if err := h.Need(ctx, perm.Access(perm.List, text)); err != nil {
		return err
	}
	return refused(h.files.site.straight(ctx, dir))
}

// may authorizes one entry that was found. It returns false for a denial, or if
// the entry has no valid path.
func (h *entrySearch) may(ctx context.Context, a perm.Action, name string) (bool, error) {
	text, err := h.files.resource(name)
	if err != nil {
		h.leave(leftName)
		return false, nil
	}
	err = h.Need(ctx, perm.Access(a, text))
	var denied *callstate.DeniedError
	if errors.As(err, &denied) && !denied.PolicyFailed { // an engine that cannot decide has denied nothing
		h.leave(leftDenied)
		return false, nil
	}
	return err == nil, err
}

// walkTree visits the entries below a directory that may be listed. It
// authorizes listing the directories in it; visit authorizes the rest. It
// reports whether it reached the end.
func (h *entrySearch) walkTree(ctx context.Context, dir string, visit func(name string, d disk.Info) (more bool, err error)) (bool, error) {
	found, err := h.files.site.entries(ctx, dir)
	if err != nil {
		return true, refused(err)
	}
	for _, e := range found {
		if err := context.Cause(ctx); err != nil {
			return false, err
		}
		name := path.Join(dir, e.Name)
		if reserved(e.Name) {
			continue
		}
		if e.Type == disk.TypeDir {
			if ok, err := h.may(ctx, perm.List, name); err != nil {
				return false, err
			} else if !ok {
				continue
			}
		}
		more, err := visit(name, e)
		if !more || err != nil {
			return more, err
		}
		if e.Type != disk.TypeDir {
			continue
		}
		more, err = h.walkTree(ctx, name, visit)
		if err != nil && !passing(err) {
			return false, err
		}
		if err != nil {
			h.leave(whyLeft(err))
		}
		if !more {
			return false, nil
		}
	}
	return true, nil
}

// whyLeft returns the reason to omit an entry.
func whyLeft(err error) string {
	if errors.Is(err, disk.ErrEscape) {
		return leftMount
	}
	return leftFailed
}

// passing reports whether an entry cannot be read, is gone, or belongs to
// another mount. A search continues without it.
func passing(err error) bool {
	return moving(err) || errors.Is(err, disk.ErrEscape) || errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrConflict)
}

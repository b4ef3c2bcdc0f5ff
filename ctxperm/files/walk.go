package files

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
)

// How many items a page has.
const (
	PageEntries = 500
	PageMatches = 100
)

// Page is a part of a list. Pages are counted from 1. There is no total: to know
// it the rest would have to be looked at.
type Page[T any] struct {
	Items   []T
	HasMore bool
}

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

// ListPage is List, one page of it.
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
	Path string // below the root
	Info
}

// Walk describes all that is below a directory, "." for the root itself: a
// directory before what is in it, else sorted by name. It asks for listing each
// entry; one that is denied is skipped, with all that is below it, as are
// reserved names. Links are not followed, and mounts not entered.
func (f *Files) Walk(ctx context.Context, dir string, page int) (Page[Entry], error) {
	p, err := newPager[Entry](page, PageEntries)
	if err != nil {
		return Page[Entry]{}, err
	}
	if err := f.enter(ctx, dir); err != nil {
		return Page[Entry]{}, err
	}
	_, err = f.roam(ctx, dir, func(name string, d disk.Info) (bool, error) {
		if d.Type != disk.TypeDir {
			if ok, err := f.may(ctx, perm.List, name); !ok || err != nil {
				return true, err
			}
		}
		return p.add(Entry{Path: name, Info: infoOf(d)}), nil
	})
	return p.page, err
}

// enter asks for listing a directory that is named by the caller: to be denied
// there is an error.
func (f *Files) enter(ctx context.Context, dir string) error {
	if dir != "." {
		if _, err := f.resource(dir); err != nil {
			return err
		}
	}
	text, err := f.text(dir)
	if err != nil {
		return err
	}
	p, err := f.authorize(ctx, text, perm.List)
	if err != nil {
		return err
	}
	p.End()
	return refused(f.site.straight(ctx, dir))
}

// may asks for one entry that was found; false where the answer is no, or where
// no path stands for the entry.
func (f *Files) may(ctx context.Context, a perm.Action, name string) (bool, error) {
	text, err := f.resource(name)
	if err != nil {
		return false, nil
	}
	p, err := f.authorize(ctx, text, a)
	if errors.Is(err, ctxperm.ErrDenied) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p.End()
	return true, nil
}

// roam visits what is below a directory that may be listed. Directories in it are
// asked for; visit asks for the rest. It says whether it came to the end.
func (f *Files) roam(ctx context.Context, dir string, visit func(name string, d disk.Info) (more bool, err error)) (bool, error) {
	found, err := f.site.entries(ctx, dir)
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
			if ok, err := f.may(ctx, perm.List, name); err != nil {
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
		more, err = f.roam(ctx, name, visit)
		if err != nil && !passing(err) {
			return false, err
		}
		if !more {
			return false, nil
		}
	}
	return true, nil
}

// passing reports whether what was found cannot be read, or no longer, or is of
// another mount: a search goes on without it.
func passing(err error) bool {
	return moving(err) || errors.Is(err, disk.ErrEscape) || errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrConflict)
}

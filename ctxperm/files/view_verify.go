package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/verify"
)

// newView returns a verifier's view of the files of one call: the named ones,
// and those that the call changed. The previous content comes from the changes
// and the content stored with them.
func newView(roots handleaccess.Roots, h host.Host, keep journal.ContentStore, resources []string, changes []effect.Change) verify.ResourceView {
	w := callView{scheme: scheme{roots: roots, host: h}, keep: keep, changes: changes, reach: map[string]bool{}}
	for _, text := range resources {
		w.reach[text] = true
	}
	for _, c := range changes {
		w.reach[c.Resource] = true
	}
	return w
}

type callView struct {
	scheme
	keep    journal.ContentStore
	changes []effect.Change
	reach   map[string]bool
}

func (w callView) at(ctx context.Context, resource string) (hostRoot, string, error) {
	if !w.reach[resource] {
		return hostRoot{}, "", fmt.Errorf("%s: %w: it is not one of the call's", resource, ctxperm.ErrDenied)
	}
	where, path, err := w.locate(resource)
	if err != nil {
		return where, path, err
	}
	return where, path, where.straight(ctx, path)
}

// Version returns the token of the current version. Nothing exists below a
// link: no path leads through one.
func (w callView) Version(ctx context.Context, resource string) (string, error) {
	where, path, err := w.at(ctx, resource)
	if missing(err) || errors.Is(err, errAlias) {
		return string(effect.Absent), nil
	}
	if err != nil {
		return "", err
	}
	s, err := where.look(ctx, path, hashing)
	if err != nil {
		return "", err
	}
	return string(s.Token()), nil
}

// Open opens the current file.
func (w callView) Open(ctx context.Context, resource string) (io.ReadCloser, error) {
	where, path, err := w.at(ctx, resource)
	if err != nil {
		return nil, err
	}
	info, err := where.lstat(ctx, path)
	if err != nil {
		return nil, err
	}
	if info.Type != disk.TypeFile { // a link would show another file's content
		return nil, fmt.Errorf("%s is now of type %s: %w", resource, info.Type, disk.ErrType)
	}
	if err := where.host.Point(ctx, "files.open"); err != nil {
		return nil, err
	}
	return where.root.Open(path)
}

// Before opens the content before the call's first change of the file.
func (w callView) Before(ctx context.Context, resource string) (io.ReadCloser, error) {
	for _, c := range w.changes {
		if c.Resource != resource || c.Scheme != schemeName {
			continue
		}
		inv, err := readInverse(c)
		if err != nil {
			return nil, err
		}
		if inv.Was == nil || inv.Was.Kept == nil {
			return nil, fmt.Errorf("%s: there was no file: %w", resource, fs.ErrNotExist)
		}
		return w.keep.OpenContent(ctx, *inv.Was.Kept)
	}
	return nil, fmt.Errorf("%s: the call did not change it: %w", resource, fs.ErrNotExist)
}

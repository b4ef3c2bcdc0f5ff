package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/sparse"
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

// at returns the place of a resource. Its folder is open until end is called.
func (w callView) at(ctx context.Context, resource string) (where hostRoot, path string, end func(), err error) {
	if !w.reach[resource] {
		return hostRoot{}, "", nil, fmt.Errorf("%s: %w: it is not one of the call's", resource, ctxperm.ErrDenied)
	}
	if where, path, err = w.locate(resource); err != nil {
		return where, path, nil, err
	}
	where, end = where.pin(path)
	if err = where.straight(ctx, path); err != nil {
		end()
	}
	return where, path, end, err
}

// Version returns the token of the current version. Nothing exists below a
// link: no path leads through one.
func (w callView) Version(ctx context.Context, resource string) (string, error) {
	where, path, end, err := w.at(ctx, resource)
	if missing(err) || errors.Is(err, errAlias) {
		return string(effect.Absent), nil
	}
	if err != nil {
		return "", err
	}
	defer end()
	s, err := where.look(ctx, path, hashing)
	if err != nil {
		return "", err
	}
	return string(s.Token()), nil
}

// Open opens the current file. The reader also has the version of what it read,
// see viewedFile.
func (w callView) Open(ctx context.Context, resource string) (io.ReadCloser, error) {
	where, path, end, err := w.at(ctx, resource)
	if err != nil {
		return nil, err
	}
	f, err := where.view(ctx, resource, path)
	if err != nil {
		end()
		return nil, err
	}
	f.end = end
	return f, nil
}

// view opens a file. If it is replaced between two steps, it opens the new one.
func (s hostRoot) view(ctx context.Context, resource, path string) (f *viewedFile, err error) {
	for range looks {
		if f, err = s.viewOnce(ctx, resource, path); !errors.Is(err, disk.ErrBusy) {
			break
		}
	}
	return f, err
}

func (s hostRoot) viewOnce(ctx context.Context, resource, path string) (*viewedFile, error) {
	info, err := s.lstat(ctx, path)
	if err != nil {
		return nil, err
	}
	if info.Type != disk.TypeFile { // a link would show another file's content
		return nil, fmt.Errorf("%s is now of type %s: %w", resource, info.Type, disk.ErrType)
	}
	if err := s.host.Point(ctx, "files.open"); err != nil {
		return nil, err
	}
	f, err := s.reopen(path, info)
	if err != nil {
		return nil, err
	}
	return &viewedFile{File: f, hostRoot: s, path: path, info: info, sum: canon.NewHash()}, nil
}

// viewedFile is an open file of a view. A verifier that has read it to its end
// gets the version to which these bytes belong, without a second read.
type viewedFile struct {
	disk.File
	hostRoot
	path string
	info disk.Info
	sum  *canon.Hash
	done bool // it was read to its end
	end  func()
}

func (f *viewedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	_, _ = f.sum.Write(p[:n]) // a hash never returns an error
	f.done = errors.Is(err, io.EOF)
	return n, err
}

// Hole skips zeros that the file system need not read.
func (f *viewedFile) Hole() (int64, error) {
	n, err := sparse.HoleOf(f.File)
	if err == nil {
		err = f.sum.Skip(n)
	}
	return n, err
}

// Version returns the token of the version that was read. It looks whether the
// name still leads to the file, which still has the same time, size, owner and
// bits: a process that replaced or wrote it meanwhile gave it another version.
// ok is false if it cannot tell, as then, or if the file was not read to its
// end: ask the view.
func (f *viewedFile) Version(ctx context.Context) (token string, ok bool) {
	own, has := f.File.(disk.OpenMetadata)
	if !f.done || !has || f.host.Point(ctx, "files.look") != nil {
		return "", false
	}
	xattrs, err := own.Xattrs()
	if err != nil || f.stillAs(f.path, f.info) != nil {
		return "", false
	}
	st := state{Version: Version{Type: typeFile, Perm: f.info.Perm, Owner: Owner(f.info.Owner), Content: string(f.sum.Digest()), Xattrs: xattrs}}
	return string(st.Token()), true
}

// Close also closes the folder.
func (f *viewedFile) Close() error {
	f.end()
	return f.File.Close()
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

package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/sparse"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/journal"
)

// capture is the state of an entry that was read, and its content if stored.
type capture struct {
	was  state
	blob *journal.Blob
}

// Move renames a file, a link, or a directory with everything in it, to a free
// name. It is a delete of one name and a write of the other. It authorizes
// reading and deleting each entry, writing its new name, and listing each
// directory. If one access is denied, it refuses the whole operation.
//
// It moves a directory entry by entry, not by one rename. Each entry has its
// own permission, claim and inverse. A concurrent change by another process
// affects only that entry. Move records everything before the first effect.
// Then it creates all entries under the new name, and only then removes the old
// ones. Times stay; setuid and setgid do not.
func (f *Files) Move(ctx context.Context, from, to string) error {
	t, err := f.authorizeTreeAndNames(ctx, from, to, perm.Read, perm.Delete)
	if err != nil {
		return err
	}
	p, err := f.hold(ctx, t.accesses)
	if err != nil {
		return err
	}
	defer p.End()
	taken := map[string]capture{}
	var all []fileEdit
	for _, n := range t.nodes {
		var c capture
		if c.was, c.blob, err = f.capture(ctx, p, n.path); err != nil {
			return err
		}
		if err := n.still(c.was); err != nil {
			return err
		}
		taken[n.path] = c
		img := likeness(c.was)
		img.Owner = c.was.Owner
		img.mtime = c.was.info.Mtime
		if c.blob != nil {
			img.open = kept(ctx, p, c.blob)
		}
		a, err := f.fresh(moved(n.path, from, to), img)
		if err != nil {
			return err
		}
		all = append(all, a)
	}
	return f.alter(ctx, p, append(all, t.removal(taken)...)...)
}

// Copy copies a file, a link, or a directory with everything in it, to a free
// name. It authorizes reading each entry, writing its new name, and listing
// each directory. If one access is denied, it refuses the whole operation. It
// copies bits, attributes and the targets of links, but not times, setuid and
// setgid.
func (f *Files) Copy(ctx context.Context, from, to string) error {
	t, err := f.authorizeTreeAndNames(ctx, from, to, perm.Read)
	if err != nil {
		return err
	}
	p, err := f.hold(ctx, t.accesses)
	if err != nil {
		return err
	}
	defer p.End()
	var all []fileEdit
	for _, n := range t.nodes {
		was, err := f.site.look(ctx, n.path, hashing)
		if err != nil {
			return refused(err)
		}
		if err := n.still(was); err != nil {
			return err
		}
		img := likeness(was)
		img.open = func() (io.ReadCloser, error) { return f.site.pinned(n.path, was) }
		a, err := f.fresh(moved(n.path, from, to), img)
		if err != nil {
			return err
		}
		all = append(all, a)
	}
	err = f.alter(ctx, p, all...)
	if errors.Is(err, errOther) {
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return err
}

// authorizeTreeAndNames authorizes a tree and the new names of its entries.
func (f *Files) authorizeTreeAndNames(ctx context.Context, from, to string, actions ...perm.Action) (*tree, error) {
	if _, err := f.resource(to); err != nil {
		return nil, err
	}
	if from == to || strings.HasPrefix(to, from+"/") {
		return nil, invalid(to, "it is "+from+" itself, or in it")
	}
	t := &tree{actions: actions, also: func(below string) ([]perm.ResourceAccess, error) {
		text, err := f.resource(path.Join(to, below))
		return []perm.ResourceAccess{perm.Access(perm.Write, text)}, err
	}}
	if err := f.grow(ctx, t, from); err != nil {
		return nil, err
	}
	if err := f.site.straight(ctx, to); err != nil {
		return nil, refused(err)
	}
	if err := f.free(ctx, to); err != nil {
		return nil, err
	}
	for _, n := range t.nodes {
		if n.info.Type != disk.TypeLink {
			continue
		}
		target, err := f.site.on().Readlink(n.path)
		if err != nil {
			return nil, refused(err)
		}
		err = checkTarget(moved(n.path, from, to), target)
		if err != nil && checkTarget(n.path, target) == nil { // a target that already leads out is no new risk
			return nil, err
		}
	}
	return t, nil
}

// free fails with fs.ErrExist if the name exists.
func (f *Files) free(ctx context.Context, name string) error {
	_, err := f.site.lstat(ctx, name)
	if err == nil {
		return &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	if missing(err) {
		return nil
	}
	return refused(err)
}

// moved returns the new name of an entry below from.
func moved(name, from, to string) string { return to + strings.TrimPrefix(name, from) }

// likeness returns the image of a state, for another name.
func likeness(was state) fileImage {
	img := fileImage{Version: was.unprivileged()}
	img.Owner = Owner{} // the process that creates it
	return img
}

// fresh returns the edit that creates a file under a free name.
func (f *Files) fresh(name string, img fileImage) (fileEdit, error) {
	text, err := f.resource(name)
	return fileEdit{path: name, text: text, build: func(was state, _ *journal.Blob) (fileImage, error) {
		if was.exists() {
			return fileImage{}, conflict(name, "it exists by now")
		}
		return img, nil
	}}, err
}

// errOther: the file is no longer the version whose digest was recorded.
var errOther = errors.New("it changed while it was copied")

// pinned opens a file. The read ends with errOther if the content is not that
// of the state.
func (s hostRoot) pinned(name string, was state) (io.ReadCloser, error) {
	file, err := s.on().Open(name)
	if err != nil {
		return nil, err
	}
	return &checked{file: file, name: name, want: was.Content, hash: canon.NewHash()}, nil
}

type checked struct {
	file disk.File
	name string
	want string
	hash *canon.Hash
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.file.Read(p)
	_, _ = c.hash.Write(p[:n])
	if errors.Is(err, io.EOF) && string(c.hash.Digest()) != c.want {
		return n, fmt.Errorf("%s: %w", c.name, errOther)
	}
	return n, err
}

func (c *checked) Hole() (int64, error) {
	n, err := sparse.HoleOf(c.file)
	if err == nil {
		err = c.hash.Skip(n)
	}
	return n, err
}

func (c *checked) Close() error { return c.file.Close() }

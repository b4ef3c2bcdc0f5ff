package files

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/journal"
)

// The permission bits of new files.
const (
	defaultFileMode fs.FileMode = 0o644
	defaultDirMode  fs.FileMode = 0o755
)

// WriteOptions configures a write.
type WriteOptions struct {
	Perm        fs.FileMode // 0: those of the replaced file, or 0644 for a new one
	IfAbsent    bool        // an existing file is fs.ErrExist
	MakeParents bool        // creates missing parents, each with its own change and access
}

// Write sets the content of a file to data, and replaces the whole file.
// Attributes stay. If nothing changes, it records no change.
func (f *Files) Write(ctx context.Context, path string, data []byte, o WriteOptions) error {
	if most := f.site.most; len(data) > most {
		return invalid(path, fmt.Sprintf("%d bytes; at most %d are written", len(data), most))
	}
	if o.Perm&^fs.ModePerm != 0 || (o.Perm != 0 && o.Perm&0o400 == 0) {
		return invalid(path, "permission bits must be between 0400 and 0777 and readable for the owner, so that the change can be reverted")
	}
	text, err := f.resource(path)
	if err != nil {
		return err
	}
	p, err := f.authorize(ctx, text, perm.Write)
	if err != nil {
		return err
	}
	defer p.End()
	if o.MakeParents && parentOf(path) != "." {
		if err := f.site.straight(ctx, path); err != nil {
			return refused(err)
		}
		if err := f.makeDirs(ctx, parentOf(path), defaultDirMode); err != nil {
			return err
		}
	}
	if err := p.LockResource(ctx, text); err != nil { // after its parents: locks are taken from the top
		return err
	}
	first := func(s hostRoot) (info disk.Info, err error) {
		if err := s.straight(ctx, path); err != nil {
			return info, refused(err)
		}
		if info, err = s.writable(ctx, path); err == nil && o.IfAbsent && info.Type != 0 {
			err = &fs.PathError{Op: "write", Path: path, Err: fs.ErrExist}
		}
		return info, err
	}
	return f.alter(ctx, p, fileEdit{path: path, text: text, first: first, build: func(was state, _ *journal.Blob) (fileImage, error) {
		if was.exists() && (was.Type != typeFile || o.IfAbsent) {
			return fileImage{}, conflict(path, "it was replaced")
		}
		return o.image(was.Version, data), nil
	}})
}

// image returns the image that replaces a version.
func (o WriteOptions) image(was Version, data []byte) fileImage {
	img := rewritten(was, data)
	switch {
	case o.Perm != 0:
		img.Version = img.rebit(o.Perm)
	case img.fresh:
		img.Perm = defaultFileMode
	}
	return img
}

// writable describes the file that a write replaces, or returns the zero Info.
func (s hostRoot) writable(ctx context.Context, path string) (disk.Info, error) {
	info, err := s.lstat(ctx, path)
	if missing(err) {
		return disk.Info{}, nil
	}
	switch {
	case err != nil:
		return disk.Info{}, refused(err)
	case info.Type == disk.TypeLink:
		return disk.Info{}, invalid(path, "it is a symbolic link; write to its target, or delete the link first")
	case info.Type != disk.TypeFile:
		return disk.Info{}, invalid(path, "it is not a file but of type "+info.Type.String())
	case info.Links > 1:
		return disk.Info{}, invalid(path, "it has other names too (hard links), which would keep the old content; delete it first to give it content of its own")
	}
	return info, nil
}

// Edit replaces a text in a file of at most MaxFile bytes: its only occurrence,
// or all of them. It authorizes reading and writing.
func (f *Files) Edit(ctx context.Context, path, old, new string, all bool) error {
	p, text, err := f.permit(ctx, path, perm.Read, perm.Write)
	if err != nil {
		return err
	}
	defer p.End()
	was, before, err := f.rewritable(ctx, path)
	if err == nil && !was.exists() {
		err = &fs.PathError{Op: "lstat", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return err
	}
	after, err := Replace(before, old, new, all)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if most := f.site.most; len(after) > most {
		return invalid(path, fmt.Sprintf("it would have %d bytes; at most %d are written", len(after), most))
	}
	blob, err := p.StoreContent(ctx, bytes.NewReader(before))
	if err != nil {
		return err
	}
	return f.alter(ctx, p, fileEdit{path: path, text: text, was: &was, asked: true, blob: &blob, build: func(state, *journal.Blob) (fileImage, error) {
		return WriteOptions{}.image(was.Version, after), nil
	}})
}

// rewritable reads a file that gets other content, with the state of exactly
// these bytes. It returns the zero state if there is none.
func (f *Files) rewritable(ctx context.Context, path string) (state, []byte, error) {
	s, end := f.site.pin(path)
	defer end()
	info, err := s.writable(ctx, path)
	if err != nil || info.Type == 0 {
		return state{}, nil, err
	}
	was, data, err := s.readAlone(ctx, path)
	return was, data, refused(err)
}

// Replace applies an Edit to the content. It fails with ctxperm.ErrInvalid if
// old does not occur, or occurs more than once and all is not set.
func Replace(content []byte, old, new string, all bool) ([]byte, error) {
	switch n := bytes.Count(content, []byte(old)); {
	case old == "":
		return nil, fmt.Errorf("%w: the text to be replaced is empty", ctxperm.ErrInvalid)
	case n == 0:
		return nil, fmt.Errorf("%w: the text to be replaced does not occur; read the file and copy it exactly, with its white space", ctxperm.ErrInvalid)
	case n > 1 && !all:
		return nil, fmt.Errorf("%w: the text to be replaced occurs %d times; give more of what surrounds it, or replace all", ctxperm.ErrInvalid, n)
	}
	return bytes.ReplaceAll(content, []byte(old), []byte(new)), nil
}

func readAll(r io.Reader, most int) ([]byte, string, error) {
	data, err := io.ReadAll(io.LimitReader(atOnce(r), int64(most)+1))
	if err != nil {
		return nil, "", err
	}
	if len(data) > most {
		return nil, "", fmt.Errorf("%w: the file has more than %d bytes; read a part of it", ctxperm.ErrInvalid, most)
	}
	return data, string(canon.SumBytes(data)), nil
}

// keeping returns a sink that stores what it reads, and the last blob that it
// stored.
func keeping(keep func(io.Reader) (journal.Blob, error)) (contentSink, *journal.Blob) {
	var blob journal.Blob
	return func(r io.Reader) (string, error) {
		var err error
		blob, err = keep(atOnce(r))
		return blob.Ref().Digest, err
	}, &blob
}

// parentOf returns the parent directory of a name.
func parentOf(name string) string { return path.Dir(name) }

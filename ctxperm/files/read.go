package files

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
)

// refused turns the disk's refusals to leave the root into invalid arguments.
func refused(err error) error {
	if errors.Is(err, errAlias) || errors.Is(err, disk.ErrEscape) || errors.Is(err, disk.ErrPath) {
		return fmt.Errorf("%w: %w", ctxperm.ErrInvalid, err)
	}
	return err
}

// ReadFile returns the content of a file of at most MaxFile bytes.
func (f *Files) ReadFile(ctx context.Context, path string) ([]byte, error) {
	p, _, err := f.permit(ctx, path, perm.Read)
	if err != nil {
		return nil, err
	}
	defer p.End()
	_, data, err := f.site.readWithState(ctx, path)
	return data, refused(err)
}

// Part is a range of a file.
type Part struct {
	Data []byte
	Size int64 // size of the whole file
}

// Read returns up to limit bytes of a file of any size, starting at offset.
// Limit 0 is the bound for whole files, which is also the maximum. After the
// end it returns no data and no error.
func (f *Files) Read(ctx context.Context, path string, offset, limit int64) (Part, error) {
	p, _, err := f.permit(ctx, path, perm.Read)
	if err != nil {
		return Part{}, err
	}
	defer p.End()
	most := int64(f.site.most)
	if offset < 0 || limit < 0 || limit > most {
		return Part{}, invalid(path, fmt.Sprintf("an offset is at least 0 and a limit between 0 and %d", most))
	}
	if limit == 0 {
		limit = most
	}
	var part Part
	err = f.site.open(ctx, path, func(file disk.File, info disk.Info) error {
		part = Part{Size: info.Size}
		if _, err := io.CopyN(io.Discard, file, offset); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		part.Data, err = io.ReadAll(io.LimitReader(file, limit))
		return err
	})
	return part, refused(err)
}

// Stat describes a path. For a link, it describes the link itself.
func (f *Files) Stat(ctx context.Context, path string) (Info, error) {
	p, _, err := f.permit(ctx, path, perm.Read)
	if err != nil {
		return Info{}, err
	}
	defer p.End()
	d, err := f.site.lstat(ctx, path)
	if err != nil {
		return Info{}, refused(err)
	}
	info := infoOf(d)
	if d.Type == disk.TypeLink {
		info.Target, err = f.site.on().Readlink(path)
	}
	return info, err
}

// List describes the entries of a directory, "." for the root itself, sorted by
// name. It omits reserved names.
func (f *Files) List(ctx context.Context, dir string) ([]Info, error) {
	if dir != "." {
		if _, err := f.resource(dir); err != nil {
			return nil, err
		}
	}
	text, err := f.text(dir)
	if err != nil {
		return nil, err
	}
	p, err := f.authorize(ctx, text, perm.List)
	if err != nil {
		return nil, err
	}
	defer p.End()
	if err := f.site.straight(ctx, dir); err != nil {
		return nil, refused(err)
	}
	found, err := f.site.entries(ctx, dir)
	if errors.Is(err, disk.ErrType) {
		return nil, fmt.Errorf("%s is not a directory: %w", dir, err)
	}
	if err != nil {
		return nil, refused(err)
	}
	entries := make([]Info, 0, len(found))
	for _, e := range found {
		if !reserved(e.Name) {
			entries = append(entries, infoOf(e))
		}
	}
	return entries, nil
}

// file describes a regular file, never one behind a link.
func (s hostRoot) file(ctx context.Context, path string) (disk.Info, error) {
	info, err := s.lstat(ctx, path)
	switch {
	case err != nil:
		return disk.Info{}, err
	case info.Type == disk.TypeLink:
		return disk.Info{}, fmt.Errorf("%s %w; read the target of the link", path, errAlias)
	case info.Type != disk.TypeFile:
		return disk.Info{}, fmt.Errorf("%s is not a file but of type %s: %w", path, info.Type, disk.ErrType)
	}
	return info, nil
}

// open calls act with a regular file.
func (s hostRoot) open(ctx context.Context, path string, act func(disk.File, disk.Info) error) error {
	info, err := s.file(ctx, path)
	if err != nil {
		return err
	}
	if err := s.host.Point(ctx, "files.open"); err != nil {
		return err
	}
	file, err := s.on().Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	opened, err := file.Stat()
	if err != nil {
		return err
	}
	if opened.Inode != info.Inode || opened.Device != info.Device {
		return fmt.Errorf("%s: %w: it was replaced while it was opened", path, disk.ErrBusy)
	}
	return act(file, opened)
}

// readWithState reads a file and the state that belongs to exactly these bytes.
func (s hostRoot) readWithState(ctx context.Context, path string) (state, []byte, error) {
	if _, err := s.file(ctx, path); err != nil {
		return state{}, nil, err
	}
	into, data := s.inMemory()
	st, err := s.look(ctx, path, into)
	return checkRead(path, st, *data, err)
}

// readAlone is readWithState for a file that is to be replaced, after the check
// that it can be: no program may have it open for writing.
func (s hostRoot) readAlone(ctx context.Context, path string) (state, []byte, error) {
	into, data := s.inMemory()
	st, busy, err := s.lookAlone(ctx, path, into)
	if busy != nil && !missing(busy) {
		return state{}, nil, unused(path, busy)
	}
	return checkRead(path, st, *data, err)
}

// inMemory returns a sink, and the content that it received last.
func (s hostRoot) inMemory() (contentSink, *[]byte) {
	var data []byte
	return func(r io.Reader) (digest string, err error) {
		data, digest, err = readAll(r, s.most)
		return digest, err
	}, &data
}

func checkRead(path string, st state, data []byte, err error) (state, []byte, error) {
	if err == nil && st.Type != typeFile {
		err = fmt.Errorf("%s: %w: it was replaced while it was read", path, disk.ErrBusy)
	}
	if err != nil {
		return state{}, nil, err
	}
	return st, data, nil
}

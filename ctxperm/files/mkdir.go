package files

import (
	"context"
	"io/fs"
	"iter"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/journal"
)

// Mkdir creates a directory; bits 0 are 0755. An existing name is fs.ErrExist.
func (f *Files) Mkdir(ctx context.Context, path string, bits fs.FileMode) error {
	if bits == 0 {
		bits = defaultDirMode
	}
	if err := checkDirBits(path, bits); err != nil {
		return err
	}
	p, text, err := f.permit(ctx, path, perm.Write)
	if err != nil {
		return err
	}
	defer p.End()
	if _, err := f.site.lstat(ctx, path); !missing(err) {
		if err == nil {
			err = &fs.PathError{Op: "mkdir", Path: path, Err: fs.ErrExist}
		}
		return refused(err)
	}
	return f.alter(ctx, p, fileEdit{path: path, text: text, build: func(was state, _ *journal.Blob) (fileImage, error) {
		if was.exists() {
			return fileImage{}, conflict(path, "it exists by now")
		}
		return fileImage{Version: Version{Type: typeDir, Perm: bits}, fresh: true}, nil
	}})
}

// MkdirAll creates a directory and its missing parents. It authorizes each of
// them and records all together; bits 0 are 0755. An existing directory stays
// unchanged.
func (f *Files) MkdirAll(ctx context.Context, path string, bits fs.FileMode) error {
	if bits == 0 {
		bits = defaultDirMode
	}
	if err := checkDirBits(path, bits); err != nil {
		return err
	}
	p, _, err := f.grant(ctx, path, perm.Write)
	if err != nil {
		return err
	}
	defer p.End() // held until the parents exist
	return f.makeDirs(ctx, path, bits)
}

// makeDirs creates the missing directories of a path, topmost first.
func (f *Files) makeDirs(ctx context.Context, path string, bits fs.FileMode) error {
	var accesses []perm.ResourceAccess
	var all []fileEdit
	for end := range ends(path) {
		dir := path[:end]
		info, err := f.site.lstat(ctx, dir)
		if err == nil && info.Type != disk.TypeDir {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: fs.ErrExist}
		}
		if err == nil {
			continue
		}
		if !missing(err) {
			return refused(err)
		}
		text, err := f.resource(dir)
		if err != nil {
			return err
		}
		accesses = append(accesses, perm.Access(perm.Write, text))
		all = append(all, fileEdit{path: dir, text: text, build: func(was state, _ *journal.Blob) (fileImage, error) {
			if was.Type == typeDir { // another call created it first
				return fileImage{Version: was.Version}, nil
			}
			if was.exists() {
				return fileImage{}, conflict(dir, "it exists by now")
			}
			return fileImage{Version: Version{Type: typeDir, Perm: bits}, fresh: true}, nil
		}})
	}
	if len(all) == 0 {
		return nil
	}
	p, err := f.hold(ctx, accesses)
	if err != nil {
		return err
	}
	defer p.End()
	return f.alter(ctx, p, all...)
}

// ends yields the end of each directory in a path, topmost first.
func ends(path string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range path {
			if path[i] == '/' && !yield(i) {
				return
			}
		}
		yield(len(path))
	}
}

func checkDirBits(path string, bits fs.FileMode) error {
	if bits&^fs.ModePerm != 0 || bits&0o700 != 0o700 {
		return invalid(path, "permission bits of a directory are between 0700 and 0777")
	}
	return nil
}

package files

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/journal"
)

// Chmod sets the permission bits of a file or a directory. Its time and content
// stay. A file is replaced by one that differs in nothing else, as in a write.
// A directory gets its bits in place.
func (f *Files) Chmod(ctx context.Context, path string, bits fs.FileMode) error {
	if bits&^fs.ModePerm != 0 || bits&0o400 == 0 {
		return invalid(path, "permission bits must be between 0400 and 0777 and readable for the owner, so that the change can be reverted")
	}
	p, text, err := f.permit(ctx, path, perm.Write)
	if err != nil {
		return err
	}
	defer p.End()
	info, err := f.site.lstat(ctx, path)
	if err != nil {
		return refused(err)
	}
	if info.Type == disk.TypeDir {
		err = checkDirBits(path, bits)
	} else {
		_, err = f.site.writable(ctx, path)
	}
	if err != nil {
		return err
	}
	n := node{path: path, info: info}
	return f.alter(ctx, p, fileEdit{path: path, text: text, build: func(was state, blob *journal.Blob) (fileImage, error) {
		img := fileImage{Version: was.rebit(bits), mtime: was.info.Mtime}
		if blob != nil {
			img.open = kept(ctx, p, blob)
		}
		return img, n.still(was)
	}})
}

// Append adds data to the end of a file, or creates the file. It authorizes a
// write. The file must not exceed the size that is written whole. Append
// replaces the whole file, as a write does, so that no reader sees half of the
// data.
func (f *Files) Append(ctx context.Context, path string, data []byte) error {
	p, text, err := f.permit(ctx, path, perm.Write)
	if err != nil {
		return err
	}
	defer p.End()
	was, before, err := f.rewritable(ctx, path)
	if err != nil {
		return err
	}
	a := fileEdit{path: path, text: text, was: &was, asked: was.exists()}
	if was.exists() {
		blob, err := p.StoreContent(ctx, bytes.NewReader(before))
		if err != nil {
			return err
		}
		a.blob = &blob
	}
	if size, most := len(before)+len(data), f.site.most; size > most {
		return invalid(path, fmt.Sprintf("it would have %d bytes; at most %d are written", size, most))
	}
	a.build = func(was state, _ *journal.Blob) (fileImage, error) {
		return WriteOptions{}.image(was.Version, append(before, data...)), nil
	}
	return f.alter(ctx, p, a)
}

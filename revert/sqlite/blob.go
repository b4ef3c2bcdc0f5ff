package sqlite

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/sparse"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// StoreContent stores content. More than InlineMax bytes become a separate
// file, in this order: write, sync, rename, sync the name. Only a complete file
// ever has a name, and no crash removes it after StoreContent returns.
func (j *Journal) StoreContent(ctx context.Context, r io.Reader) (journal.Blob, error) {
	if err := j.usable(ctx); err != nil {
		return journal.Blob{}, err
	}
	if failed := j.failed.Load(); failed != nil {
		return journal.Blob{}, *failed
	}
	if blob, shared, err := j.share(ctx, r); shared {
		return blob, err
	}
	var file *os.File
	var to *sparse.Writer // a sparse file stays sparse here
	blob, err := journal.ReadContent(ctx, r, func() (w io.Writer, err error) {
		file, err = j.newBlob()
		to = sparse.NewWriter(sparse.File{File: file})
		return to, err
	})
	if err == nil && to != nil {
		err = to.End()
	}
	if file == nil || err != nil {
		return blob, errors.Join(err, discard(file))
	}
	if err := j.settle(file, blob.Ref()); err != nil {
		return journal.Blob{}, err
	}
	return blob, nil
}

// cloner is a file that can share its content with another file, so that
// storing it needs no space.
type cloner interface {
	Stat() (disk.Info, error)
	CloneTo(empty *os.File) error
}

// share stores the content of a file without copying it, if the file system can
// do that and the content does not fit in a row. It then reads the clone, which
// no other process changes.
func (j *Journal) share(ctx context.Context, r io.Reader) (blob journal.Blob, shared bool, err error) {
	from, ok := r.(cloner)
	if !ok {
		return journal.Blob{}, false, nil
	}
	if info, err := from.Stat(); err != nil || info.Size <= journal.InlineMax {
		return journal.Blob{}, false, nil
	}
	file, err := j.newBlob()
	if err != nil {
		return journal.Blob{}, true, fmt.Errorf("keep: %w", err)
	}
	if from.CloneTo(file) != nil {
		return journal.Blob{}, false, discard(file)
	}
	blob, err = journal.ReadContent(ctx, sparse.File{File: file}, func() (io.Writer, error) { return io.Discard, nil })
	if err != nil || blob.Inline().IsPresent() { // it was truncated meanwhile
		return blob, true, errors.Join(err, discard(file))
	}
	if err := j.settle(file, blob.Ref()); err != nil {
		return journal.Blob{}, true, err
	}
	return blob, true, nil
}

// newBlob creates the file of a blob that has no name yet.
func (j *Journal) newBlob() (*os.File, error) {
	path := filepath.Join(j.newBlobs(), j.Owner()+"."+rand.Text())
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return f, explainFS(j.dir, err)
}

// discard removes a file that did not become a blob.
func discard(file *os.File) error {
	if file == nil {
		return nil
	}
	return errors.Join(file.Close(), ignoreMissing(os.Remove(file.Name())))
}

// settle gives a file its final name. A failed sync poisons: the result of a
// second one is not reliable.
func (j *Journal) settle(file *os.File, ref effect.BlobRef) error {
	j.kept.add(ref) // before it has the name
	//mutant:barrier
	if err := file.Sync(); err != nil {
		return errors.Join(j.distrust(err), discard(file))
	}
	if err := file.Close(); err != nil {
		return errors.Join(j.distrust(err), ignoreMissing(os.Remove(file.Name())))
	}
	path := blobPath(j.dir, ref)
	err := os.Mkdir(filepath.Dir(path), 0o700)
	if err == nil || errors.Is(err, os.ErrExist) {
		err = place(file.Name(), path, ref)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("keep: %w", err), ignoreMissing(os.Remove(file.Name())))
	}
	// Always both folders: another process may have just created the folder or
	// the name, without having synced it yet.
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		if err := syncFolder(dir); err != nil {
			return j.distrust(err)
		}
	}
	return nil
}

func (j *Journal) distrust(err error) error {
	err = fmt.Errorf("%w: keep: %w", journal.ErrPoisoned, err)
	j.poison(err)
	return err
}

// place renames a file to the name of its content. It replaces an existing
// file: that file is the same, or damaged and now repaired. If the system
// cannot replace an open file, the existing one stays.
func place(from, to string, ref effect.BlobRef) error {
	err := os.Rename(from, to)
	if err == nil {
		return nil
	}
	if info, there := os.Stat(to); there == nil && info.Size() == ref.Size {
		return os.Remove(from)
	}
	return err
}

// blobPath returns the path of a large blob. The caller must have checked the
// reference.
func blobPath(dir string, ref effect.BlobRef) string {
	_, digits, _ := strings.Cut(ref.Digest, ":")
	return filepath.Join(dir, "blobs", digits[:2], digits)
}

// OpenContent opens content, from its file or its row.
func (j *Journal) OpenContent(ctx context.Context, ref effect.BlobRef) (io.ReadCloser, error) {
	if err := j.usable(ctx); err != nil {
		return nil, err
	}
	if err := ref.Check(); err != nil {
		return nil, err
	}
	// The size, which may be wrong, only decides where to look first.
	places := []func(context.Context, effect.BlobRef) (io.ReadCloser, error){j.openRow, j.openFile}
	if ref.Size > journal.InlineMax {
		places[0], places[1] = places[1], places[0]
	}
	content, err := places[0](ctx, ref)
	if errors.Is(err, journal.ErrNotFound) {
		content, err = places[1](ctx, ref)
	}
	if err != nil {
		return nil, err
	}
	return journal.CheckedContent(ref, content), nil
}

func (j *Journal) openFile(_ context.Context, ref effect.BlobRef) (io.ReadCloser, error) {
	f, err := os.Open(blobPath(j.dir, ref))
	if errors.Is(err, os.ErrNotExist) {
		return nil, missing(ref)
	}
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", ref.Digest, err)
	}
	return sparse.File{File: f}, nil
}

func (j *Journal) openRow(ctx context.Context, ref effect.BlobRef) (io.ReadCloser, error) {
	var data []byte
	err := j.reader.QueryRowContext(ctx, "SELECT content FROM blobs WHERE digest = ?", ref.Digest).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, missing(ref)
	}
	if err != nil {
		return nil, j.causeOf(ctx, err)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

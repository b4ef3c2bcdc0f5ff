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

// StoreContent takes content in. More than InlineMax bytes become a file of their own,
// in this order: written, synced, given its name, the name synced. Only a whole
// file ever has a name, and when Keep returns no crash takes it away.
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
	var to *sparse.Writer // what was sparse takes no more room here
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

// cloner is a file whose content another one can share, so that keeping it takes no room.
type cloner interface {
	Stat() (disk.Info, error)
	CloneTo(empty *os.File) error
}

// share takes in the content of a file without copying it, if it is one that would not
// become part of a row, and if the file system can do that. What is read then is the
// clone, which nobody else changes.
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
	if _, small := blob.Inline(); err != nil || small { // it was cut off meanwhile
		return blob, true, errors.Join(err, discard(file))
	}
	if err := j.settle(file, blob.Ref()); err != nil {
		return journal.Blob{}, true, err
	}
	return blob, true, nil
}

// newBlob makes the file of a blob that has no name yet.
func (j *Journal) newBlob() (*os.File, error) {
	path := filepath.Join(j.newBlobs(), j.Owner()+"."+rand.Text())
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return f, trouble(j.dir, err)
}

// discard removes a file that did not become a blob.
func discard(file *os.File) error {
	if file == nil {
		return nil
	}
	return errors.Join(file.Close(), ignoreMissing(os.Remove(file.Name())))
}

// settle gives a file its name for good. A failed sync poisons: nobody may rely
// on what a second one would say.
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
	// Both folders, always: another process may have made the folder or the
	// name a moment ago and not have come to syncing it.
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

// place renames a file to the name of its content. What had the name already is
// replaced: it should be the same, and if it was damaged it is now repaired.
// Where the system does not replace a file that somebody reads, it stays.
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

// blobPath is the place of a large blob. The reference must have been checked.
func blobPath(dir string, ref effect.BlobRef) string {
	_, digits, _ := strings.Cut(ref.Digest, ":")
	return filepath.Join(dir, "blobs", digits[:2], digits)
}

// OpenContent reads content back, from the file or the row where it is.
func (j *Journal) OpenContent(ctx context.Context, ref effect.BlobRef) (io.ReadCloser, error) {
	if err := j.usable(ctx); err != nil {
		return nil, err
	}
	if err := ref.Check(); err != nil {
		return nil, err
	}
	// The size, which may be wrong, only says where to look first.
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
		return nil, j.because(ctx, err)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

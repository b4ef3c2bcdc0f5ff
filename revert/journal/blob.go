package journal

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/samber/mo"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/sparse"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// ReadContent reads content for a Journal's StoreContent. Up to InlineMax bytes
// become an inline blob. ReadContent streams anything larger into the writer
// that spill returns, and returns a blob that names these bytes. The caller
// makes them durable. If ctx ends, reading stops after the current chunk.
func ReadContent(ctx context.Context, r io.Reader, spill func() (io.Writer, error)) (Blob, error) {
	r = readerUntil{func() error { return context.Cause(ctx) }, r}
	start, err := io.ReadAll(io.LimitReader(r, InlineMax+1))
	if err != nil {
		return Blob{}, fmt.Errorf("keep: %w", err)
	}
	if len(start) <= InlineMax {
		return InlineBlob(string(canon.SumBytes(start)), start), nil
	}
	w, err := spill()
	if err != nil {
		return Blob{}, fmt.Errorf("keep: %w", err)
	}
	sum := canon.NewHash()
	to := sparse.Tee(sparse.Into(w), sum)
	if _, err = to.Write(start); err == nil {
		_, err = sparse.Copy(to, r, make([]byte, InlineMax))
	}
	if err != nil {
		return Blob{}, fmt.Errorf("keep: %w", err)
	}
	return StoredBlob(effect.BlobRef{Digest: string(sum.Digest()), Size: sum.Size()}), nil
}

// readerUntil reads until its context ends.
type readerUntil struct {
	ended func() error
	r     io.Reader
}

func (r readerUntil) Read(p []byte) (int, error) {
	if err := r.ended(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

func (r readerUntil) Hole() (int64, error) { return sparse.HoleOf(r.r) }

// CheckedContent returns a reader for a Journal's OpenContent. It returns at
// most ref.Size bytes. Its end is ErrDamaged instead of io.EOF if the bytes are
// not those that ref names.
func CheckedContent(ref effect.BlobRef, content io.ReadCloser) io.ReadCloser {
	return &checkedContent{ref: ref, from: content, left: ref.Size, sum: canon.NewHash()}
}

type checkedContent struct {
	ref  effect.BlobRef
	from io.ReadCloser
	left int64
	sum  *canon.Hash
	end  error // result of every further Read
}

func (c *checkedContent) Read(p []byte) (int, error) {
	if c.end != nil {
		return 0, c.end
	}
	if len(p) == 0 {
		return 0, nil
	}
	if c.left == 0 {
		c.end = c.atEnd()
		return 0, c.end
	}
	n, err := c.from.Read(p[:min(int64(len(p)), c.left)])
	_, _ = c.sum.Write(p[:n]) // a hash never returns an error
	c.left -= int64(n)
	switch {
	case errors.Is(err, io.EOF) && c.left > 0:
		c.end = fmt.Errorf("%w: blob %s ends %d bytes early", record.ErrDamaged, c.ref.Digest, c.left)
	case err != nil && !errors.Is(err, io.EOF):
		c.end = fmt.Errorf("blob %s: %w", c.ref.Digest, err)
	}
	return n, c.end
}

// Hole skips zeros that the store does not keep.
func (c *checkedContent) Hole() (int64, error) {
	if c.end != nil {
		return 0, nil
	}
	n, err := sparse.HoleOf(c.from)
	if err != nil {
		c.end = fmt.Errorf("blob %s: %w", c.ref.Digest, err)
		return 0, c.end
	}
	if n > c.left {
		c.end = fmt.Errorf("%w: blob %s is longer than %d bytes", record.ErrDamaged, c.ref.Digest, c.ref.Size)
		return 0, c.end
	}
	c.left -= n
	return n, c.sum.Skip(n)
}

// atEnd checks that the content ends here, and its digest.
func (c *checkedContent) atEnd() error {
	n, err := io.CopyN(io.Discard, c.from, 1)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("blob %s: %w", c.ref.Digest, err)
	case n > 0:
		return fmt.Errorf("%w: blob %s is longer than %d bytes", record.ErrDamaged, c.ref.Digest, c.ref.Size)
	case string(c.sum.Digest()) != c.ref.Digest:
		return fmt.Errorf("%w: blob %s has other content", record.ErrDamaged, c.ref.Digest)
	}
	return io.EOF
}

func (c *checkedContent) Close() error { return c.from.Close() }

// InlineMax is the size in bytes up to which a blob is stored in the same
// durable step as the records that name it. Larger blobs are separate files,
// durable before those records.
const InlineMax = 64 << 10

// Blob is content that a journal has received. No record names it yet.
type Blob struct {
	ref    effect.BlobRef
	inline []byte
}

// InlineBlob returns a blob whose bytes are part of the batch that names it: at
// most InlineMax bytes, which the caller must not change any more.
func InlineBlob(digest string, data []byte) Blob {
	return Blob{ref: effect.BlobRef{Digest: digest, Size: int64(len(data))}, inline: data}
}

// StoredBlob returns a blob that a journal already holds durably.
func StoredBlob(ref effect.BlobRef) Blob { return Blob{ref: ref} }

// Ref returns the reference to the content.
func (b Blob) Ref() effect.BlobRef { return b.ref }

// Inline returns the bytes of the blob, if they are part of its batch.
func (b Blob) Inline() mo.Option[[]byte] { return mo.TupleToOption(b.inline, b.inline != nil) }

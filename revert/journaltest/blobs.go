package journaltest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

func testBlobs(t *testing.T, s store) {
	for name, size := range map[string]int{
		"empty": 0, "small": 100, "largest inline": journal.InlineMax,
		"smallest streamed": journal.InlineMax + 1, "large": 1<<20 + 7,
	} {
		t.Run(name, func(t *testing.T) { testBlob(t, s(t), content(size, 1)) })
	}

	t.Run("content that exists is not needed again", func(t *testing.T) {
		open := s(t)
		j, other := open.until(t), open.until(t)
		for _, data := range [][]byte{content(1000, 2), content(journal.InlineMax*2, 2)} {
			for _, j := range []journal.Journal{j, j, other} {
				blob := keep(t, j, data)
				require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: numbered("t", 1), Blobs: []journal.Blob{blob, blob}, Durable: true}))
			}
			ref := keep(t, j, data).Ref()
			require.NoError(t, other.Append(t.Context(), journal.Batch{Blobs: []journal.Blob{journal.StoredBlob(ref)}}))
			require.Equal(t, data, load(t, other, ref))
		}
	})

	t.Run("missing content is refused", func(t *testing.T) {
		j := s.fresh(t)
		for _, size := range []int{10, journal.InlineMax + 1} {
			data := content(size, 3)
			ref := effect.BlobRef{Digest: digest(data), Size: int64(size)}
			_ = refused(t, j, journal.ErrNotFound, journal.Batch{Blobs: []journal.Blob{journal.StoredBlob(ref)}})
			_, err := j.OpenContent(t.Context(), ref)
			require.ErrorIs(t, err, journal.ErrNotFound)
		}
	})

	t.Run("small content is not there before its batch is", func(t *testing.T) {
		j := s.fresh(t)
		blob := keep(t, j, content(10, 4))
		_, err := j.OpenContent(t.Context(), blob.Ref())
		require.ErrorIs(t, err, journal.ErrNotFound)
	})

	t.Run("a reference with another size is damage", func(t *testing.T) {
		j := s.fresh(t)
		for _, data := range [][]byte{content(10, 5), content(journal.InlineMax+1, 5)} {
			blob := keep(t, j, data)
			require.NoError(t, j.Append(t.Context(), journal.Batch{Blobs: []journal.Blob{blob}, Durable: true}))
			for _, by := range []int64{-1, 1} {
				ref := blob.Ref()
				ref.Size += by
				require.ErrorIs(t, readAll(t.Context(), j, ref), record.ErrDamaged)
				require.ErrorIs(t, j.Append(t.Context(), journal.Batch{Blobs: []journal.Blob{journal.StoredBlob(ref)}}), journal.ErrNotFound)
			}
		}
	})

	t.Run("a digest that is none reaches no store", func(t *testing.T) {
		j := s.fresh(t)
		for _, d := range []string{"", "sha256:", "sha256:../../../../etc/passwd", "sha256:" + strings.Repeat("A", 64), digest(nil) + "0"} {
			_, err := j.OpenContent(t.Context(), effect.BlobRef{Digest: d})
			require.Error(t, err)
			require.Error(t, j.Append(t.Context(), journal.Batch{Blobs: []journal.Blob{journal.StoredBlob(effect.BlobRef{Digest: d})}}))
		}
	})

	t.Run("content that cannot be read is not kept", func(t *testing.T) {
		j := s.fresh(t)
		broken := errors.New("broken")
		for _, size := range []int{10, journal.InlineMax * 3} {
			data := content(size, 6)
			_, err := j.StoreContent(t.Context(), io.MultiReader(bytes.NewReader(data), iotest.ErrReader(broken)))
			require.ErrorIs(t, err, broken)
			_, err = j.OpenContent(t.Context(), effect.BlobRef{Digest: digest(data), Size: int64(size)})
			require.ErrorIs(t, err, journal.ErrNotFound)
		}
	})
}

func testBlob(t *testing.T, open Opener, data []byte) {
	j := open(t)
	blob := keep(t, j, data)
	require.Equal(t, effect.BlobRef{Digest: digest(data), Size: int64(len(data))}, blob.Ref())
	require.Equal(t, len(data) <= journal.InlineMax, blob.Inline().IsPresent())
	require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: numbered("t", 1), Blobs: []journal.Blob{blob}, Durable: true}))
	require.Equal(t, data, load(t, j, blob.Ref()))
	require.NoError(t, j.Close())

	again := open.until(t)
	require.Equal(t, data, load(t, again, blob.Ref()))
	content, err := again.OpenContent(t.Context(), blob.Ref())
	require.NoError(t, err)
	require.NoError(t, iotest.TestReader(content, data))
	require.NoError(t, content.Close())
}

// content returns bytes that depend on size and seed.
func content(size int, seed uint64) []byte {
	data := make([]byte, size)
	random := rand.New(rand.NewPCG(seed, uint64(size)))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

func digest(data []byte) string { return string(canon.SumBytes(data)) }

func inline(data []byte) journal.Blob { return journal.InlineBlob(digest(data), data) }

func keep(t *testing.T, j journal.Journal, data []byte) journal.Blob {
	t.Helper()
	blob, err := j.StoreContent(t.Context(), bytes.NewReader(data))
	require.NoError(t, err)
	return blob
}

func load(t *testing.T, j journal.Journal, ref effect.BlobRef) []byte {
	t.Helper()
	r, err := j.OpenContent(t.Context(), ref)
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return data
}

// readAll reads a blob and returns the error at its end.
func readAll(ctx context.Context, j journal.Journal, ref effect.BlobRef) error {
	r, err := j.OpenContent(ctx, ref)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}

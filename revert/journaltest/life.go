package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

func testLife(t *testing.T, s store) {
	t.Run("an owner lives until its opening is closed", func(t *testing.T) {
		open := s(t)
		a, b := open(t), open.until(t)
		require.NotEmpty(t, a.Owner())
		require.NotEqual(t, a.Owner(), b.Owner())
		require.Equal(t, a.Owner(), a.Owner())
		begin(t, a, "t")
		for _, j := range []journal.Journal{a, b} {
			requireAlive(t, j, a.Owner(), true)
			requireAlive(t, j, b.Owner(), true)
		}
		require.NoError(t, a.Close())
		requireAlive(t, b, a.Owner(), false)
		requireAlive(t, b, b.Owner(), true)
		c := open.until(t)
		require.NotEqual(t, a.Owner(), c.Owner(), "a name is used once")
		require.NotEqual(t, b.Owner(), c.Owner())
		requireAlive(t, c, a.Owner(), false)
	})

	t.Run("a closed journal says so", func(t *testing.T) {
		j := s(t)(t)
		blob := keep(t, j, content(journal.InlineMax+1, 1))
		require.NoError(t, j.Close())
		require.NoError(t, j.Close(), "closing again is no mistake")
		for name, err := range useAll(t.Context(), j, blob.Ref()) {
			require.ErrorContains(t, err, "closed", name)
		}
	})

	t.Run("closing while reading ends the reading", func(t *testing.T) {
		open := s(t)
		j := open(t)
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: numbered("t", 3)}))
		for _, err := range j.Entries(t.Context(), journal.Query{}) {
			if err != nil {
				require.ErrorContains(t, err, "closed")
			}
			require.NoError(t, j.Close())
		}
	})

	t.Run("a context that has ended leaves nothing behind", func(t *testing.T) {
		j := s.fresh(t)
		own := begin(t, j, "t")
		blob := keep(t, j, content(journal.InlineMax+1, 2))
		require.NoError(t, j.Append(t.Context(), journal.Batch{Fence: own, Blobs: []journal.Blob{blob}, Durable: true}))
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		for name, err := range useAll(ctx, j, blob.Ref()) {
			require.ErrorIs(t, err, cause, name)
		}
		require.Equal(t, at(1, numbered("t", 1)), read(t, j, journal.Query{}))
		require.Equal(t, []journal.Ownership{own}, unfinished(t, j))
	})

	t.Run("a context that ends at any moment leaves all or nothing", func(t *testing.T) { testCancelled(t, s) })

	t.Run("a context that ends while content streams in", func(t *testing.T) {
		j := s.fresh(t)
		ctx, cancel := context.WithCancel(t.Context())
		data := content(journal.InlineMax*4, 3)
		_, err := j.StoreContent(ctx, &cancelReader{from: bytes.NewReader(data), after: journal.InlineMax * 2, cancel: cancel})
		require.ErrorIs(t, err, context.Canceled)
		_, err = j.OpenContent(t.Context(), effect.BlobRef{Digest: digest(data), Size: int64(len(data))})
		require.ErrorIs(t, err, journal.ErrNotFound)
	})
}

// testCancelled cancels appends at all points, among others that share their
// durable step.
func testCancelled(t *testing.T, s store) {
	j := s.fresh(t)
	stored, wrong := make([]int, 8), make([]error, 8)
	var all sync.WaitGroup
	for caller := range stored {
		all.Go(func() {
			for i := range 60 {
				ctx, cancel := context.WithCancel(t.Context())
				timer := time.AfterFunc(time.Duration(i*caller)*2*time.Microsecond, cancel)
				b := journal.Batch{Entries: numbered(fmt.Sprint("t", caller), i%3+1), Durable: i%4 > 0}
				if err := j.Append(ctx, b); err == nil {
					stored[caller] += len(b.Entries)
				} else if !errors.Is(err, context.Canceled) {
					wrong[caller] = err
				}
				timer.Stop()
				cancel()
			}
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(wrong...))
	for caller, n := range stored {
		require.Len(t, read(t, j, journal.Query{Txn: fmt.Sprint("t", caller)}), n, "what Append said is what happened")
	}
}

func requireAlive(t *testing.T, j journal.Journal, owner string, want bool) {
	t.Helper()
	alive, err := j.Alive(t.Context(), owner)
	require.NoError(t, err)
	require.Equal(t, want, alive)
}

// useAll calls every method that takes a context, and returns their errors.
func useAll(ctx context.Context, j journal.Journal, ref effect.BlobRef) map[string]error {
	said := map[string]error{}
	said["Append"] = j.Append(ctx, journal.Batch{Entries: numbered("t", 1), Durable: true})
	said["Append, not durable"] = j.Append(ctx, journal.Batch{Entries: numbered("t", 1)})
	for _, err := range j.Entries(ctx, journal.Query{}) {
		said["Entries"] = err
	}
	_, said["Head"] = j.Head(ctx)
	_, said["Hashes"] = j.Hashes(ctx, []int64{0})
	_, said["Alive"] = j.Alive(ctx, j.Owner())
	_, said["Unfinished"] = j.Unfinished(ctx)
	_, said["Keep"] = j.StoreContent(ctx, bytes.NewReader([]byte("small")))
	_, said["Keep, large"] = j.StoreContent(ctx, bytes.NewReader(make([]byte, journal.InlineMax+1)))
	_, said["Open"] = j.OpenContent(ctx, ref)
	_, said["Collect"] = j.CollectGarbage(ctx, nil)
	if _, asked := said["Entries"]; !asked {
		said["Entries"] = nil
	}
	return said
}

// cancelReader cancels a context after a number of bytes.
type cancelReader struct {
	from   io.Reader
	after  int
	cancel context.CancelFunc
}

func (c *cancelReader) Read(p []byte) (int, error) {
	n, err := c.from.Read(p[:min(len(p), 4096)])
	if c.after -= n; c.after < 0 {
		c.cancel()
	}
	return n, err
}

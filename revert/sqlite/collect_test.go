package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// TestCollectKeepsUnnamedContent checks that a prune in the same process
// leaves content that was stored and is not named yet. It deletes what an
// earlier opening left.
func TestCollectKeepsUnnamedContent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	j := open(t, dir)
	keep := func(word string) effect.BlobRef {
		blob, err := j.StoreContent(t.Context(), strings.NewReader(strings.Repeat(word, 2*journal.InlineMax)))
		require.NoError(t, err)
		return blob.Ref()
	}
	left := keep("l")
	require.NoError(t, j.Close())
	j = open(t, dir)
	mine, gone, old := keep("m"), keep("g"), keep("o")
	longAgo := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "blobs", old.Digest[7:9], old.Digest[7:]), longAgo, longAgo))

	done, err := j.CollectGarbage(t.Context(), []effect.BlobRef{gone})
	require.NoError(t, err)
	require.Equal(t, int64(1), done.Blobs, "it looked at that alone")
	done, err = j.CollectGarbage(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, int64(2), done.Blobs)
	for ref, there := range map[effect.BlobRef]bool{left: false, mine: true, gone: false, old: false} {
		content, err := j.OpenContent(t.Context(), ref)
		require.Equal(t, there, err == nil, "%v", err)
		if there {
			require.NoError(t, content.Close())
		} else {
			require.ErrorIs(t, err, journal.ErrNotFound)
		}
	}
	writeWord(t, j, "t", "word")
	_, err = eraser(j).Prune(t.Context(), revert.Retention{})
	require.NoError(t, err)
	require.Empty(t, holding(t, dir, "wordword"), "what was named is awaited no more")
}

package sqlite_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
)

func TestDamagedEntriesAreNamed(t *testing.T) {
	for name, change := range map[string]string{
		"head":    "entries SET head = CAST(replace(CAST(head AS TEXT), 'c_2', 'c_9') AS BLOB)",
		"salt":    "bodies SET salt = zeroblob(16)",
		"body":    "bodies SET body = CAST(replace(CAST(body AS TEXT), 'tool', 'tooo') AS BLOB)",
		"leaf":    "entries SET leaf = zeroblob(32)",
		"kind":    "entries SET kind = 'done'",
		"session": "entries SET session = 's_9'",
		"txn":     "entries SET txn = 't_9'",
		"call":    "entries SET call = 'c_9'",
		"no body": "bodies SET pos = 99",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := open(t, dir)
			defer func() { _ = j.Close() }()
			for i := range 3 {
				e := journaltest.Entry(record.Header{Session: "s_1", Txn: "t_1", Call: fmt.Sprint("c_", i+1)}, "tool")
				require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{e}}))
			}
			foreign(t, filepath.Join(dir, "journal.db"), "UPDATE "+change+" WHERE pos = 2")
			var sound []int64
			for e, err := range j.Entries(t.Context(), journal.Query{}) {
				if err == nil {
					sound = append(sound, e.Pos)
					continue
				}
				require.Equal(t, record.Entry{Pos: 2}, e)
				require.ErrorIs(t, err, record.ErrDamaged)
				require.ErrorContains(t, err, "entry 2")
			}
			require.Equal(t, []int64{1, 3}, sound)
		})
	}
}

func TestDamagedPagesAreDamage(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	e := journaltest.Entry(record.Header{Txn: "t"}, strings.Repeat("x", 9000))
	require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{e, e, e}, Durable: true}))
	require.NoError(t, j.Close()) // which also removes the write-ahead log
	file := filepath.Join(dir, "journal.db")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	for page := 3 * 4096; page < len(data); page += 4096 {
		copy(data[page:], "this is not a page of a database")
	}
	require.NoError(t, os.WriteFile(file, data, 0o600))

	j = open(t, dir)
	defer func() { _ = j.Close() }()
	for _, err := range j.Entries(t.Context(), journal.Query{}) {
		require.ErrorIs(t, err, record.ErrDamaged)
	}
	require.ErrorIs(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{e}, Durable: true}), record.ErrDamaged)
}

func TestDamagedBlobs(t *testing.T) {
	t.Run("in a row", func(t *testing.T) {
		dir := t.TempDir()
		j := open(t, dir)
		defer func() { _ = j.Close() }()
		blob, err := j.StoreContent(t.Context(), strings.NewReader("content"))
		require.NoError(t, err)
		require.NoError(t, j.Append(t.Context(), journal.Batch{Blobs: []journal.Blob{blob}, Durable: true}))
		for _, change := range []string{"CAST('contend' AS BLOB)", "CAST('conten' AS BLOB)", "CAST('content!' AS BLOB)"} {
			foreign(t, filepath.Join(dir, "journal.db"), "UPDATE blobs SET content = "+change)
			requireDamagedBlob(t, j, blob.Ref())
		}
	})

	t.Run("in a file, until it is kept again", func(t *testing.T) {
		dir := t.TempDir()
		j := open(t, dir)
		defer func() { _ = j.Close() }()
		ref := keepLarge(t, j, 'x')
		file := blobFile(dir, ref)
		whole, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, damaged := range [][]byte{whole[1:], append([]byte("y"), whole[1:]...), append(whole, 'x'), nil} {
			require.NoError(t, os.WriteFile(file, damaged, 0o600))
			requireDamagedBlob(t, j, ref)
		}
		require.Equal(t, ref, keepLarge(t, j, 'x'))
		r, err := j.OpenContent(t.Context(), ref)
		require.NoError(t, err)
		defer func() { _ = r.Close() }()
		again, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, whole, again)
	})
}

func requireDamagedBlob(t *testing.T, j journal.Journal, ref effect.BlobRef) {
	t.Helper()
	r, err := j.OpenContent(t.Context(), ref)
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.ErrorIs(t, err, record.ErrDamaged)
	require.LessOrEqual(t, int64(len(data)), ref.Size)
	require.NoError(t, r.Close())
}

func TestLargeBlobIsOneFile(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	defer func() { _ = j.Close() }()
	for range 3 {
		ref := keepLarge(t, j, 'x')
		require.FileExists(t, blobFile(dir, ref))
	}
	files, err := filepath.Glob(filepath.Join(dir, "blobs", "*", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
}

func keepLarge(t *testing.T, j journal.Journal, fill byte) effect.BlobRef {
	t.Helper()
	blob, err := j.StoreContent(t.Context(), bytes.NewReader(bytes.Repeat([]byte{fill}, journal.InlineMax+1)))
	require.NoError(t, err)
	return blob.Ref()
}

func blobFile(dir string, ref effect.BlobRef) string {
	digits := strings.TrimPrefix(ref.Digest, "sha256:")
	return filepath.Join(dir, "blobs", digits[:2], digits)
}

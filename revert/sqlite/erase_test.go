package sqlite_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// writeWord writes a committed transaction with one call whose every part contains
// the word: input, output, note, small and large content.
func writeWord(t testing.TB, j journal.Journal, txn, word string) {
	t.Helper()
	h := hosttest.New(1)
	rec := revert.NewRecorder(j, h, "s").In(txn)
	text, err := json.Marshal(strings.Repeat(word+" ", 2000)) // over several pages
	require.NoError(t, err)
	var blobs []journal.Blob
	var refs []effect.BlobRef
	for _, n := range []int{10, 2 * journal.InlineMax / len(word)} {
		blob, err := j.StoreContent(t.Context(), strings.NewReader(strings.Repeat(word, n)))
		require.NoError(t, err)
		blobs, refs = append(blobs, blob), append(refs, blob.Ref())
	}
	call := "c_" + txn
	require.NoError(t, rec.Write(t.Context(), revert.Write{
		Take: journal.OwnerChange{To: journal.Ownership{Txn: txn, Owner: j.Owner()}}, Blobs: blobs, Durable: true,
		Records: []revert.CallRecord{
			{Body: &record.Begun{Owner: j.Owner()}},
			{Call: call, Body: &record.Started{
				Sequence: 1, Key: "k", Tool: record.ToolRef{Name: "tool"}, Input: text, Class: effect.Reversible,
				Confinement: "handles", Decision: json.RawMessage("{}"),
			}},
			{Call: call, Body: &record.Changed{Change: effect.Change{
				N: 1, Scheme: "test", Resource: "test://" + word, Kind: "write", Pre: "1", Post: "2", Inverse: text, Blobs: refs,
			}}},
		},
		Claims: []string{"test://" + word},
	}))
	require.NoError(t, rec.Write(t.Context(), revert.Write{
		Durable: true, End: true,
		Records: []revert.CallRecord{
			{Call: call, Body: &record.RevertNote{Key: word, Value: text}},
			{Call: call, Body: &record.Done{Output: text}},
			{Body: &record.Committed{}},
		},
	}))
}

// holding returns the files below a folder whose bytes contain a word.
func holding(t *testing.T, dir, word string) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(word)) {
			files = append(files, filepath.Base(path))
		}
		return err
	}))
	return files
}

func eraser(j journal.Journal) *revert.Reverter {
	return &revert.Reverter{Journal: j, Host: hosttest.New(2)}
}

func TestErasedBytesAreDestroyed(t *testing.T) {
	for name, beside := range map[string]bool{"alone": false, "beside another opening": true} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			j := open(t, dir)
			for _, word := range []string{"before", "MARKER", "behind"} {
				writeWord(t, j, "t_"+word, word)
			}
			kept, err := j.Head(t.Context())
			require.NoError(t, err)
			if beside {
				other := open(t, dir)
				defer func() { require.NoError(t, other.Close()) }()
				writeWord(t, other, "t_other", "other")
			}
			require.NotEmpty(t, holding(t, dir, "MARKER"), "the search works")
			done, err := eraser(j).Erase(t.Context(), "c_t_MARKER", record.Erased{By: "kim", Why: "for a test"})
			require.NoError(t, err)
			require.Empty(t, done.Waiting)
			require.Empty(t, done.Shared)
			require.Equal(t, int64(2), done.Blobs)

			// The IDs of transaction and call are in headers, which stay.
			require.Empty(t, holding(t, dir, "MARKERMARKER"))
			require.Empty(t, holding(t, dir, "MARKER MARKER"))
			require.Empty(t, holding(t, dir, "test://MARKER"))
			require.Empty(t, holding(t, dir, `"MARKER`))
			require.NotEmpty(t, holding(t, dir, "behind behind"))
			require.NoError(t, j.Close())
			require.Empty(t, holding(t, dir, "MARKER MARKER"))
			report, err := sqlite.Fsck(t.Context(), dir, revert.FsckOptions{Kept: kept})
			require.NoError(t, err)
			require.Equal(t, int64(4), report.Erased)
			require.Zero(t, report.Unnamed)
		})
	}
}

// TestErasureWhoseProcessDied checks that one step erases the records. The next
// erasure or collection deletes what a crash after that step left.
func TestErasureWhoseProcessDied(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	j := open(t, dir)
	writeWord(t, j, "t", "MARKER")
	require.NoError(t, revert.NewRecorder(j, hosttest.New(3), "s").Write(t.Context(), revert.Write{
		Erase: []string{"c_t"}, Durable: true,
		Records: []revert.CallRecord{{Txn: "t", Call: "c_t", Body: &record.Erased{Cause: "asked", By: "kim", Why: "x", As: string(revert.PhaseDone), Left: true}}},
	}))
	require.NotEmpty(t, holding(t, dir, "MARKER"), "content and log, as a crash leaves them here")
	crashed := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.CopyFS(crashed, os.DirFS(dir)))
	require.NoError(t, os.Chmod(crashed, 0o700))
	require.NoError(t, j.Close())

	report, err := sqlite.Fsck(t.Context(), crashed, revert.FsckOptions{})
	require.NoError(t, err, "a crash is no damage")
	require.Equal(t, int64(2), report.Unnamed)
	j = open(t, crashed)
	_, err = eraser(j).Erase(t.Context(), "c_t", record.Erased{By: "kim", Why: "again"})
	require.NoError(t, err)
	require.Empty(t, holding(t, crashed, "MARKER"))
	require.NoError(t, j.Close())
	report, err = sqlite.Fsck(t.Context(), crashed, revert.FsckOptions{})
	require.NoError(t, err)
	require.Zero(t, report.Unnamed)
}

// TestCollectReportsReaders checks that an old snapshot keeps old
// pages in the log.
func TestCollectReportsReaders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	j, err := sqlite.Open(t.Context(), dir, sqlite.BusyTimeout(1))
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	writeWord(t, j, "t", "MARKER")
	release := reading(t, filepath.Join(dir, "journal.db"))
	done, err := eraser(j).Erase(t.Context(), "c_t", record.Erased{By: "kim", Why: "x"})
	require.NoError(t, err)
	require.Contains(t, done.Waiting, "other processes read")
	release()
	done, err = eraser(j).Erase(t.Context(), "c_t", record.Erased{By: "kim", Why: "x"})
	require.NoError(t, err)
	require.Empty(t, done.Waiting)
	require.Empty(t, holding(t, dir, "MARKER"))
}

// TestPruneShrinksTheStore measures the size that a person sees.
func TestPruneShrinksTheStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	j := open(t, dir)
	defer func() { require.NoError(t, j.Close()) }()
	for _, word := range strings.Fields("one two three four five six seven eight") {
		writeWord(t, j, "t_"+word, word)
	}
	dry, err := eraser(j).Prune(t.Context(), revert.Retention{DryRun: true})
	require.NoError(t, err)
	require.Equal(t, 8, dry.Txns)
	done, err := eraser(j).Prune(t.Context(), revert.Retention{KeepLast: 1})
	require.NoError(t, err)
	require.Equal(t, 7, done.Txns)
	require.Equal(t, int64(14), done.Blobs)
	require.Greater(t, done.Freed, 7*int64(journal.InlineMax), "the file itself is smaller")
	require.NotEmpty(t, holding(t, dir, "eight eight"), "the newest stays")
	var size int64
	require.NoError(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "reserve" {
			info, e := d.Info()
			size, err = size+info.Size(), e
		}
		return err
	}))
	require.Equal(t, size, done.Size)
}

// TestCollectDuringAppends stores and names the same large content again and
// again, while another goroutine erases and collects. An acknowledged blob
// exists; a refused one can be stored again.
func TestCollectDuringAppends(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	j, pruner := open(t, dir), open(t, dir)
	const rounds = 15
	done := make(chan error, 1)
	go func() {
		var failed error
		for n := 0; n < rounds && failed == nil; n++ {
			_, failed = pruner.CollectGarbage(context.Background(), []effect.BlobRef{sharedContent()})
		}
		done <- failed
	}()
	h, erases := hosttest.New(7), eraser(j)
	refused := 0
	for n := range rounds {
		txn := fmt.Sprint("t_", n)
		rec := revert.NewRecorder(j, h, "s").In(txn)
		blob, err := j.StoreContent(t.Context(), strings.NewReader(strings.Repeat("s", 2*journal.InlineMax)))
		require.NoError(t, err)
		require.Equal(t, sharedContent(), blob.Ref())
		err = rec.Write(t.Context(), revert.Write{
			Take: journal.OwnerChange{To: journal.Ownership{Txn: txn, Owner: j.Owner()}}, Blobs: []journal.Blob{blob}, Durable: true, End: true,
			Records: []revert.CallRecord{
				{Body: &record.Begun{Owner: j.Owner()}},
				{Call: "c_" + txn, Body: &record.Started{Sequence: 1, Key: "k", Tool: record.ToolRef{Name: "tool"}, Input: []byte("1"), Class: effect.Reversible, Confinement: "handles", Decision: []byte("{}")}},
				{Call: "c_" + txn, Body: &record.Changed{Change: effect.Change{N: 1, Scheme: "test", Resource: "r", Kind: "write", Pre: "1", Post: "2", Inverse: []byte("1"), Blobs: []effect.BlobRef{blob.Ref()}}}},
				{Call: "c_" + txn, Body: &record.Done{Output: []byte("1")}},
				{Body: &record.Committed{}},
			},
		})
		if errors.Is(err, journal.ErrNotFound) {
			refused++
			continue
		}
		require.NoError(t, err)
		content, err := j.OpenContent(t.Context(), blob.Ref())
		require.NoError(t, err, "what was named is there")
		_, err = io.Copy(io.Discard, content)
		require.NoError(t, errors.Join(err, content.Close()))
		_, err = erases.Erase(t.Context(), "c_"+txn, record.Erased{By: "kim", Why: "x"})
		require.NoError(t, err)
	}
	require.NoError(t, <-done)
	t.Logf("%d of %d appends were refused, as their content had just gone", refused, rounds)
	require.NoError(t, j.Close())
	require.NoError(t, pruner.Close())
	_, err := sqlite.Fsck(t.Context(), dir, revert.FsckOptions{})
	require.NoError(t, err)
}

func sharedContent() effect.BlobRef {
	data := []byte(strings.Repeat("s", 2*journal.InlineMax))
	return effect.BlobRef{Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(data)), Size: int64(len(data))}
}

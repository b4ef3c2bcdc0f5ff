package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// childRetains writes transactions, each in one step, and prunes without a
// pause meanwhile. It prints the acknowledged ones.
func childRetains() error {
	j, err := sqlite.Open(context.Background(), os.Getenv(dirEnv))
	if err != nil {
		return err
	}
	fmt.Println("owner", j.Owner())
	errs := make(chan error)
	go func() {
		for k := (&revert.Reverter{Journal: j, Host: host.Real()}).Retain(revert.Retention{KeepLast: 3}); ; {
			if _, err := k.Run(context.Background()); err != nil {
				errs <- err
			}
		}
	}()
	go func() {
		for n := 0; ; n++ {
			txn := fmt.Sprintf("%s-%d", os.Getenv(nameEnv), n)
			if err := wholeTxn(j, txn); err != nil {
				errs <- err
			}
			fmt.Println("stored", txn, n)
		}
	}()
	return <-errs
}

// wholeTxn writes a committed transaction whose call names a small and a large
// content.
func wholeTxn(j journal.Journal, txn string) error {
	_, err := wholeTxnOf(j, txn, txn)
	return err
}

// wholeTxnOf is wholeTxn with content made of a word.
func wholeTxnOf(j journal.Journal, txn, word string) (refs []effect.BlobRef, err error) {
	w := revert.Write{Take: journal.OwnerChange{To: journal.Ownership{Txn: txn, Owner: j.Owner()}}, End: true, Durable: true}
	for _, n := range []int{10, journal.InlineMax} {
		blob, err := j.StoreContent(context.Background(), strings.NewReader(strings.Repeat(word, n)))
		if err != nil {
			return nil, err
		}
		w.Blobs, refs = append(w.Blobs, blob), append(refs, blob.Ref())
	}
	call := "c_" + txn
	w.Records = []revert.CallRecord{
		{Body: &record.Begun{Owner: j.Owner()}},
		{Call: call, Body: &record.Started{Sequence: 1, Key: "k", Tool: record.ToolRef{Name: "tool"}, Input: json.RawMessage("{}"), Class: effect.Reversible, Confinement: "handles", Decision: json.RawMessage("{}")}},
		{Call: call, Body: &record.Changed{Change: effect.Change{N: 1, Scheme: "test", Resource: "test://x", Kind: "write", Pre: "1", Post: "2", Inverse: json.RawMessage("{}"), Blobs: refs}}},
		{Call: call, Body: &record.Done{Output: json.RawMessage("{}")}},
		{Body: &record.Committed{}},
	}
	return refs, revert.NewRecorder(j, host.Real(), "s").In(txn).Write(context.Background(), w)
}

// TestKilledWhileItPrunes repeatedly kills a process that writes and prunes.
// Acknowledged transactions are complete or erased, and the kept content is
// readable. The next prune leaves no unnamed content.
func TestKilledWhileItPrunes(t *testing.T) {
	const seed = 11
	random := rand.New(rand.NewPCG(seed, seed))
	dir := t.TempDir()
	for round := range kills {
		c := startChild(t, dir, fmt.Sprint("r", round), "retain")
		time.AfterFunc(time.Duration(20_000+random.IntN(150_000))*time.Microsecond, func() { _ = c.cmd.Process.Kill() })
		require.NoError(t, c.listen())
		require.Error(t, c.cmd.Wait())
		report, err := sqlite.Fsck(t.Context(), dir, revert.FsckOptions{})
		require.NoError(t, err, "%+v", report)
		j := open(t, dir)
		for txn := range c.stored {
			got, err := revert.Load(t.Context(), j, txn)
			require.NoError(t, err)
			require.Contains(t, []revert.Phase{revert.PhaseDone, revert.PhaseErased}, got.Calls[0].Phase)
			require.NotEmpty(t, got.End)
			for _, change := range got.Calls[0].Changes {
				for _, ref := range change.Blobs {
					content, err := j.OpenContent(t.Context(), ref)
					require.NoError(t, err)
					_, err = io.Copy(io.Discard, content)
					require.NoError(t, errors.Join(err, content.Close()))
				}
			}
		}
		require.NoError(t, j.Close())
	}
	j := open(t, dir)
	_, err := eraser(j).Prune(t.Context(), revert.Retention{})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	report, err := sqlite.Fsck(t.Context(), dir, revert.FsckOptions{})
	require.NoError(t, err)
	require.Zero(t, report.Unnamed)
	left, err := filepath.Glob(filepath.Join(dir, "blobs", "??", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestSpaceIsFreedDuringOtherOpenings checks that the file shrinks while another
// opening has it, by all but the headers of the pruned entries.
func TestSpaceIsFreedDuringOtherOpenings(t *testing.T) {
	dir := t.TempDir()
	j, other := open(t, dir), open(t, dir)
	defer func() { require.NoError(t, other.Close()) }()
	defer func() { require.NoError(t, j.Close()) }()
	size := func() (n int64) {
		for _, name := range []string{"journal.db", "journal.db-wal"} {
			info, err := os.Stat(filepath.Join(dir, name))
			require.NoError(t, err)
			n += info.Size()
		}
		return n
	}
	k := eraser(j).Retain(revert.Retention{})
	run := func() {
		_, err := k.Run(t.Context())
		require.NoError(t, err)
	}
	n := 0
	write := func() {
		for range 20 {
			n++
			writeWord(t, j, fmt.Sprint("t_", n), fmt.Sprint("word", n))
		}
	}
	write()
	require.Greater(t, size(), int64(n*50_000), "so much of it is to go")
	for range 6 {
		run()
		write()
	}
	run()
	require.Less(t, size(), int64(n*8_000), "free pages are used again")
	run() // the first run that erases nothing frees all space
	require.Less(t, size(), int64(n*5_000))
}

// TestContentGoesWithItsCall checks that each retention run deletes the content
// that only its erased calls named, also if it erases more calls each time.
func TestContentGoesWithItsCall(t *testing.T) {
	j := open(t, t.TempDir())
	defer func() { require.NoError(t, j.Close()) }()
	r := eraser(j)
	for last := range 2 { // with 1, a run has read each name before the call is erased
		k := r.Retain(revert.Retention{KeepLast: last})
		for n := range 4 {
			require.NoError(t, wholeTxn(j, fmt.Sprint("t_", last, n)))
			done, err := k.Run(t.Context())
			require.NoError(t, err)
			gone := min(1, n+1-last)
			require.Equal(t, gone, done.Calls)
			require.Equal(t, int64(2*gone), done.Blobs, "the small one and the large one")
		}
	}
}

// TestContentOfTwoCalls checks that content of two calls stays until both are
// erased, in any order, also if the journal was read before.
func TestContentOfTwoCalls(t *testing.T) {
	for _, order := range [][]string{{"c_t_1", "c_t_2"}, {"c_t_2", "c_t_1"}} {
		j := open(t, t.TempDir())
		r := eraser(j)
		refs, err := wholeTxnOf(j, "t_1", "shared")
		require.NoError(t, err)
		again, err := wholeTxnOf(j, "t_2", "shared")
		require.NoError(t, err)
		require.Equal(t, refs, again)
		_, err = j.CollectGarbage(t.Context(), refs) // which reads the names
		require.NoError(t, err)
		for n, call := range order {
			done, err := r.Erase(t.Context(), call, record.Erased{By: "ana", Why: "asked"})
			require.NoError(t, err)
			require.Equal(t, int64(2*n), done.Blobs)
			for _, ref := range refs {
				content, err := j.OpenContent(t.Context(), ref)
				if n == 1 {
					require.ErrorIs(t, err, journal.ErrNotFound)
					continue
				}
				require.NoError(t, err, "after %s", call)
				require.NoError(t, content.Close())
			}
		}
		require.NoError(t, j.Close())
	}
}

// TestSole checks that one opening holds a name at a time, and that another
// gets it after the release.
func TestSole(t *testing.T) {
	dir := t.TempDir()
	j, other := open(t, dir), open(t, dir)
	defer func() { require.NoError(t, errors.Join(j.Close(), other.Close())) }()
	release, ok, err := j.Sole("x")
	require.NoError(t, err)
	require.True(t, ok)
	_, ok, err = other.Sole("x")
	require.NoError(t, err)
	require.False(t, ok)
	done, err := eraser(other).Prune(t.Context(), revert.Retention{})
	require.NoError(t, err)
	require.Empty(t, done.Waiting, "that is another turn")
	require.NoError(t, release())
	release, ok, err = other.Sole("x")
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, release())
	release, _, err = j.Sole("prune")
	require.NoError(t, err)
	done, err = eraser(other).Prune(t.Context(), revert.Retention{})
	require.NoError(t, err)
	require.Equal(t, "another process prunes this journal", done.Waiting)
	require.NoError(t, release())
	require.NoError(t, os.Remove(filepath.Join(dir, "x.lock")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "x.lock"), 0o700))
	_, _, err = j.Sole("x")
	require.Error(t, err)
}

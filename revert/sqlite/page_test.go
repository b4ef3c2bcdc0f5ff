package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

const pageSize = 4096

// readContent holds the readable content of a journal.
type readContent struct {
	entries    []string // leaves
	head       journal.Head
	unfinished []journal.Ownership
	content    []string // of the requested blobs
	errs       []error
}

// ask reads from a journal everything that was written, and then appends to it.
func ask(ctx context.Context, j *sqlite.Journal, refs ...effect.BlobRef) (a readContent) {
	add := func(err error) bool {
		if err != nil {
			a.errs = append(a.errs, err)
		}
		return err == nil
	}
	for e, err := range j.Entries(ctx, journal.Query{}) {
		if add(err) {
			a.entries = append(a.entries, e.Leaf)
		}
	}
	for _, q := range []journal.Query{{Txn: "t_1"}, {Call: "c_1"}, {Session: "s", Newest: true, Limit: 1}, {Kinds: []record.Kind{record.KindBegun}}} {
		for _, err := range j.Entries(ctx, q) {
			add(err)
		}
	}
	var err error
	a.head, err = j.Head(ctx)
	add(err)
	_, err = j.Hashes(ctx, []int64{0, 1, 2, 3})
	add(err)
	a.unfinished, err = j.Unfinished(ctx)
	add(err)
	for _, ref := range refs {
		var content []byte
		r, err := j.OpenContent(ctx, ref)
		if add(err) {
			content, err = io.ReadAll(r)
			if !add(err) {
				content = nil
			}
			add(r.Close())
		}
		a.content = append(a.content, string(content))
	}
	return a
}

// use writes to a journal everything that can be written, until an operation is
// refused, and collects unnamed content.
func use(ctx context.Context, j *sqlite.Journal, held []journal.Ownership) []error {
	me := journal.Ownership{Txn: "t_3", Owner: j.Owner()}
	small, err := j.StoreContent(ctx, strings.NewReader("small"))
	batches := []journal.Batch{
		{
			Take: journal.OwnerChange{To: me}, Fence: me, Claims: []string{"other"}, Blobs: []journal.Blob{small}, Durable: true,
			Entries: []record.Entry{journaltest.Entry(record.Header{Txn: "t_3", Call: "c_3"}, "tool")},
		},
		{Entries: []record.Entry{journaltest.Entry(record.Header{}, "tool")}},
		{Fence: me, End: true, Erase: []string{"c_3"}, Durable: true},
	}
	for _, own := range held {
		batches = append(batches, journal.Batch{Take: journal.OwnerChange{From: own.Owner, To: journal.Ownership{Txn: own.Txn, Owner: j.Owner()}}, Durable: true})
	}
	for _, b := range batches {
		if err == nil {
			err = j.Append(ctx, b)
		}
	}
	_, collect := j.CollectGarbage(ctx, nil)
	return []error{err, collect}
}

// TestEachDamagedPage damages each page of a database, and truncates the
// database before each page. Reads then return the stored content or damage.
// Nothing is skipped silently, and fsck finds the damage.
func TestEachDamagedPage(t *testing.T) {
	ctx := t.Context()
	from := t.TempDir()
	j := open(t, from)
	small, large := fill(t, j)
	e := journaltest.Entry(record.Header{Session: "s", Txn: "t", Call: "c"}, strings.Repeat("x", 9000))
	require.NoError(t, j.Append(ctx, journal.Batch{Entries: []record.Entry{e, e, e}, Durable: true}))
	whole := ask(ctx, j, small, large)
	require.Empty(t, whole.errs)
	require.NoError(t, j.Close())
	data, err := os.ReadFile(filepath.Join(from, "journal.db"))
	require.NoError(t, err)
	pages := len(data) / pageSize
	require.Greater(t, pages, 10)
	ways := map[string]func([]byte, int) []byte{
		"garbage": func(d []byte, at int) []byte {
			copy(d[at:at+pageSize], bytes.Repeat([]byte("this is no page "), pageSize/16))
			return d
		},
		"zeros": func(d []byte, at int) []byte { clear(d[at : at+pageSize]); return d },
		"cut":   func(d []byte, at int) []byte { return d[:at] },
	}
	found := 0
	for name, spoil := range ways {
		for page := range pages {
			at := fmt.Sprintf("page %d, %s", page+1, name)
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(from)))
			require.NoError(t, os.Chmod(dir, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.db"), spoil(bytes.Clone(data), page*pageSize), 0o600))
			_, check := sqlite.Fsck(ctx, dir, revert.FsckOptions{Kept: whole.head})
			if check != nil {
				found++
				require.True(t, isDamage(check), "%s: %v", at, check)
			}
			j, err := sqlite.Open(ctx, dir)
			if err != nil {
				require.True(t, isDamage(err), "%s: %v", at, err)
				require.Error(t, check, at)
				continue
			}
			a := ask(ctx, j, small, large)
			for _, err := range append(a.errs, use(ctx, j, a.unfinished)...) {
				if err != nil {
					require.Error(t, check, at)
					require.True(t, isDamage(err), "%s: %v", at, err)
				}
			}
			require.NoError(t, j.Close(), at)
			if len(a.errs) == 0 {
				require.Equal(t, whole, a, at)
			}
			for i, content := range a.content {
				require.Contains(t, []string{"", whole.content[i]}, content, at)
			}
			for _, leaf := range a.entries {
				require.Contains(t, whole.entries, leaf, at)
			}
		}
	}
	t.Logf("%d of %d found", found, len(ways)*pages)
	require.Greater(t, found, len(ways)*pages*9/10)
}

// isDamage reports whether an error says that stored data has changed.
func isDamage(err error) bool {
	return errors.Is(err, record.ErrDamaged) || errors.Is(err, sqlite.ErrIncomplete) || errors.Is(err, journal.ErrNotFound)
}

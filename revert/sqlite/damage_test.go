package sqlite_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// keyOf is the key of the batch that begins at a position.
func keyOf(pos int64) int64 { return pos << 24 }

// rewrite changes the row of the batch that begins at a position.
func rewrite(t *testing.T, dir string, pos int64, change func(n int64, data []byte) []byte) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "journal.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	var n int64
	var data []byte
	require.NoError(t, db.QueryRow("SELECT n, data FROM batches WHERE key = ?", keyOf(pos)).Scan(&n, &data))
	changed := change(n, bytes.Clone(data))
	require.NotEqual(t, data, changed)
	_, err = db.Exec("UPDATE batches SET data = ? WHERE key = ?", changed, keyOf(pos))
	require.NoError(t, err)
}

func replacing(from, to string) func(int64, []byte) []byte {
	return func(_ int64, data []byte) []byte { return bytes.Replace(data, []byte(from), []byte(to), 1) }
}

// sealed changes the entries of a batch, with a checksum that fits.
func sealed(pos int64, change func(e []record.Entry)) func(int64, []byte) []byte {
	return func(n int64, data []byte) []byte { return sqlite.Repack(pos, n, data, change) }
}

func TestDamagedEntriesAreNamed(t *testing.T) {
	for name, change := range map[string]func(int64, []byte) []byte{
		"head":          replacing(`"call":"c_2"`, `"call":"c_9"`),
		"session":       replacing(`"session":"s_1"`, `"session":"s_9"`),
		"names":         sealed(2, func(e []record.Entry) { e[0].Header.Call = "c_9" }),
		"the directory": replacing("c_2", "c_9"),
		"sealed head":   sealed(2, func(e []record.Entry) { e[0].Head = bytes.Replace(e[0].Head, []byte("c_2"), []byte("c_9"), 1) }),
		"salt":          sealed(2, func(e []record.Entry) { clear(e[0].Salt) }),
		"body":          replacing(`"name":"tool"`, `"name":"tooo"`),
		"leaf":          sealed(2, func(e []record.Entry) { e[0].Leaf = "sha256:" + strings.Repeat("0", 64) }),
		"a flag":        sealed(2, func(e []record.Entry) { e[0].Erased = "sha256:" + strings.Repeat("0", 64) }),
		"a length":      sealed(2, func(e []record.Entry) { e[0].Body = e[0].Body[1:] }),
		"no body":       func(_ int64, data []byte) []byte { return data[:len(data)-40] },
		"another count": func(_ int64, data []byte) []byte { return data[:1] },
		"nothing":       func(int64, []byte) []byte { return []byte{} },
		"a version":     func(_ int64, data []byte) []byte { data[0]++; return data },
		"a checksum":    func(_ int64, data []byte) []byte { data[1]++; return data },
	} {
		for _, indexed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " indexed ", indexed), func(t *testing.T) {
				dir := t.TempDir()
				j := open(t, dir)
				defer func() { _ = j.Close() }()
				for i := range 3 {
					e := journaltest.Entry(record.Header{Session: "s_1", Txn: "t_1", Call: fmt.Sprint("c_", i+1)}, "tool")
					require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{e}}))
				}
				if indexed {
					require.NoError(t, j.Index(t.Context()))
				}
				want := []int64{1, 3}
				if name == "a checksum" || name == "the directory" { // the entry itself is sound
					want = []int64{1, 2, 3}
				}
				rewrite(t, dir, 2, change)
				for _, q := range []journal.Query{{}, {Txn: "t_1"}, {Session: "s_1", Newest: true}} {
					require.Equal(t, want, soundAround(t, j, q), "%+v", q)
				}
				report, problems, err := fsck(t, dir, journal.Head{})
				require.ErrorIs(t, err, record.ErrDamaged)
				require.NotEmpty(t, problems)
				require.Equal(t, int64(3), report.Entries)
			})
		}
	}
}

// soundAround returns the readable positions. Only entry 2 may be damaged.
func soundAround(t *testing.T, j journal.Journal, q journal.Query) (sound []int64) {
	t.Helper()
	for e, err := range j.Entries(t.Context(), q) {
		if err == nil {
			sound = append(sound, e.Pos)
			continue
		}
		require.Equal(t, record.Entry{Pos: 2}, e)
		require.ErrorIs(t, err, record.ErrDamaged)
		require.ErrorContains(t, err, "entry 2")
	}
	slices.Sort(sound)
	return sound
}

// TestOthersContinueBesideDamage checks that only the queries for a damaged entry
// meet it, also before the derived tables have its batch.
func TestOthersContinueBesideDamage(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	entry := func(n int) record.Entry {
		return journaltest.Entry(record.Header{Session: "s_1", Txn: "t_1", Call: fmt.Sprint("c_", n)}, "tool")
	}
	for n := range 3 {
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{entry(n + 1)}}))
	}
	require.NoError(t, j.Close())
	rewrite(t, dir, 2, sealed(2, func(e []record.Entry) { clear(e[0].Head) }))
	j = open(t, dir)
	defer func() { _ = j.Close() }()
	for range 2 {
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{entry(4)}}))
		for _, tt := range []struct {
			q     journal.Query
			meets bool
		}{
			{journal.Query{}, true},
			{journal.Query{Txn: "t_1", Newest: true}, true},
			{journal.Query{Call: "c_2"}, true},
			{journal.Query{Kinds: []record.Kind{record.KindInvalid}}, true},
			{journal.Query{Kinds: []record.Kind{record.KindInvalid}, After: 2}, false},
			{journal.Query{Kinds: []record.Kind{record.KindRevoked}}, false},
			{journal.Query{Call: "c_3"}, false},
		} {
			seen := 0
			for e, err := range j.Entries(t.Context(), tt.q) {
				if err != nil {
					require.Equal(t, record.Entry{Pos: 2}, e)
					seen++
				}
			}
			require.Equal(t, tt.meets, seen == 1, "%+v", tt.q)
		}
		require.NoError(t, j.Index(t.Context()))
	}
}

// TestDamagedEntryIsNotErased checks that a batch that erases a damaged entry is
// refused alone: the digest of its body cannot be kept.
func TestDamagedEntryIsNotErased(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	defer func() { _ = j.Close() }()
	for n := range 2 {
		e, err := record.Seal(record.Record{Header: record.Header{Kind: record.KindDone, Txn: "t_1", Call: fmt.Sprint("c_", n)}, Body: &record.Done{Output: []byte(`"out"`)}}, []byte("salt for testing"))
		require.NoError(t, err)
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{e}}))
	}
	rewrite(t, dir, 1, replacing(`"out"`, `"tuo"`))
	err := j.Append(t.Context(), journal.Batch{Erase: []string{"c_1", "c_0"}})
	require.ErrorIs(t, err, record.ErrDamaged)
	require.ErrorContains(t, err, "erase c_0")
	require.NotErrorIs(t, err, journal.ErrPoisoned)
	require.NotEmpty(t, holding(t, dir, `"tuo"`))
	require.NoError(t, j.Append(t.Context(), journal.Batch{Erase: []string{"c_1"}}))
	require.Equal(t, []int64{1, 2}, erasedAround(t, j, 2))
}

// erasedAround returns the positions that are read, of which one is erased.
func erasedAround(t *testing.T, j journal.Journal, erased int64) (seen []int64) {
	t.Helper()
	for e, err := range j.Entries(t.Context(), journal.Query{}) {
		seen = append(seen, e.Pos)
		require.Equal(t, e.Pos == erased, e.Erased != "")
		require.Equal(t, e.Pos == 1, err != nil)
	}
	return seen
}

// TestDamagedIndexIsNamed changes the derived tables. A wrong place is named
// when it is read, a missing one by fsck.
func TestDamagedIndexIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		change string
		query  journal.Query
		says   string
	}{
		"another call":  {"UPDATE places SET name = 'cc_9' WHERE name = 'cc_2'", journal.Query{Call: "c_9"}, "names the batch of entry 2 for another one"},
		"another batch": {fmt.Sprintf("UPDATE places SET key = %d WHERE name = 'cc_2'", keyOf(3)), journal.Query{Call: "c_2"}, "names the batch of entry 3 for another one"},
		"no batch":      {fmt.Sprintf("UPDATE places SET key = %d WHERE name = 'cc_2'", keyOf(2)+1), journal.Query{Call: "c_2"}, "entry 2 cannot be read"},
		"missing":       {"DELETE FROM places WHERE name = 'cc_2'", journal.Query{}, "lacks entries of \"c_2\" in the batch of entry 2"},
		"more":          {"INSERT INTO places VALUES ('cc_9', 7, 1)", journal.Query{}, "rows, and the batches make"},
		"kinds":         {"UPDATE places SET kinds = 0 WHERE name = 'cc_2'", journal.Query{}, "lacks entries of \"c_2\""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := open(t, dir)
			defer func() { _ = j.Close() }()
			for i := range 3 {
				e := journaltest.Entry(record.Header{Session: "s_1", Txn: "t_1", Call: fmt.Sprint("c_", i+1)}, "tool")
				require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{e}}))
			}
			require.NoError(t, j.Index(t.Context()))
			require.NoError(t, j.Close())
			foreign(t, filepath.Join(dir, "journal.db"), tt.change)
			_, problems, err := fsck(t, dir, journal.Head{})
			require.Error(t, err)
			all := strings.Join(problems, "\n")
			require.NotEmpty(t, all)
			if tt.query.Call == "" {
				require.Contains(t, all, tt.says)
				return
			}
			j = open(t, dir)
			var errs []error
			for _, err := range j.Entries(t.Context(), tt.query) {
				errs = append(errs, err)
			}
			require.Len(t, errs, 1)
			require.ErrorIs(t, errs[0], record.ErrDamaged)
			require.ErrorContains(t, errs[0], tt.says)
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

package sqlite_test

import (
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// foreign runs statements on a database file without the journal.
func foreign(t *testing.T, file string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	for _, s := range statements {
		_, err := db.Exec(s)
		require.NoError(t, err, s)
	}
}

func TestOpenRefusesOtherFormats(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(t *testing.T, file string)
		says  string
		is    error
	}{
		"a newer format": {
			spoil: func(t *testing.T, file string) {
				require.NoError(t, open(t, filepath.Dir(file)).Close())
				foreign(t, file, "PRAGMA user_version = 99")
			},
			says: "format 99; this remit knows formats up to 5: use a newer one",
		},
		"a format from before the first release": {
			spoil: func(t *testing.T, file string) {
				require.NoError(t, open(t, filepath.Dir(file)).Close())
				foreign(t, file, "PRAGMA user_version = 3")
			},
			says: "format 3, from before the first release",
		},
		"another application": {
			spoil: func(t *testing.T, file string) {
				foreign(t, file, "PRAGMA application_id = 99", "CREATE TABLE t (x)")
			},
			says: "belongs to another application",
		},
		"a database without application": {
			spoil: func(t *testing.T, file string) { foreign(t, file, "CREATE TABLE entries (x)") },
			says:  "belongs to another application",
		},
		"no database": {
			spoil: func(t *testing.T, file string) {
				require.NoError(t, os.WriteFile(file, []byte("some text that is longer than the header of a database file: "+string(make([]byte, 100))), 0o600))
			},
			says: "not an SQLite file",
			is:   record.ErrDamaged,
		},
		"a journal without tables": {
			spoil: func(t *testing.T, file string) {
				foreign(t, file, "PRAGMA application_id = 0x72656d74", "PRAGMA user_version = 5")
			},
			says: "0 tables",
			is:   record.ErrDamaged,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.Chmod(dir, 0o700))
			file := filepath.Join(dir, "journal.db")
			test.spoil(t, file)
			before, err := os.ReadFile(file)
			require.NoError(t, err)
			_, err = sqlite.Open(t.Context(), dir)
			require.ErrorContains(t, err, test.says)
			require.ErrorContains(t, err, dir)
			if test.is != nil {
				require.ErrorIs(t, err, test.is)
			}
			after, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, before, after, "a refused file is left alone")
		})
	}
}

func TestOpenAfterACrashDuringCreation(t *testing.T) {
	for name, statements := range map[string][]string{
		"an empty file":    {"VACUUM"},
		"WAL and no table": {"PRAGMA journal_mode = WAL"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.Chmod(dir, 0o700))
			foreign(t, filepath.Join(dir, "journal.db"), statements...)
			j := open(t, dir)
			require.NoError(t, j.Append(t.Context(), journal.Batch{Durable: true}))
			require.NoError(t, j.Close())
		})
	}
}

func TestOpenRefusesAnotherJournalMode(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, open(t, dir).Close())
	foreign(t, filepath.Join(dir, "journal.db"), "PRAGMA journal_mode = DELETE")
	j := open(t, dir)
	defer func() { _ = j.Close() }()
	require.ErrorContains(t, j.Append(t.Context(), journal.Batch{Durable: true}), "journal mode")
}

func TestFolderIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are not how Windows says who may read")
	}
	t.Run("when it is made, with all above it", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "a", "b")
		useBlobs(t, dir)
		requirePrivate(t, dir)
	})
	t.Run("when it is empty", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, 0o777))
		useBlobs(t, dir)
		requirePrivate(t, dir)
	})
	t.Run("or it is refused", func(t *testing.T) {
		dir := t.TempDir()
		useBlobs(t, dir)
		require.NoError(t, os.Chmod(dir, 0o750))
		_, err := sqlite.Open(t.Context(), dir)
		require.ErrorContains(t, err, "chmod 700")
	})
	t.Run("and a file in its place is refused", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "f")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		_, err := sqlite.Open(t.Context(), file)
		require.ErrorContains(t, err, "not a folder")
	})
}

// useBlobs creates every kind of file.
func useBlobs(t *testing.T, dir string) {
	t.Helper()
	j := open(t, dir)
	keepLarge(t, j, 'x')
	e := journaltest.Entry(record.Header{Txn: "t"}, "tool")
	require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{e}, Durable: true}))
	requirePrivate(t, dir) // the write-ahead log exists now
	require.NoError(t, j.Close())
}

func requirePrivate(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, path)
		return nil
	}))
}

// reading holds a snapshot of a database until release.
func reading(t *testing.T, file string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	tx, err := db.Begin()
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRow("SELECT count(*) FROM batches").Scan(&n))
	return func() {
		require.NoError(t, tx.Rollback())
		require.NoError(t, db.Close())
	}
}

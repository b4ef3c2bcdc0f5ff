package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

const (
	dbFile, logFile, headFile = "journal.db", "journal.db-wal", "journal.head"

	smallPage = 512
	smallStep = 24 + smallPage // of the log
)

// left holds the files of a journal as a killed process leaves them, by name,
// one map after each durable append.
type left struct {
	dir  string
	each []map[string][]byte
}

// leftBehind appends to a journal with small pages. If copied is set, all of
// the log is copied into the database at the end; SQLite keeps the log then.
func leftBehind(t *testing.T, appends int, copied bool) left {
	t.Helper()
	from := memoryDir(t)
	foreign(t, filepath.Join(from, dbFile), fmt.Sprint("PRAGMA page_size = ", smallPage), "VACUUM")
	j := open(t, from)
	l := left{dir: from}
	for n := range appends {
		e := journaltest.Entry(record.Header{Session: "s_1", Txn: fmt.Sprint("t_", n), Call: fmt.Sprint("c_", n)}, fmt.Sprint("tool ", n))
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{e, e}, Durable: true}))
		if copied && n == appends-1 {
			foreign(t, filepath.Join(from, dbFile), "PRAGMA wal_checkpoint(PASSIVE)")
		}
		files := map[string][]byte{}
		for _, name := range []string{dbFile, logFile, headFile} {
			var err error
			files[name], err = os.ReadFile(filepath.Join(from, name))
			require.NoError(t, err)
		}
		l.each = append(l.each, files)
	}
	require.NoError(t, j.Close())
	return l
}

// writeFiles writes these files into a folder; nil ones are missing.
func writeFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for name, data := range files {
		if data != nil {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
	}
}

// with returns the files of one time with one of them changed.
func with(files map[string][]byte, name string, data []byte) map[string][]byte {
	all := map[string][]byte{name: data}
	for other, data := range files {
		if other != name {
			all[other] = data
		}
	}
	return all
}

// rightOrRefused opens a folder. Each query must return all promised entries,
// or Open must refuse and name the missing ones.
func rightOrRefused(t *testing.T, dir string, appends int, at string) (refused error) {
	t.Helper()
	j, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		require.True(t, errors.Is(err, sqlite.ErrIncomplete) || errors.Is(err, record.ErrDamaged), "%s: %v", at, err)
		_, check := sqlite.Fsck(t.Context(), dir, revert.FsckOptions{})
		require.Error(t, check, at)
		return err
	}
	defer func() { require.NoError(t, j.Close(), at) }()
	count := func(q journal.Query) (n int) {
		for _, err := range j.Entries(t.Context(), q) {
			require.NoError(t, err, at)
			n++
		}
		return n
	}
	require.GreaterOrEqual(t, count(journal.Query{}), 2*appends, at)
	require.GreaterOrEqual(t, count(journal.Query{Session: "s_1"}), 2*appends, at)
	for n := range appends {
		require.Equal(t, 2, count(journal.Query{Txn: fmt.Sprint("t_", n)}), at)
		require.Equal(t, 2, count(journal.Query{Call: fmt.Sprint("c_", n)}), at)
	}
	return nil
}

// TestCutLog cuts the write-ahead log after a kill at each frame, and one byte
// before and after it, or deletes it. Promised entries must be present or
// reported missing.
func TestCutLog(t *testing.T) {
	const appends = 12
	for _, copied := range []bool{false, true} {
		t.Run(fmt.Sprint("copied into the database ", copied), func(t *testing.T) {
			l := leftBehind(t, appends, copied)
			files, dir := l.each[appends-1], memoryDir(t)
			writeFiles(t, dir, files)
			require.NoError(t, rightOrRefused(t, dir, appends, "whole"))
			writeFiles(t, dir, with(files, logFile, nil))
			err := rightOrRefused(t, dir, appends, "deleted")
			require.Equal(t, copied, err == nil, "%v", err)
			refused := 0
			for cut := 0; cut < len(files[logFile]); {
				writeFiles(t, dir, with(files, logFile, files[logFile][:cut]))
				if err := rightOrRefused(t, dir, appends, fmt.Sprint("cut to ", cut)); err != nil {
					refused++
				}
				switch (cut - 32) % smallStep { // each boundary, and one byte to either side
				case 0, smallStep - 1:
					cut++
				default:
					cut = 32 + (cut-32+smallStep+1)/smallStep*smallStep - 1
				}
			}
			require.Positive(t, refused)
		})
	}
}

// TestMissingEntriesAreNamed checks the reported number, positions and time.
func TestMissingEntriesAreNamed(t *testing.T) {
	l := leftBehind(t, 3, false)
	dir := memoryDir(t)
	files := with(l.each[2], logFile, l.each[0][logFile])
	writeFiles(t, dir, files)
	_, err := sqlite.Open(t.Context(), dir)
	require.ErrorIs(t, err, sqlite.ErrIncomplete)
	require.ErrorContains(t, err, "entries 3 to 6 are missing, 4 of 6, written ")
	report, problems, err := fsck(t, dir, journal.Head{})
	require.Error(t, err)
	require.EqualValues(t, 4, report.Missing)
	require.Contains(t, problems[0], "entries 3 to 6 are missing, 4 of 6")

	accepted, err := sqlite.Accept(t.Context(), dir, "kim")
	require.NoError(t, err)
	require.EqualValues(t, 4, accepted.Missing)
	j := open(t, dir)
	var last record.Record
	for e, err := range j.Entries(t.Context(), journal.Query{Kinds: []record.Kind{record.KindAccepted}}) {
		require.NoError(t, err)
		last, err = record.Unseal(e)
		require.NoError(t, err)
	}
	require.Equal(t, &accepted, last.Body)
	require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{journaltest.Entry(record.Header{}, "x")}, Durable: true}))
	require.NoError(t, j.Close())
	require.NoError(t, open(t, dir).Close())
	_, err = sqlite.Accept(t.Context(), dir, "kim")
	require.ErrorContains(t, err, "nothing is missing")

	writeFiles(t, dir, with(files, dbFile, nil))
	_, err = sqlite.Open(t.Context(), dir)
	require.ErrorIs(t, err, sqlite.ErrIncomplete, "without a database the journal is not new")
	require.ErrorContains(t, err, "6 entries were promised")
}

// TestHeadFile deletes, cuts, changes or replaces the head file, also with an
// older one or that of another journal.
func TestHeadFile(t *testing.T) {
	const appends = 5
	l := leftBehind(t, appends, false)
	files, dir := l.each[appends-1], memoryDir(t)
	head := files[headFile]
	refused := func(files map[string][]byte, at string) error {
		writeFiles(t, dir, files)
		return rightOrRefused(t, dir, appends, at)
	}
	t.Run("missing", func(t *testing.T) {
		require.ErrorIs(t, refused(with(files, headFile, nil), "missing"), sqlite.ErrIncomplete)
		accepted, err := sqlite.Accept(t.Context(), dir, "kim")
		require.NoError(t, err)
		require.Empty(t, accepted.Promised)
		require.NoError(t, rightOrRefused(t, dir, appends, "accepted"))
	})
	t.Run("cut", func(t *testing.T) {
		for cut := range head {
			require.ErrorIs(t, refused(with(files, headFile, head[:cut]), fmt.Sprint("cut to ", cut)), sqlite.ErrIncomplete)
		}
	})
	t.Run("changed", func(t *testing.T) {
		for at := range head {
			changed := bytes.Clone(head)
			changed[at] ^= 1
			require.NoError(t, refused(with(files, headFile, changed), fmt.Sprint("byte ", at)), "the other slot is whole")
		}
		writeFiles(t, dir, with(files, headFile, bytes.Repeat([]byte("x"), len(head))))
		require.ErrorIs(t, rightOrRefused(t, dir, appends, "overwritten"), sqlite.ErrIncomplete)
		_, err := sqlite.Accept(t.Context(), dir, "kim")
		require.NoError(t, err)
		require.NoError(t, rightOrRefused(t, dir, appends, "accepted"))
	})
	t.Run("older", func(t *testing.T) { // as after a power failure
		for n, moment := range l.each {
			require.NoError(t, refused(with(files, headFile, moment[headFile]), fmt.Sprint("of append ", n)))
			err := refused(with(l.each[n], headFile, head), fmt.Sprint("newer than append ", n))
			require.Equal(t, n == appends-1, err == nil, "%v", err)
		}
	})
	t.Run("of another journal", func(t *testing.T) {
		other := leftBehind(t, appends-1, true)
		j := open(t, other.dir)
		e := journaltest.Entry(record.Header{}, "another")
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{e, e}, Durable: true}))
		data, err := os.ReadFile(filepath.Join(other.dir, headFile))
		require.NoError(t, err)
		require.NoError(t, j.Close())
		err = refused(with(files, headFile, data), "of another journal")
		require.ErrorIs(t, err, sqlite.ErrIncomplete)
		require.ErrorContains(t, err, "belongs to another journal")
	})
	t.Run("a folder", func(t *testing.T) {
		writeFiles(t, dir, with(files, headFile, nil))
		require.NoError(t, os.Mkdir(filepath.Join(dir, headFile), 0o700))
		_, err := sqlite.Open(t.Context(), dir)
		require.ErrorContains(t, err, "journal.head is a folder, not a file")
	})
}

// TestDamageIsNoLoss checks that a damaged entry or hash of the tree is
// reported when it is read, and does not prevent opening the journal.
func TestDamageIsNoLoss(t *testing.T) {
	l := leftBehind(t, 4, true)
	for name, change := range map[string]func(int64, []byte) []byte{
		"body":     sealed(7, func(e []record.Entry) { clear(e[1].Body) }),
		"leaf":     sealed(7, func(e []record.Entry) { e[1].Leaf = "x" }),
		"tree":     func(_ int64, data []byte) []byte { clear(data[len(data)-32:]); return data },
		"checksum": func(_ int64, data []byte) []byte { data[1]++; return data },
		"all":      func(int64, []byte) []byte { return []byte{} },
	} {
		t.Run(name, func(t *testing.T) {
			dir := memoryDir(t)
			writeFiles(t, dir, l.each[3])
			rewrite(t, dir, 7, change)
			require.NoError(t, open(t, dir).Close())
			_, err := sqlite.Fsck(t.Context(), dir, revert.FsckOptions{})
			require.ErrorIs(t, err, record.ErrDamaged)
			require.NoError(t, open(t, dir).Close(), "also after it was looked at")
		})
	}
}

// TestEmptyJournalIsNew checks that the files of a process that died while it
// created a journal do not count as an incomplete journal.
func TestEmptyJournalIsNew(t *testing.T) {
	dir := memoryDir(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, headFile), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, dbFile), nil, 0o600))
	require.NoError(t, open(t, dir).Close())
	require.NoError(t, os.Remove(filepath.Join(dir, dbFile)))
	require.NoError(t, os.Remove(filepath.Join(dir, headFile)))
	_, err := sqlite.Open(t.Context(), dir)
	require.ErrorIs(t, err, record.ErrDamaged, "what belongs to a journal is beside it")
}

// TestAKillAndACutLog kills processes that append, and deletes the log. Each
// acknowledged entry is present or missed. A live writer keeps the log.
func TestAKillAndACutLog(t *testing.T) {
	dir := t.TempDir()
	first, second := startChild(t, dir, "a", "append"), startChild(t, dir, "b", "append")
	for range 20 {
		require.True(t, first.stdout.Scan())
		require.True(t, second.stdout.Scan())
	}
	for _, c := range []*child{first, second} {
		require.NoError(t, c.cmd.Process.Kill())
		require.Error(t, c.cmd.Wait())
	}
	copied := t.TempDir()
	require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
	require.NoError(t, os.Chmod(copied, 0o700))
	require.NoError(t, open(t, dir).Close(), "a kill alone loses nothing")
	require.NoError(t, os.Remove(filepath.Join(copied, logFile)))
	_, err := sqlite.Open(context.Background(), copied)
	require.Error(t, err)
	require.True(t, errors.Is(err, sqlite.ErrIncomplete) || errors.Is(err, record.ErrDamaged), err)
}

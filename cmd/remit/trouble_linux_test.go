package main

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// smallDisk is a file system of its own, for a state folder.
type smallDisk struct {
	t                    *testing.T
	dir, state, work, at string
}

func newSmallDisk(t *testing.T, options string) *smallDisk {
	t.Helper()
	d := &smallDisk{t: t, dir: t.TempDir(), work: t.TempDir()}
	if err := unix.Mount("tmpfs", d.dir, "tmpfs", 0, options); err != nil {
		t.Skipf("only root mounts a disk of its own here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(d.dir, 0)) })
	d.state = filepath.Join(d.dir, "state")
	require.NoError(t, os.WriteFile(filepath.Join(d.work, "a.txt"), []byte("one"), 0o600))
	d.at = filepath.Join(t.TempDir(), "script.jsonl")
	require.NoError(t, os.WriteFile(d.at, []byte(`{"tool":"file_write","args":{"path":"a.txt","content":"two"}}`+"\n"), 0o600))
	require.Zero(t, d.remit("run", d.at).code)
	return d
}

// spoken is what a command said, and how it ended.
type spoken struct {
	code     int
	out, err string
}

func (d *smallDisk) remit(args ...string) spoken {
	var out, errs bytes.Buffer
	w := testEnv(nil, &out, &errs)
	w.Username = func() (string, error) { return "kim", nil }
	code := run(d.t.Context(), append(args, "--workspace", d.work, "--state", d.state), w)
	return spoken{code, out.String(), errs.String()}
}

func (d *smallDisk) content() string {
	data, err := os.ReadFile(filepath.Join(d.work, "a.txt"))
	require.NoError(d.t, err)
	return string(data)
}

// fill leaves no room.
func (d *smallDisk) fill() {
	f, err := os.Create(filepath.Join(d.dir, "filler"))
	require.NoError(d.t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	require.ErrorIs(d.t, err, syscall.ENOSPC)
	require.NoError(d.t, f.Close())
}

// fillInodes leaves no inode.
func (d *smallDisk) fillInodes() {
	for n := 0; ; n++ {
		f, err := os.Create(filepath.Join(d.dir, fmt.Sprint("file", n)))
		if errors.Is(err, syscall.ENOSPC) {
			return
		}
		require.NoError(d.t, err)
		require.NoError(d.t, f.Close())
	}
}

// TestUndoOnASickDisk: where the disk of the state folder is full, has no inodes left or
// is read-only, an undo works from the reserve, or the message says what it is and what helps.
func TestUndoOnASickDisk(t *testing.T) {
	undone := func(t *testing.T, d *smallDisk, says string) {
		again := d.remit("run", d.at)
		require.NotZero(t, again.code)
		require.Contains(t, again.err, says)
		require.Zero(t, d.remit("log").code)
		back := d.remit("revert", "--last")
		require.Zero(t, back.code, back.err)
		require.Equal(t, "one", d.content())
		require.Zero(t, d.remit("fsck").code)
	}
	refused := func(t *testing.T, d *smallDisk, says string) {
		for _, args := range [][]string{{"log"}, {"revert", "--last"}, {"recover"}, {"run", d.at}, {"fsck"}} {
			r := d.remit(args...)
			require.NotZero(t, r.code, args)
			require.Contains(t, r.err, says, args)
			require.NotContains(t, r.err, "must be yours", args)
		}
		require.Equal(t, "two", d.content())
	}
	t.Run("full", func(t *testing.T) {
		d := newSmallDisk(t, "size=6m")
		d.fill()
		undone(t, d, "no space left")
	})
	t.Run("full, and the reserve is used up", func(t *testing.T) {
		d := newSmallDisk(t, "size=6m")
		require.NoError(t, os.Truncate(filepath.Join(d.state, "reserve"), 0))
		d.fill()
		says := "the file system of " + d.state + " is full, no space left: remove or move files there"
		refused(t, d, says)
		require.NoError(t, os.Remove(filepath.Join(d.dir, "filler")))
		require.Zero(t, d.remit("revert", "--last").code, "what it says helps")
		require.Equal(t, "one", d.content())
	})
	t.Run("no inodes", func(t *testing.T) {
		d := newSmallDisk(t, "size=20m,nr_inodes=60")
		d.fillInodes()
		undone(t, d, "the file system of "+d.state+" has no inodes left: remove files or folders there")
	})
	t.Run("read-only", func(t *testing.T) {
		d := newSmallDisk(t, "size=20m")
		require.NoError(t, unix.Mount("", d.dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		refused(t, d, "the file system of "+d.state+" is read-only: make it writable")
		require.NoError(t, unix.Mount("", d.dir, "", unix.MS_REMOUNT, ""))
		require.Zero(t, d.remit("revert", "--last").code, "what it says helps")
		require.Equal(t, "one", d.content())
	})
}

// TestOneDamagedEntry: whichever entry of a transaction is damaged, the others are listed
// and reverted, and the damage is named.
func TestOneDamagedEntry(t *testing.T) {
	workspace, state := testPlace(t)
	remit := func(state string, args ...string) spoken {
		var out, errs bytes.Buffer
		code := run(t.Context(), append(args, "--workspace", workspace, "--state", state), testEnv(nil, &out, &errs))
		return spoken{code, out.String(), errs.String()}
	}
	for n := range 3 {
		script := filepath.Join(t.TempDir(), "script.jsonl")
		require.NoError(t, os.WriteFile(script, fmt.Appendf(nil, `{"tool":"file_write","args":{"path":"f%d.txt","content":"x"}}`+"\n", n), 0o600))
		require.Zero(t, remit(state, "run", script).code)
	}
	var txns []string
	all := entriesIn(t, state)
	for _, e := range all {
		if e.Header.Kind == record.KindBegun {
			txns = append(txns, e.Header.Txn)
		}
	}
	require.Len(t, txns, 3)
	for pos := 9; pos <= 14; pos++ { // all of the second
		e := all[pos-1]
		for _, part := range [][]byte{e.Head, slices.Concat(e.Salt, e.Body)} {
			name := fmt.Sprint("entry ", pos)
			copied := filepath.Join(t.TempDir(), "state")
			require.NoError(t, os.CopyFS(copied, os.DirFS(state)))
			require.NoError(t, os.Chmod(copied, 0o700))
			clearInJournal(t, copied, e.Pos, part)

			log := remit(copied, "log")
			require.NotZero(t, log.code, name)
			require.Contains(t, log.err, name+" does not fit its leaf")
			require.Contains(t, log.out, txns[0])
			require.Contains(t, log.out, txns[2])
			check := remit(copied, "fsck")
			require.NotZero(t, check.code, name)
			require.Contains(t, check.out, name)
			itself := remit(copied, "revert", txns[1])
			require.NotZero(t, itself.code, name)
			require.Contains(t, itself.err, name)
			require.FileExists(t, filepath.Join(workspace, "f1.txt"))
			for _, n := range []int{0, 2} {
				file := filepath.Join(workspace, fmt.Sprintf("f%d.txt", n))
				r := remit(copied, "revert", txns[n])
				require.Zero(t, r.code, "%s: %s", name, r.err)
				require.NoFileExists(t, file)
				r = remit(copied, "redo", txns[n])
				require.Zero(t, r.code, "%s: %s", name, r.err)
				require.FileExists(t, file)
			}
		}
	}
}

// entriesIn returns all entries of a journal.
func entriesIn(t *testing.T, state string) (all []record.Entry) {
	t.Helper()
	j, err := sqlite.Open(t.Context(), state)
	require.NoError(t, err)
	for e, err := range j.Entries(t.Context(), journal.Query{}) {
		require.NoError(t, err)
		all = append(all, e)
	}
	require.NoError(t, j.Close())
	return all
}

// clearInJournal replaces a part of the entry at a position by zeros in the
// database.
func clearInJournal(t *testing.T, state string, pos int64, part []byte) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(state, "journal.db"))
	require.NoError(t, err)
	var key int64
	var data []byte
	require.NoError(t, db.QueryRow("SELECT key, data FROM batches WHERE key < (? + 1) << 24 ORDER BY key DESC LIMIT 1", pos).Scan(&key, &data))
	at := bytes.Index(data, part)
	require.Positive(t, at)
	clear(data[at : at+len(part)])
	data[at] = 1 // a record without fields has a salt of zeros
	_, err = db.Exec("UPDATE batches SET data = ? WHERE key = ?", data, key)
	require.NoError(t, errors.Join(err, db.Close()))
}

// TestDamagedSession: a redo that meets a damaged session record names it once, and leaves
// no transaction open.
func TestDamagedSession(t *testing.T) {
	workspace, state := testPlace(t)
	remit := func(args ...string) spoken {
		var out, errs bytes.Buffer
		code := run(t.Context(), append(args, "--workspace", workspace, "--state", state), testEnv(nil, &out, &errs))
		return spoken{code, out.String(), errs.String()}
	}
	for _, line := range []string{
		`{"tool":"file_write","args":{"path":"a.txt","content":"one"}}`,
		`{"tool":"file_edit","args":{"path":"a.txt","old":"one","new":"two"}}`,
	} {
		script := filepath.Join(t.TempDir(), "script.jsonl")
		require.NoError(t, os.WriteFile(script, []byte(line+"\n"), 0o600))
		require.Zero(t, remit("run", script).code)
	}
	id := ""
	for _, e := range entriesIn(t, state) {
		if id == "" && e.Header.Kind == record.KindBegun {
			id = e.Header.Txn
		}
	}
	require.Zero(t, remit("revert", id, "--cascade").code)
	for _, e := range entriesIn(t, state) {
		if e.Header.Kind == record.KindSession && e.Pos > 1 {
			clearInJournal(t, state, e.Pos, slices.Concat(e.Salt, e.Body))
		}
	}
	count := func() (n int) {
		db, err := sql.Open("sqlite", filepath.Join(state, "journal.db"))
		require.NoError(t, err)
		require.NoError(t, db.QueryRow("SELECT sum(n) FROM batches").Scan(&n))
		require.NoError(t, db.Close())
		return n
	}
	before := count()
	r := remit("redo", id)
	require.NotZero(t, r.code)
	require.Equal(t, 1, strings.Count(r.err, "entry 8 does not fit its leaf"), r.err)
	require.Equal(t, before, count(), "nothing is left open")
}

package sqlite_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// fill appends a committed transaction with content of both sizes, and begins
// another one with a claim.
func fill(t *testing.T, j journal.Journal) (small, large effect.BlobRef) {
	t.Helper()
	var blobs []journal.Blob
	for _, size := range []int{10, journal.InlineMax + 10} {
		blob, err := j.StoreContent(t.Context(), strings.NewReader(strings.Repeat("x", size)))
		require.NoError(t, err)
		blobs = append(blobs, blob)
	}
	small, large = blobs[0].Ref(), blobs[1].Ref()
	line := func(txn, call string, kind record.Kind, body record.Body) record.Entry {
		e, err := record.Seal(record.Record{Header: record.Header{Kind: kind, Txn: txn, Call: call}, Body: body}, []byte("salt for testing"))
		require.NoError(t, err)
		return e
	}
	t1, t2 := journal.Ownership{Txn: "t_1", Owner: j.Owner()}, journal.Ownership{Txn: "t_2", Owner: j.Owner()}
	for _, b := range []journal.Batch{
		{Take: journal.OwnerChange{To: t1}, Fence: t1, Entries: []record.Entry{line("t_1", "", record.KindBegun, &record.Begun{Owner: t1.Owner})}},
		{Fence: t1, Blobs: blobs, Durable: true, Entries: []record.Entry{
			line("t_1", "c_1", record.KindStarted, &record.Started{Input: json.RawMessage("{}"), Decision: json.RawMessage("{}")}),
			line("t_1", "c_1", record.KindChanged, &record.Changed{Change: effect.Change{N: 1, Blobs: []effect.BlobRef{small, large}}}),
		}},
		{Fence: t1, Entries: []record.Entry{line("t_1", "c_1", record.KindDone, &record.Done{Output: json.RawMessage("1")})}},
		{Fence: t1, End: true, Durable: true, Entries: []record.Entry{line("t_1", "", record.KindCommitted, &record.Committed{})}},
		{Take: journal.OwnerChange{To: t2}, Fence: t2, Durable: true, Claims: []string{"r"}, Entries: []record.Entry{line("t_2", "", record.KindBegun, &record.Begun{Owner: t2.Owner})}},
	} {
		require.NoError(t, j.Append(t.Context(), b))
	}
	return small, large
}

func fsck(t *testing.T, dir string, kept journal.Head) (report sqlite.FsckReport, problems []string, err error) {
	t.Helper()
	report, err = sqlite.Fsck(t.Context(), dir, revert.FsckOptions{Kept: kept, Found: func(p revert.Problem) { problems = append(problems, p.What) }})
	require.Len(t, problems, int(report.Problems))
	return report, problems, err
}

func TestFsckOfASoundJournal(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	fill(t, j)
	head, err := j.Head(t.Context())
	require.NoError(t, err)
	live, problems, err := fsck(t, dir, head)
	require.NoError(t, err, problems)
	require.Equal(t, 1, live.Alive)
	require.NoError(t, j.Close())

	// The remains of a crash are no problem.
	j = open(t, dir)
	keepLarge(t, j, 'u')
	owner := j.Owner()
	require.NoError(t, j.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "blobs", "new", owner+".AB"), []byte("x"), 0o600))
	report, problems, err := fsck(t, dir, head)
	require.NoError(t, err, problems)
	require.Equal(t, sqlite.FsckReport{
		FsckReport: revert.FsckReport{Entries: 6, Txns: 2, Blobs: 2, Head: head}, Unnamed: 1, Leftover: 1,
	}, report)
}

func TestFsckFindsChanges(t *testing.T) {
	type row = func(int64, []byte) []byte
	for name, test := range map[string]struct {
		pos    int64 // of the changed batch; 0: change is a statement
		row    row
		change string
		says   string
	}{
		"a leaf":                       {2, sealed(2, func(e []record.Entry) { e[1].Leaf = e[0].Leaf }), "", "entry 3 does not fit its leaf"},
		"a body":                       {4, sealed(4, func(e []record.Entry) { e[0].Body = []byte("{}") }), "", "entry 4 does not fit its leaf"},
		"a batch in the middle":        {0, nil, fmt.Sprint("DELETE FROM batches WHERE key = ", keyOf(2)), "position 4 follows 1"},
		"the end":                      {0, nil, fmt.Sprint("DELETE FROM batches WHERE key = ", keyOf(6)), "its end was cut off"},
		"a count":                      {0, nil, fmt.Sprint("UPDATE batches SET n = 1 WHERE key = ", keyOf(2)), "are counted"},
		"a sealed forgery":             {2, sealed(2, func(e []record.Entry) { e[1] = e[0] }), "", "hashes of the tree are not those of the leaves"},
		"a hash":                       {2, func(_ int64, data []byte) []byte { data[len(data)-1]++; return data }, "", "hashes of the tree are not those of the leaves"},
		"hashes that are gone":         {2, func(n int64, data []byte) []byte { return sqlite.WithoutHashes(2, n, data) }, "", "entry 2 lacks hashes"},
		"a checksum":                   {2, func(_ int64, data []byte) []byte { data[1]++; return data }, "", "its directory does not fit its checksum"},
		"another header":               {2, sealed(2, func(e []record.Entry) { e[0].Header.Call = "c_9" }), "", "entry 2 is stored under another header"},
		"a small blob":                 {0, nil, "UPDATE blobs SET content = zeroblob(10)", "has other content"},
		"a small blob that is gone":    {0, nil, "DELETE FROM blobs", "not in the journal"},
		"a size":                       {0, nil, "UPDATE blobs SET size = 11", "is filed with 11 bytes and has 10"},
		"a claim of an ended one":      {0, nil, "UPDATE claims SET txn = 't_1'", "r is claimed by transaction t_1"},
		"a new claim":                  {0, nil, "INSERT INTO new_claims VALUES (9, 'r', 't_2', 0)", "claim 9 of transaction t_2 does not fit its checksum"},
		"an end without record":        {0, nil, "UPDATE txns SET ended = 1", "held for ended"},
		"an owner":                     {0, nil, "UPDATE txns SET owner = 'o_abc' WHERE txn = 't_2'", "its records name the owner"},
		"an owner of no journal":       {0, nil, "UPDATE txns SET owner = 'me' WHERE txn = 't_2'", "its records name the owner"},
		"another transaction":          {0, nil, "INSERT INTO txns (txn, owner, ended) VALUES ('t_9', 'o_abc', 1)", "the table txns has 3 rows, and the batches make 2"},
		"an index":                     {0, nil, "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = 'CREATE INDEX claims_txn ON claims (resource)' WHERE name = 'claims_txn'", "integrity"},
		"another application's number": {0, nil, "PRAGMA application_id = 7", "belongs to another application"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := open(t, dir)
			fill(t, j)
			require.NoError(t, j.Index(t.Context()))
			head, err := j.Head(t.Context())
			require.NoError(t, err)
			require.NoError(t, j.Close())
			if test.row != nil {
				rewrite(t, dir, test.pos, test.row)
			} else {
				foreign(t, filepath.Join(dir, "journal.db"), test.change)
			}
			_, problems, err := fsck(t, dir, head)
			require.Error(t, err)
			if test.says == "integrity" {
				require.NotEmpty(t, problems)
				return
			}
			require.Contains(t, strings.Join(append(problems, err.Error()), "\n"), test.says)
		})
	}
}

func TestFsckFindsFolderDefects(t *testing.T) {
	for name, test := range map[string]struct {
		change func(dir, blob string) error
		says   string
	}{
		"a large blob":              {func(_, blob string) error { return os.WriteFile(blob, []byte("other"), 0o600) }, "ends"},
		"a large blob that is gone": {func(_, blob string) error { return os.Remove(blob) }, "not in the journal"},
		"a foreign file":            {func(_, blob string) error { return os.WriteFile(blob+".bak", nil, 0o600) }, "is not a blob's file"},
		"a foreign file among the unfinished": {func(dir, _ string) error {
			return os.WriteFile(filepath.Join(dir, "blobs", "new", "x"), nil, 0o600)
		}, "is not an unfinished blob"},
		"a folder for all": {func(dir, _ string) error { return os.Chmod(dir, 0o755) }, "chmod 700"},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && name == "a folder for all" {
				t.Skip("modes are not how Windows says who may read")
			}
			dir := t.TempDir()
			j := open(t, dir)
			_, large := fill(t, j)
			require.NoError(t, j.Close())
			require.NoError(t, test.change(dir, blobFile(dir, large)))
			_, problems, err := fsck(t, dir, journal.Head{})
			require.ErrorIs(t, err, record.ErrDamaged)
			require.Contains(t, strings.Join(problems, "\n"), test.says)
		})
	}
}

func TestFsckCreatesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	_, _, err := fsck(t, dir, journal.Head{})
	require.ErrorIs(t, err, journal.ErrNotFound)
	require.NoDirExists(t, dir)
}

// logOf returns a folder as a killed process leaves it, and its write-ahead
// log.
func logOf(t *testing.T) (dir string, log []byte) {
	t.Helper()
	from, dir := t.TempDir(), t.TempDir()
	j := open(t, from)
	defer func() { require.NoError(t, j.Close()) }()
	fill(t, j)
	e := journaltest.Entry(record.Header{}, strings.Repeat("x", 20000))
	require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{e, e}, Durable: true}))
	require.NoError(t, os.CopyFS(dir, os.DirFS(from)))
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	}))
	require.NoError(t, os.Remove(filepath.Join(dir, "journal.db-shm")))
	log, err := os.ReadFile(filepath.Join(dir, "journal.db-wal"))
	require.NoError(t, err)
	return dir, log
}

// TestFsckReadsTheLogBeforeSQLite changes bytes of the log. Each is under a
// checksum, so a change shows, unless no commit follows it, as after a crash.
// If it shows, neither fsck nor Open lets SQLite read the log.
func TestFsckReadsTheLogBeforeSQLite(t *testing.T) {
	const frame = 24 + 4096
	for name, test := range map[string]struct {
		change func(log []byte, frames int) []byte
		says   string // "": like a crash
	}{
		"as it was":              {func(log []byte, _ int) []byte { return log }, ""},
		"empty":                  {func([]byte, int) []byte { return nil }, ""},
		"cut in the last frame":  {func(log []byte, _ int) []byte { return log[:len(log)-100] }, ""},
		"cut in the header":      {func(log []byte, _ int) []byte { return log[:20] }, ""},
		"the last frame":         {func(log []byte, n int) []byte { log[32+n*frame-1]++; return log }, ""},
		"a page":                 {func(log []byte, _ int) []byte { log[32+2*frame+500]++; return log }, "frame 3 of the write-ahead log"},
		"a checksum":             {func(log []byte, _ int) []byte { log[32+2*frame+20]++; return log }, "frame 3 of the write-ahead log"},
		"a salt":                 {func(log []byte, _ int) []byte { log[32+2*frame+8]++; return log }, "frame 3 of the write-ahead log"},
		"the last frame but one": {func(log []byte, n int) []byte { log[32+(n-2)*frame+500]++; return log }, "commits"},
		"the header":             {func(log []byte, _ int) []byte { log[13]++; return log }, "the header of the write-ahead log"},
		"an unfinished commit": {func(log []byte, n int) []byte {
			log[32+(n-4)*frame+500]++ // bytes that a later, shorter commit overwrote
			return log[:32+(n-1)*frame]
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, log := logOf(t)
			file := filepath.Join(dir, "journal.db-wal")
			log = test.change(bytes.Clone(log), (len(log)-32)/frame)
			require.NoError(t, os.WriteFile(file, log, 0o600))
			_, problems, err := fsck(t, dir, journal.Head{})
			if test.says == "" {
				require.NotContains(t, strings.Join(problems, "\n"), "write-ahead log", err)
				return
			}
			require.ErrorIs(t, err, record.ErrDamaged)
			require.Len(t, problems, 1)
			require.Contains(t, problems[0], test.says)
			_, err = sqlite.Open(t.Context(), dir)
			require.ErrorIs(t, err, record.ErrDamaged, "SQLite would drop what stands behind the damage")
			require.ErrorContains(t, err, test.says)
			after, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, log, after, "the log is left for whoever can mend it")
		})
	}
}

// TestADamagedLogCanBeCut cuts a damaged log at the position in the error. The
// entries before it are readable.
func TestADamagedLogCanBeCut(t *testing.T) {
	const frame = 24 + 4096
	dir, log := logOf(t)
	file := filepath.Join(dir, "journal.db-wal")
	log[32+(len(log)-32)/frame*frame-3*frame+500]++
	require.NoError(t, os.WriteFile(file, log, 0o600))
	_, err := sqlite.Open(t.Context(), dir)
	require.ErrorIs(t, err, record.ErrDamaged)
	_, text, found := strings.Cut(err.Error(), "as cutting the log to ")
	require.True(t, found, err)
	var size int64
	_, err = fmt.Sscan(text, &size)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(file, size))
	_, err = sqlite.Open(t.Context(), dir)
	require.ErrorIs(t, err, sqlite.ErrIncomplete, "what was cut had been promised")
	accepted, err := sqlite.Accept(t.Context(), dir, "kim")
	require.NoError(t, err)
	require.EqualValues(t, 2, accepted.Missing)
	j := open(t, dir)
	defer func() { require.NoError(t, j.Close()) }()
	head, err := j.Head(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 6+1, head.Size, "the last commit is gone, and no other; and who went on without it is on record")
}

// TestOpenBesideAWriterReadsNoLog checks that no other opening reads the log
// while one is alive.
func TestOpenBesideAWriterReadsNoLog(t *testing.T) {
	dir, log := logOf(t)
	j := open(t, dir)
	defer func() { _ = j.Close() }()
	log[32+500]++
	require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.db-wal"), log, 0o600))
	other := open(t, dir)
	require.NoError(t, other.Close())
}

// TestFsckOfWhatAKilledProcessLeft checks that the files of a killed process do
// not count as damage, in the log or in the tree. No other process has the log
// open.
func TestFsckOfWhatAKilledProcessLeft(t *testing.T) {
	const seed = 11
	random := rand.New(rand.NewPCG(seed, seed))
	dir := t.TempDir()
	for round := range kills {
		c := startChild(t, dir, fmt.Sprint("f", round), "append")
		delay := time.Duration(random.IntN(40_000)) * time.Microsecond
		time.AfterFunc(delay, func() { _ = c.cmd.Process.Kill() }) // fails only if the process is dead
		require.NoError(t, c.listen())
		require.Error(t, c.cmd.Wait())

		report, problems, err := fsck(t, dir, journal.Head{})
		require.Zero(t, report.Alive)
		for _, p := range problems { // the children write incomplete transactions
			require.Regexp(t, "^transaction .* (begins with|is held for unfinished)", p, err)
		}
		require.Equal(t, report.Entries, report.Head.Size)
	}
}

package sqlite_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// specimen is a small journal as a killed process leaves it: partly in the
// database, and partly in the write-ahead log.
type specimen struct {
	dir       string // contains the other files of the journal
	main, log []byte
	entries   int // entries in the database and in the log before its last commit
	is        content
}

// content is everything that a journal returns.
type content struct {
	entries []record.Entry
	open    []journal.Ownership
	claims  []string
	small   string
	head    journal.Head
}

// newSpecimen creates a specimen with pages of a size.
func newSpecimen(t *testing.T, pages int) *specimen {
	t.Helper()
	s := &specimen{dir: memoryDir(t)}
	from := memoryDir(t)
	foreign(t, filepath.Join(from, "journal.db"), fmt.Sprint("PRAGMA page_size = ", pages), "VACUUM")
	j := open(t, from)
	fill(t, j)
	require.NoError(t, j.Index(t.Context()))
	require.NoError(t, j.Close())
	j = open(t, from)
	own := journal.Ownership{Txn: "t_3", Owner: j.Owner()}
	begun, err := record.Seal(record.Record{Header: record.Header{Kind: record.KindBegun, Txn: "t_3"}, Body: &record.Begun{Owner: own.Owner}}, []byte("salt for testing"))
	require.NoError(t, err)
	require.NoError(t, j.Append(t.Context(), journal.Batch{Take: journal.OwnerChange{To: own}, Fence: own, Claims: []string{"r_3"}, Entries: []record.Entry{begun}}))
	for n := range 4 {
		s.entries = 7 + n
		e := journaltest.Entry(record.Header{Session: "s_1"}, fmt.Sprint("tool ", n))
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{e}, Durable: true}))
	}
	require.NoError(t, os.CopyFS(s.dir, os.DirFS(from)))
	require.NoError(t, j.Close())
	require.NoError(t, os.Remove(filepath.Join(s.dir, "journal.db-shm")))
	s.main, err = os.ReadFile(filepath.Join(s.dir, "journal.db"))
	require.NoError(t, err)
	s.log, err = os.ReadFile(filepath.Join(s.dir, "journal.db-wal"))
	require.NoError(t, err)
	return s
}

// memoryDir returns a folder in memory if there is one: nothing here must
// survive the process.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "remit-journal-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o700))
	return dir
}

// bench is a folder in which specimens are checked, one after the other.
type bench struct {
	t   *testing.T
	s   *specimen
	dir string

	looks int
}

func (s *specimen) bench(t *testing.T) *bench {
	b := &bench{t: t, s: s, dir: memoryDir(t)}
	require.NoError(t, os.CopyFS(b.dir, os.DirFS(s.dir)))
	require.NoError(t, os.Chmod(b.dir, 0o700))
	return b
}

// damage is one change of a specimen.
type damage struct {
	file string // main or log
	bit  int    // negative: none
	cut  int    // negative: none
}

func (d damage) String() string {
	if d.bit >= 0 {
		return fmt.Sprintf("%s-bit-%d", d.file, d.bit)
	}
	return fmt.Sprintf("%s-cut-%d", d.file, d.cut)
}

func (d damage) of(s *specimen) (main, log []byte) {
	main, log = s.main, s.log
	one := &main
	if d.file == "log" {
		one = &log
	}
	if d.bit >= 0 {
		*one = bytes.Clone(*one)
		(*one)[d.bit/8] ^= 1 << (d.bit % 8)
	} else {
		*one = (*one)[:d.cut]
	}
	return main, log
}

// verdict is the effect of a damage.
type verdict string

const (
	detected verdict = "detected"
	harmless verdict = "harmless"
)

// lay writes a specimen into the bench's folder.
func (b *bench) lay(main, log []byte) {
	require.NoError(b.t, os.WriteFile(filepath.Join(b.dir, "journal.db"), main, 0o600))
	require.NoError(b.t, os.WriteFile(filepath.Join(b.dir, "journal.db-wal"), log, 0o600))
	if err := os.Remove(filepath.Join(b.dir, "journal.db-shm")); err != nil {
		require.ErrorIs(b.t, err, os.ErrNotExist)
	}
}

// look returns the results of fsck and Open for the current specimen, and its
// readable content. It opens only some of those that fsck reports.
func (b *bench) look() (is content, checked, opened error) {
	_, checked = sqlite.Fsck(b.t.Context(), b.dir, revert.FsckOptions{})
	if b.looks++; checked != nil && b.looks%4 != 0 {
		return is, checked, nil
	}
	j, opened := sqlite.Open(b.t.Context(), b.dir)
	if opened != nil {
		return is, checked, opened
	}
	is, opened = b.read(j)
	if err := j.Close(); opened == nil {
		opened = err
	}
	return is, checked, opened
}

// read reads everything. A readable entry must equal the written one.
func (b *bench) read(j *sqlite.Journal) (is content, err error) {
	ctx := b.t.Context()
	for e, bad := range j.Entries(ctx, journal.Query{}) {
		if bad != nil {
			err = bad // and checks what is still readable
			continue
		}
		is.entries = append(is.entries, e)
	}
	if err == nil {
		is.open, err = j.Unfinished(ctx)
	}
	if err == nil {
		is.head, err = j.Head(ctx)
	}
	if err == nil {
		is.claims, is.small, err = readClaims(b.dir)
	}
	return is, err
}

// readClaims reads what the journal holds apart from its entries.
func readClaims(dir string) (claims []string, small string, err error) {
	db, err := sql.Open("sqlite", filepath.Join(dir, "journal.db"))
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = db.Close() }()
	rows, err := db.Query("SELECT resource || ' ' || txn FROM claims UNION ALL SELECT resource || ' ' || txn FROM new_claims")
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var claim string
		if err := rows.Scan(&claim); err != nil {
			return nil, "", err
		}
		claims = append(claims, claim)
	}
	if err := rows.Err(); err != nil {
		return nil, "", err
	}
	return claims, small, db.QueryRow("SELECT group_concat(digest || size || content) FROM blobs").Scan(&small)
}

// judge applies a damage and returns its verdict, or what is wrong.
func (b *bench) judge(d damage) (v verdict, wrong error) {
	defer func() {
		if r := recover(); r != nil {
			wrong = fmt.Errorf("panic: %v", r)
		}
	}()
	b.lay(d.of(b.s))
	is, checked, opened := b.look()
	want := b.s.is
	for _, e := range is.entries {
		if e.Pos < 1 || e.Pos > int64(len(want.entries)) || !reflect.DeepEqual(e, want.entries[e.Pos-1]) {
			return "", fmt.Errorf("entry %d is read as %+v", e.Pos, e)
		}
	}
	switch {
	case checked != nil || opened != nil:
		return detected, nil
	case reflect.DeepEqual(is, want):
		return harmless, nil
	case len(is.entries) == len(want.entries):
		return "", fmt.Errorf("nobody says that it is not as it was: %+v", is)
	}
	return "", fmt.Errorf("%d entries are left, without a word", len(is.entries))
}

// damages returns every changed bit and every length of both files.
func (s *specimen) damages() (all []damage) {
	for file, size := range map[string]int{"main": len(s.main), "log": len(s.log)} {
		for bit := range 8 * size {
			all = append(all, damage{file, bit, -1})
		}
		for cut := range size {
			all = append(all, damage{file, -1, cut})
		}
	}
	return all
}

// TestCorruption changes each bit of a small journal, and truncates its files
// at each length. Open or fsck must report the damage, or it has no effect. The
// head file must reveal a truncated log. Readable entries must equal the
// written ones. With REMIT_PROVE it uses every bit and every length, with
// REMIT_LONG 10,000 of them; REMIT_DAMAGE names one.
func TestCorruption(t *testing.T) {
	s := newSpecimen(t, 512)
	b := s.bench(t)
	b.lay(s.main, s.log)
	is, checked, opened := b.look()
	require.NoError(t, checked)
	require.NoError(t, opened)
	require.Len(t, is.entries, s.entries+1)
	s.is = is
	all := s.chosen(t)
	seen, violations := s.judgeAll(t, all)
	if os.Getenv("REMIT_DAMAGE") != "" {
		return
	}
	for _, v := range []verdict{detected, harmless} {
		require.Positive(t, seen[v], v)
	}
	t.Logf("a database of %d bytes and a log of %d: %v", len(s.main), len(s.log), seen)
	t.Logf("proved: bits flipped and files cut: %d journals, %d violations", len(all), violations)
}

// chosen returns the damages of this run.
func (s *specimen) chosen(t *testing.T) []damage {
	all := s.damages()
	if name := os.Getenv("REMIT_DAMAGE"); name != "" {
		for _, d := range all {
			if d.String() == name {
				return []damage{d}
			}
		}
		require.Fail(t, "REMIT_DAMAGE is main or log, -bit- or -cut-, and a number", name)
	}
	if os.Getenv("REMIT_PROVE") != "" {
		return all
	}
	seed := uint64(1)
	if text := os.Getenv("REMIT_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "REMIT_SEED")
	}
	r := rand.New(rand.NewPCG(seed, 3))
	byName := func(i, j int) { all[i], all[j] = all[j], all[i] }
	r.Shuffle(len(all), byName)
	if statcheck.Whole() {
		return all[:10_000]
	}
	return all[:300]
}

// judgeAll judges damages, with a bench for each processor.
func (s *specimen) judgeAll(t *testing.T, all []damage) (seen map[verdict]int, violations int) {
	seen = map[verdict]int{}
	var mu sync.Mutex
	var workers sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for w := range n {
		b := s.bench(t)
		workers.Go(func() {
			for i := w; i < len(all); i += n {
				v, wrong := b.judge(all[i])
				mu.Lock()
				if seen[v]++; seen[v]%25_000 == 0 {
					t.Log(seen) // shows progress
				}
				if wrong != nil {
					if violations++; violations <= 20 {
						t.Errorf("%s: %v\nREMIT_DAMAGE=%s go test ./revert/sqlite -run '^TestCorruption$'", all[i], wrong, all[i])
					}
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return seen, violations
}

package revert_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// dependentNote is a journal that returns other data than it holds.
type dependentNote struct {
	journal.Journal
	head    func(journal.Head) (journal.Head, error)
	entry   func(record.Entry) (record.Entry, error) // changes entries of reads without a transaction
	cut     int64                                    // entries from here on are missing
	ends    error                                    // error at the end of such a read
	hashing error
}

func (l dependentNote) Head(ctx context.Context) (journal.Head, error) {
	h, err := l.Journal.Head(ctx)
	if err == nil && l.head != nil {
		return l.head(h)
	}
	return h, err
}

func (l dependentNote) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for e, err := range l.Journal.Entries(ctx, q) {
			if l.cut > 0 && e.Pos >= l.cut {
				if l.ends != nil {
					yield(record.Entry{}, l.ends)
				}
				return
			}
			if err == nil && l.entry != nil && q.Txn == "" {
				e, err = l.entry(e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (l dependentNote) Hashes(ctx context.Context, at []int64) ([]tlog.Hash, error) {
	if l.hashing != nil {
		return nil, l.hashing
	}
	return l.Journal.Hashes(ctx, at)
}

// check returns the problems that fsck finds, each with its position.
func (l *testEnv) check(j journal.Journal, kept journal.Head) (found []string, err error) {
	_, err = revert.Fsck(l.t.Context(), j, revert.FsckOptions{Kept: kept, Found: func(p revert.Problem) {
		found = append(found, fmt.Sprintf("%d: %s", p.Pos, p.What))
	}})
	return found, err
}

// TestFsckOfAnInconsistentJournal checks that each inconsistency of a journal is
// reported with its position.
func TestFsckOfAnInconsistentJournal(t *testing.T) {
	damaged := fmt.Errorf("%w: a page of it", record.ErrDamaged)
	at := func(pos int64, as func(e record.Entry) (record.Entry, error)) func(record.Entry) (record.Entry, error) {
		return func(e record.Entry) (record.Entry, error) {
			if e.Pos == pos {
				return as(e)
			}
			return e, nil
		}
	}
	lost := func(e record.Entry) (record.Entry, error) { return record.Entry{Pos: e.Pos}, damaged }
	for _, tt := range []struct {
		name  string
		lie   dependentNote
		kept  bool
		found []string // beginning of each problem
	}{
		{"an entry that cannot be read", dependentNote{entry: at(3, lost)}, true, []string{"3: journal is damaged: a page"}},
		{"nor what stands in for it", dependentNote{entry: at(3, lost), hashing: damaged}, false, []string{"1: tree", "2: tree", "3: journal is damaged: a page", "3: tree"}},
		{"nothing from there on", dependentNote{cut: 5, ends: damaged}, false, []string{"1: transaction", "5: nothing can be read from here on", "0: the journal says that it has 18 entries, and the last is 4"}},
		{"less than it says", dependentNote{cut: 5}, false, []string{"0: the journal says that it has 18 entries, and the last is 4", "1: transaction"}},
		{"a position twice", dependentNote{entry: at(3, func(e record.Entry) (record.Entry, error) { e.Pos = 2; return e, nil })}, false, []string{"2: position 2 follows 2", "4: position 4 follows 2"}},
		{"another head", dependentNote{head: func(h journal.Head) (journal.Head, error) { h.Root = journal.Tree{}.Head().Root; return h, nil }}, false, []string{"0: the tree head is stored as"}},
		{"no head", dependentNote{head: func(h journal.Head) (journal.Head, error) { return h, damaged }}, true, []string{"0: tree head: journal is damaged"}},
		{"no head, and not all of the tree", dependentNote{head: func(h journal.Head) (journal.Head, error) { return h, damaged }, entry: at(3, func(e record.Entry) (record.Entry, error) { e.Pos = 2; return e, nil })}, true, []string{"0: tree head", "2: position 2", "4: position 4", "0: the head kept elsewhere cannot be compared"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newTestEnv(t)
			l.worked()
			kept := journal.Head{}
			if tt.kept {
				var err error
				kept, err = l.journal.Head(t.Context())
				require.NoError(t, err)
			}
			l.one(t, "z", 1)
			tt.lie.Journal = l.journal
			found, err := l.check(tt.lie, kept)
			require.ErrorIs(t, err, record.ErrDamaged)
			require.Len(t, found, len(tt.found), "%q", found)
			for i, want := range tt.found {
				require.True(t, strings.HasPrefix(found[i], want), "%q", found)
			}
		})
	}
}

// TestFsckDuringAppends checks that fsck ignores entries that are appended
// while it runs.
func TestFsckDuringAppends(t *testing.T) {
	l := newTestEnv(t)
	l.worked()
	early := dependentNote{Journal: l.journal, head: func(h journal.Head) (journal.Head, error) {
		rec := revert.NewRecorder(l.journal, l.host, "s_1")
		l.must(rec, revert.Write{Records: []revert.CallRecord{{Txn: "t_lost", Call: "c_1", Body: &record.Invalid{Why: "x"}}}})
		return h, nil
	}}
	found, err := l.check(early, journal.Head{})
	require.NoError(t, err, "%q", found)
	_, err = l.check(l.journal, journal.Head{})
	require.ErrorIs(t, err, record.ErrDamaged)
}

// TestFsckCancelled checks that a cancelled fsck returns the cancellation,
// and no problem.
func TestFsckCancelled(t *testing.T) {
	l := newTestEnv(t)
	l.worked()
	enough := errors.New("enough")
	_, err := revert.Fsck(t.Context(), l.journal, revert.FsckOptions{Named: func(effect.BlobRef) error { return enough }})
	require.ErrorIs(t, err, enough)
	require.ErrorIs(t, journal.Blobs(t.Context(), l.journal, 0, func(int64, effect.BlobRef) error { return enough }), enough)

	ctx, cancel := context.WithCancelCause(t.Context())
	lie := dependentNote{Journal: l.journal, cut: 5}
	_, err = revert.Fsck(ctx, lie, revert.FsckOptions{Found: func(revert.Problem) { cancel(enough) }})
	require.ErrorIs(t, err, enough)
	require.NotErrorIs(t, err, record.ErrDamaged)
}

// TestFsckOrder checks the order of transactions that have no
// owner any more.
func TestFsckOrder(t *testing.T) {
	l := newTestEnv(t)
	var want []string
	for range 5 {
		rec := l.txn()
		want = append(want, rec.Txn())
		l.must(rec, revert.Write{End: true})
	}
	found, err := l.check(l.journal, journal.Head{})
	require.ErrorIs(t, err, record.ErrDamaged)
	require.Len(t, found, len(want))
	for i, txn := range want {
		require.Contains(t, found[i], txn)
	}
}

// batchScheme is a journal that finds the entries of a transaction by index.
type batchScheme struct {
	journal.Journal
	txns map[string][]record.Entry
}

func (g batchScheme) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	if q.Txn == "" {
		return g.Journal.Entries(ctx, q)
	}
	return func(yield func(record.Entry, error) bool) {
		for i, e := range g.txns[q.Txn] {
			if !yield(e, nil) || i+1 == q.Limit {
				return
			}
		}
	}
}

// TestCheckOfManyTransactions checks that fsck finds the beginning of a
// transaction that it has already forgotten.
func TestCheckOfManyTransactions(t *testing.T) {
	if statcheck.Racing {
		t.Skip("one goroutine, and many records")
	}
	const many = 2 * 4096
	store := journal.SharedMemory()
	j := batchScheme{store(), map[string][]record.Entry{}}
	var batch journal.Batch
	add := func(txn string, b record.Body, k record.Kind) {
		e, err := record.Seal(record.Record{Header: record.Header{Kind: k, Txn: txn, At: time.Unix(0, 0)}, Body: b}, make([]byte, record.SaltSize))
		require.NoError(t, err)
		batch.Entries = append(batch.Entries, e)
		e.Pos = int64(len(batch.Entries))
		j.txns[txn] = append(j.txns[txn], e)
	}
	first := "t_0"
	add(first, &record.Begun{Owner: "o"}, record.KindBegun)
	for i := range many {
		txn := fmt.Sprint("t_", i+1)
		add(txn, &record.Begun{Owner: "o"}, record.KindBegun)
		add(txn, &record.Committed{}, record.KindCommitted)
	}
	add(first, &record.Committed{}, record.KindCommitted)
	require.NoError(t, j.Append(t.Context(), batch))
	report, err := revert.Fsck(t.Context(), j, revert.FsckOptions{})
	require.NoError(t, err)
	require.Equal(t, int64(many+1), report.Txns)
}

// TestNewerRecordInAJournal checks that no reader that must understand
// a record skips one of a newer version.
func TestNewerRecordInAJournal(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	head := fmt.Sprintf(`{"at":"2026-01-02T03:04:05Z","call":"c_1","kind":"changed","session":"s_1","txn":%q,"v":2}`, rec.Txn())
	body := sha256.Sum256([]byte("remit/body/v1")) // a body without fields
	leaf := sha256.Sum256(slices.Concat([]byte("remit/leaf/v1"), body[:], []byte(head)))
	e := record.Entry{
		Header: record.Header{V: 2, Kind: record.KindChanged, Txn: rec.Txn(), Call: "c_1"},
		Head:   []byte(head), Salt: make([]byte, record.SaltSize), Body: []byte(`{}`), Leaf: fmt.Sprintf("sha256:%x", leaf),
	}
	require.NoError(t, l.journal.Append(t.Context(), journal.Batch{Entries: []record.Entry{e}}))
	found, err := l.check(l.journal, journal.Head{})
	require.ErrorIs(t, err, record.ErrDamaged)
	require.Contains(t, found[len(found)-1], "version 2")
	_, err = revert.Load(t.Context(), l.journal, rec.Txn())
	require.ErrorContains(t, err, "use a newer one")
	_, err = l.journal.CollectGarbage(t.Context(), nil)
	require.ErrorContains(t, err, "use a newer one", "nobody knows what content it names")
	err = journal.Blobs(t.Context(), l.journal, 0, func(int64, effect.BlobRef) error { return nil })
	require.ErrorContains(t, err, "use a newer one")
}

// erasedFields is a journal that stores an entry without one field, which no
// record mentions. The entry fits its leaf.
type erasedFields struct {
	journal.Journal
	kind  record.Kind
	field string
}

func (j erasedFields) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for e, err := range j.Journal.Entries(ctx, q) {
			if err == nil && e.Header.Kind == j.kind {
				e, err = e.EraseFields(j.field)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestUnexplainedErasedField checks that a reader stops at a field that is gone
// and does not take it for an absent one, and that fsck names it.
func TestUnexplainedErasedField(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	require.NoError(t, rec.Write(t.Context(), revert.Write{Records: []revert.CallRecord{{Call: "c_1", Body: handled()}}}))
	j := erasedFields{l.journal, record.KindStarted, "confinement"}
	found, err := l.check(j, journal.Head{})
	require.ErrorIs(t, err, record.ErrDamaged)
	require.Contains(t, found, "2: entry 2: fields confinement: erased")
	_, err = revert.Load(t.Context(), j, rec.Txn())
	require.ErrorIs(t, err, record.ErrErased)

	for e, err := range j.Entries(t.Context(), journal.Query{Kinds: []record.Kind{record.KindStarted}}) {
		require.NoError(t, err)
		require.ErrorContains(t, l.journal.Append(t.Context(), journal.Batch{Entries: []record.Entry{e}}), "not sealed", "a journal stores whole records")
	}
}

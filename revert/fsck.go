package revert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/internal/sparse"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// FsckOptions are the inputs of Fsck beside the journal.
type FsckOptions struct {
	// Kept is a tree head that was stored elsewhere: the journal must begin
	// with its entries. The zero Head checks nothing.
	Kept journal.Head
	// Found is called for each problem when it is found. nil: none.
	Found func(Problem)
	// Named is called for each blob that an entry refers to, once per
	// reference. A store uses it to find blobs without references. nil: none.
	Named func(effect.BlobRef) error
}

// Problem is a defect of a journal.
type Problem struct {
	Pos  int64  `json:"pos,omitempty"` // position of the entry, if the problem concerns one
	What string `json:"what"`
}

// FsckReport says what Fsck checked.
type FsckReport struct {
	Entries  int64        `json:"entries"`
	Txns     int64        `json:"txns"`
	Blobs    int64        `json:"blobs"`  // number of references to blobs
	Erased   int64        `json:"erased"` // entries whose bodies were destroyed, as records say
	Problems int64        `json:"problems"`
	Head     journal.Head `json:"head"` // tree head of the checked entries
}

// Fsck checks everything that a journal shows, and recomputes what can be
// computed. It checks that positions are dense, that each entry fits its leaf,
// the leaves fit the stored hashes of the tree, and these fit the head. It
// checks that each transaction can be folded and ended as the journal says,
// that each referenced blob exists with its content, and that a head kept
// elsewhere belongs to this journal. It continues after a problem, and returns
// ErrDamaged if there was any. It can run beside appending processes, and
// ignores entries that are newer than its start. Its memory does not grow with
// the history.
func Fsck(ctx context.Context, j journal.Journal, o FsckOptions) (FsckReport, error) {
	f := fsck{journal: j, options: o, whole: newRecent(), begun: newRecent(), open: map[string]int64{}}
	for _, part := range []func(context.Context) error{f.head, f.entries, f.tree, f.kept, f.unfinished} {
		if err := part(ctx); err != nil {
			return f.report, err
		}
		if ctx.Err() != nil { // otherwise it looks like a defect of the journal
			return f.report, context.Cause(ctx)
		}
	}
	return f.report, f.report.Err()
}

// Err returns ErrDamaged if there are problems.
func (r FsckReport) Err() error {
	if r.Problems == 0 {
		return nil
	}
	return fmt.Errorf("%w: problems found: %d", record.ErrDamaged, r.Problems)
}

// noSize marks a head that could not be read: fsck checks all entries.
const noSize = math.MaxInt64

type fsck struct {
	journal journal.Journal
	options FsckOptions
	report  FsckReport

	stored journal.Head // as the journal reports it; Size is the end of the check
	last   int64
	grown  journal.Tree // computed from the leaves
	failed bool         // grown cannot grow any more

	whole *recentSet       // blobs that passed the check
	begun *recentSet       // transactions whose stream begins correctly
	open  map[string]int64 // position of the begun record of each transaction without an end
}

func (f *fsck) problem(pos int64, format string, args ...any) {
	f.report.Problems++
	if f.options.Found != nil {
		f.options.Found(Problem{Pos: pos, What: fmt.Errorf(format, args...).Error()})
	}
}

func (f *fsck) head(ctx context.Context) (err error) {
	f.stored, err = f.journal.Head(ctx)
	if errors.Is(err, record.ErrDamaged) {
		f.problem(0, "tree head: %w", err)
		f.stored, err = journal.Head{Size: noSize}, nil
	}
	return err
}

func (f *fsck) entries(ctx context.Context) error {
	for e, err := range f.journal.Entries(ctx, journal.Query{}) {
		if e.Pos > f.stored.Size {
			break
		}
		if e.Pos == 0 { // the read failed, not the entry
			if errors.Is(err, record.ErrDamaged) {
				f.problem(f.last+1, "nothing can be read from here on: %w", err)
				return nil
			}
			return err
		}
		f.report.Entries++
		if e.Pos != f.last+1 {
			f.problem(e.Pos, "position %d follows %d", e.Pos, f.last)
			f.failed = true
		}
		f.last = e.Pos
		if err != nil {
			f.problem(e.Pos, "%w", err)
		}
		f.grow(ctx, e, err == nil)
		if err == nil {
			if err := f.entry(ctx, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// grow adds an entry to the tree, and compares the hashes that it completes
// with the stored ones. If the leaf cannot be computed, the stored hash
// replaces it.
func (f *fsck) grow(ctx context.Context, e record.Entry, sound bool) {
	if f.failed {
		return
	}
	first := tlog.StoredHashIndex(0, e.Pos-1)
	var whole []tlog.Hash
	if sound {
		f.grown, whole = f.grown.Add(e.Leaf)
	} else {
		stored, err := f.journal.Hashes(ctx, []int64{first})
		if err != nil {
			f.problem(e.Pos, "tree: %w", err)
			f.failed = true
			return
		}
		f.grown, whole = f.grown.AddHash(stored[0])
	}
	indexes := make([]int64, len(whole))
	for i := range indexes {
		indexes[i] = first + int64(i)
	}
	switch stored, err := f.journal.Hashes(ctx, indexes); {
	case err != nil:
		f.problem(e.Pos, "tree: %w", err)
	case !slices.Equal(stored, whole):
		f.problem(e.Pos, "the stored hashes of the tree are not those of the leaves up to here")
	}
}

// entry checks the content of a sound entry.
func (f *fsck) entry(ctx context.Context, e record.Entry) error {
	if e.Erased != "" {
		f.report.Erased++
		if e.Header.Txn == "" || e.Header.Call == "" || !e.Header.Kind.Erasable() {
			f.problem(e.Pos, "the body of %s is gone, which is never erased", e.Header.Kind)
			return nil
		}
		f.stream(ctx, e, record.Record{Header: e.Header})
		return nil
	}
	r, err := record.Unseal(e)
	if err != nil {
		f.problem(e.Pos, "%w", err)
		return nil
	}
	if r.Txn != "" {
		f.stream(ctx, e, r)
	}
	for _, ref := range r.Blobs() {
		f.report.Blobs++
		if f.options.Named != nil {
			if err := f.options.Named(ref); err != nil {
				return err
			}
		}
		if f.whole.has(ref.Digest) {
			continue
		}
		if err := f.blob(ctx, ref); err != nil {
			f.problem(e.Pos, "%s names content that is not there as it was: %w", r.Kind, err)
			continue
		}
		f.whole.add(ref.Digest)
	}
	return nil
}

func (f *fsck) blob(ctx context.Context, ref effect.BlobRef) error {
	content, err := f.journal.OpenContent(ctx, ref)
	if err != nil {
		return err
	}
	_, err = sparse.Copy(sparse.Into(io.Discard), content, make([]byte, journal.InlineMax))
	return errors.Join(err, content.Close())
}

// stream checks the whole transaction of a record, at the record that begins
// it.
func (f *fsck) stream(ctx context.Context, e record.Entry, r record.Record) {
	if b, ok := r.Body.(*record.Begun); ok {
		f.report.Txns++
		f.begun.add(r.Txn)
		f.fold(ctx, e, b)
		return
	}
	if f.begun.has(r.Txn) {
		return
	}
	for first, err := range f.journal.Entries(ctx, journal.Query{Txn: r.Txn, Limit: 1}) {
		switch {
		case err != nil && first.Pos != 0: // reported with the entry itself
		case err != nil:
			f.problem(e.Pos, "the beginning of transaction %s cannot be read: %w", r.Txn, err)
		case first.Header.Kind == record.KindBegun:
			f.begun.add(r.Txn)
		case first.Pos == e.Pos: // reported once
			f.problem(e.Pos, "transaction %s begins with %s", r.Txn, r.Kind)
		}
	}
}

func (f *fsck) fold(ctx context.Context, e record.Entry, b *record.Begun) {
	t, err := Load(ctx, f.journal, e.Header.Txn)
	if err != nil {
		f.problem(e.Pos, "transaction %s cannot be read: %w", e.Header.Txn, err)
		return
	}
	if t.End == "" {
		f.open[t.ID] = e.Pos
	}
	for _, subject := range append([]string{b.Reverts + b.Redoes}, b.Also...) {
		if subject == "" {
			continue
		}
		of, err := Load(ctx, f.journal, subject)
		switch {
		case err != nil:
			f.problem(e.Pos, "transaction %s works on %s, which cannot be read: %w", t.ID, subject, err)
		case !slices.Contains(of.links, t.ID):
			f.problem(e.Pos, "transaction %s works on %s, which does not name it", t.ID, subject)
		}
	}
}

// tree compares the computed tree with the stored one.
func (f *fsck) tree(context.Context) error {
	f.report.Head = f.grown.Head()
	switch {
	case f.stored.Size == noSize: // already reported
	case f.last != f.stored.Size:
		f.problem(0, "the journal says that it has %d entries, and the last is %d", f.stored.Size, f.last)
	case !f.failed && f.report.Head != f.stored:
		f.problem(0, "the tree head is stored as %s, and the leaves make %s", f.stored, f.report.Head)
	}
	return nil
}

// kept proves the head from outside with the hashes that were just compared
// with the leaves.
func (f *fsck) kept(ctx context.Context) error {
	if f.options.Kept == (journal.Head{}) {
		return nil
	}
	now := f.report.Head
	if f.failed { // a head with fewer entries looks like a cut
		now = f.stored
	}
	if now.Size == noSize {
		f.problem(0, "the head kept elsewhere cannot be compared: the tree is not there")
		return nil
	}
	proof, err := journal.Proof(ctx, f.journal, f.options.Kept, now)
	if err == nil {
		err = journal.CheckPrefix(f.options.Kept, now, proof)
	}
	if err != nil {
		f.problem(0, "the head kept elsewhere: %w", err)
	}
	return nil
}

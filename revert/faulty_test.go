package revert_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
)

var errFault = errors.New("the journal does not answer")

// faulty is a journal whose n-th operation fails, and no other.
type faulty struct {
	revert.Journal
	left   int // operations before it
	failed bool
}

func (f *faulty) fails() bool {
	f.left--
	f.failed = f.failed || f.left == -1
	return f.left == -1
}

func (f *faulty) Append(ctx context.Context, b revert.Batch) error {
	if f.fails() {
		return errFault
	}
	return f.Journal.Append(ctx, b)
}

func (f *faulty) Entries(ctx context.Context, q revert.Query) iter.Seq2[revert.Entry, error] {
	if !f.fails() {
		return f.Journal.Entries(ctx, q)
	}
	return func(yield func(revert.Entry, error) bool) { yield(revert.Entry{}, errFault) }
}

func (f *faulty) Unfinished(ctx context.Context) ([]revert.Ownership, error) {
	if f.fails() {
		return nil, errFault
	}
	return f.Journal.Unfinished(ctx)
}

func (f *faulty) Alive(ctx context.Context, owner string) (bool, error) {
	if f.fails() {
		return false, errFault
	}
	return f.Journal.Alive(ctx, owner)
}

func (f *faulty) Keep(ctx context.Context, r io.Reader) (revert.Blob, error) {
	if f.fails() {
		return revert.Blob{}, errFault
	}
	return f.Journal.Keep(ctx, r)
}

// TestJournalThatFailsOnce: whatever is done to a transaction, a journal that
// fails at any one operation is told to whoever asked, is never a complete
// report, and the same done again comes to the same end as without the failure.
func TestJournalThatFailsOnce(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct {
		name   string
		commit bool
		undone bool // was taken back before
		do     func(p *process, id string) (revert.Report, error)
		want   map[string]string
	}{
		{"revert of what is committed", true, false, func(p *process, id string) (revert.Report, error) { return p.reverter.Revert(ctx, id) }, before()},
		{"revert of what an owner left", false, false, func(p *process, id string) (revert.Report, error) { return p.reverter.Revert(ctx, id) }, before()},
		{"redo", true, true, func(p *process, id string) (revert.Report, error) { return p.reverter.Redo(ctx, id, "kim") }, after()},
		{"preview", true, false, func(p *process, id string) (revert.Report, error) {
			return p.reverter.Preview(ctx, id, revert.Undoing{})
		}, after()},
		{"recover", false, false, func(p *process, _ string) (revert.Report, error) {
			found, err := p.reverter.Recover(ctx)
			if err == nil && len(found.Failed) > 0 {
				err = errFault // told of this one transaction; the others were gone on with
			}
			return revert.Report{}, err
		}, after()},
		{"revert of a call", true, false, func(p *process, id string) (revert.Report, error) {
			t, err := revert.Load(ctx, p.journal, id)
			if err != nil {
				return revert.Report{}, err
			}
			return p.reverter.Undo(ctx, t.Calls[1].Ref.Call, revert.Undoing{})
		}, map[string]string{"a": "7", "b": "2", "c": "8"}},
		{"adopt", false, false, func(p *process, id string) (revert.Report, error) {
			_, err := p.reverter.Adopt(ctx, id)
			return revert.Report{}, err
		}, after()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for n := 0; ; n++ {
				open, w := revert.MemoryStore(), &world{maps.Clone(before())}
				first := newProcess(open, w, 1)
				rec, err := first.begin(ctx)
				require.NoError(t, err)
				id := rec.Txn()
				for _, c := range []callSpec{put(write{"a", 7}, write{"c", 8}), put(write{"a", 9}, write{"b", nil})} {
					_, err := first.call(ctx, rec, c)
					require.NoError(t, err)
				}
				if tt.commit {
					require.NoError(t, first.commit(ctx, rec))
				}
				if tt.undone {
					_, err := first.reverter.Revert(ctx, id)
					require.NoError(t, err)
				}
				first.die(t)

				f := &faulty{Journal: open(), left: n}
				p := newProcess(func() revert.Journal { return f }, w, 2)
				report, err := tt.do(p, id)
				if !f.failed {
					require.NoError(t, err)
					require.Equal(t, tt.want, w.values)
					require.Greater(t, n, 1, "the journal was hardly asked")
					return
				}
				require.ErrorIs(t, err, errFault, "at operation %d", n)
				require.False(t, report.State != "" && report.Complete(), "at operation %d: %+v", n, report)
				p.die(t)

				again := newProcess(open, w, 3)
				_, err = again.reverter.Recover(ctx)
				require.NoError(t, err, "at operation %d", n)
				_, err = tt.do(again, id)
				require.NoError(t, err, "at operation %d", n)
				require.Equal(t, tt.want, w.values, "at operation %d", n)
				again.die(t)
			}
		})
	}
}

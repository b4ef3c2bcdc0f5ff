package revert_test

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
)

// bodyless is a journal in which the bodies of some entries are gone, with no record
// that says so.
type bodyless struct {
	revert.Journal
	gone func(e revert.Entry) bool
}

func (b bodyless) Entries(ctx context.Context, q revert.Query) iter.Seq2[revert.Entry, error] {
	return func(yield func(revert.Entry, error) bool) {
		for e, err := range b.Journal.Entries(ctx, q) {
			if err == nil && e.Erased == "" && b.gone(e) {
				e.Erased, e.Salt, e.Body = e.BodyDigest(), nil, nil
				e, err = e.Checked() // an entry without a body fits its leaf
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func ofKind(k revert.Kind) func(revert.Entry) bool {
	return func(e revert.Entry) bool { return e.Header.Kind == k }
}

// TestRecordsOutOfOrder: a stream that no run can write is never taken for the
// story of a transaction. Nothing is taken back by it, and a check tells why.
func TestRecordsOutOfOrder(t *testing.T) {
	const call = "c_1"
	started := func() *revert.Started {
		s := handled()
		s.Key, s.Input, s.Decision = "k", json.RawMessage(`{}`), json.RawMessage(`{}`)
		return s
	}
	change := func(n int) *revert.Changed {
		return &revert.Changed{Change: revert.Change{N: n, Scheme: "kv", Resource: "a", Kind: "write", Pre: "v:1", Post: "v:7"}}
	}
	held := func(n int, key string) *revert.Held {
		h := &revert.Held{Started: *started()}
		h.Sequence, h.Key = n, key
		return h
	}
	posts := []revert.Post{{N: 1, Post: "v:8"}}
	of := revert.CallRef{Txn: "self", Call: call}
	for _, tt := range []struct {
		name   string
		call   string
		bodies []revert.Body
		gone   func(revert.Entry) bool
		words  string
	}{
		{"begun twice", "", []revert.Body{&revert.Begun{Owner: "o"}}, nil, "began twice"},
		{"more after the end", "", []revert.Body{&revert.Committed{}, &revert.Savepoint{Name: "s"}}, nil, "savepoint after transaction"},
		{"a call after the end", call, []revert.Body{&revert.Committed{}, started()}, nil, "started after transaction"},
		{"no id", "", []revert.Body{started()}, nil, "started without a call id"},
		{"no start", call, []revert.Body{done()}, nil, "done of call c_1 before it started"},
		{"two ends", call, []revert.Body{started(), done(), done()}, nil, "done of call c_1, which ended as done"},
		{"started twice", call, []revert.Body{started(), started()}, nil, "started cannot follow in call c_1"},
		{"asked twice before it ran", call, []revert.Body{waits(""), waits("")}, nil, "asked of call c_1, which waits for an answer"},
		{"asked twice of its program", call, []revert.Body{waits("apply"), waits("apply")}, nil, "asked of call c_1, which waits for an answer"},
		{"an end while it waits", call, []revert.Body{&revert.Asked{Input: json.RawMessage(`{}`), Decision: json.RawMessage(`{}`)}, done()}, nil, "done of call c_1, which waits for an answer"},
		{"a change too many", call, []revert.Body{started(), change(2)}, nil, "change 2 of call c_1, want 1"},
		{"a version of no change", call, []revert.Body{started(), &revert.Landed{Posts: posts}}, nil, "version of change 1, but call c_1 has 0"},
		{"a version of no change in the end", call, []revert.Body{started(), &revert.Done{Output: json.RawMessage("null"), Posts: posts}}, nil, "version of change 1, but call c_1 has 0"},
		{"a version of change 0", call, []revert.Body{started(), change(1), &revert.Landed{Posts: []revert.Post{{}}}}, nil, "version of change 0, but call c_1 has 1"},
		{"a decision where there is no doubt", call, []revert.Body{started(), done(), &revert.Decided{By: "kim", Why: "x"}}, nil, "decided what became of call c_1, which is done"},
		{"an undo of nothing", "c_2", []revert.Body{&revert.Reverting{Of: of}}, nil, "reverting call c_1, which the journal does not have"},
		{"an undo that ends and did not begin", call, []revert.Body{started(), done(), &revert.Reverted{Of: of}}, nil, "call c_1 reverted without reverting"},
		{"nested twice", "", []revert.Body{&revert.Nested{ID: "n"}, &revert.Nested{ID: "n"}}, nil, `nested transaction "n" began twice`},
		{"nested without an id", "", []revert.Body{&revert.Nested{}}, nil, `nested transaction "" began twice`},
		{"nested in nothing", "", []revert.Body{&revert.Nested{ID: "n", In: "m"}}, nil, "nested transaction n began in m, which is not open"},
		{"nested in what has ended", "", []revert.Body{&revert.Nested{ID: "m"}, &revert.NestEnded{ID: "m"}, &revert.Nested{ID: "n", In: "m"}}, nil, "nested transaction n began in m, which is not open"},
		{"an end of no nested one", "", []revert.Body{&revert.NestEnded{ID: "n"}}, nil, "nested transaction n ended, and was not open"},
		{"two ends of a nested one", "", []revert.Body{&revert.Nested{ID: "n"}, &revert.NestEnded{ID: "n"}, &revert.NestEnded{ID: "n"}}, nil, "nested transaction n ended, and was not open"},
		{"said to be erased", call, []revert.Body{started(), done(), &revert.Erased{Cause: "asked"}}, nil, "call c_1 is said to be erased, and its records are there"},
		{"held twice", call, []revert.Body{held(1, "k"), held(1, "k")}, nil, "held of call c_1, which waits for the commit"},
		{"an end while it is held", call, []revert.Body{held(1, "k"), done()}, nil, "done of call c_1, which waits for the commit"},
		{"a failure of what was not released", call, []revert.Body{held(1, "k"), &revert.Failed{Proof: "no_effect"}}, nil, "failed by no_effect of call c_1, which was not released"},
		{"a failure before the commit", call, []revert.Body{held(1, "k"), &revert.Failed{Proof: "not_started"}}, nil, "call c_1 was released, and transaction"},
		{"a release before the commit", call, []revert.Body{held(1, "k"), started()}, nil, "call c_1 was released, and transaction"},
		{"a release while it is taken back", call, []revert.Body{held(1, "k"), &revert.Aborting{}, started()}, nil, "call c_1 was released, and transaction"},
		{"a release of what was dropped", call, []revert.Body{held(1, "k"), &revert.Dropped{Cause: "undo"}, &revert.Committing{}, started()}, nil, "started of call c_1, which was held and ended as dropped"},
		{"a second release", call, []revert.Body{held(1, "k"), &revert.Committing{}, started(), done(), started()}, nil, "started of call c_1, which was held and ended as done"},
		{"a release under another key", call, []revert.Body{held(1, "l"), &revert.Committing{}, started()}, nil, "call c_1 was released under another operation key"},
		{"a release out of turn", call, []revert.Body{held(2, "k"), held(1, "earlier"), &revert.Committing{}, started()}, nil, "call c_1 was released before call c_0, which was held earlier"},
		{"two commits", "", []revert.Body{&revert.Committing{}, &revert.Committing{}}, nil, "began to commit a second time"},
		{"a commit while it is taken back", "", []revert.Body{&revert.Aborting{}, &revert.Committing{}}, nil, "began to commit a second time, or while it was taken back"},
		{"a savepoint while it commits", "", []revert.Body{&revert.Committing{}, &revert.Savepoint{Name: "s"}}, nil, "savepoint after transaction"},
		{"nested while it commits", "", []revert.Body{&revert.Committing{}, &revert.Nested{ID: "n"}}, nil, "nested after transaction"},
		{"another call while it commits", call, []revert.Body{&revert.Committing{}, started()}, nil, "started after transaction"},
		{"an end that forgets a held call", call, []revert.Body{held(1, "k"), &revert.Committed{}}, nil, "call c_1 was neither released nor dropped"},
		{"an abort that forgets a held call", call, []revert.Body{held(1, "k"), &revert.Aborted{}}, nil, "call c_1 was neither released nor dropped"},
		{"a beginning that is gone", "", nil, ofKind(revert.KindBegun), "the body of begun is gone, which is never erased"},
		{"an end that is gone", "", []revert.Body{&revert.Committed{}}, ofKind(revert.KindCommitted), "the body of committed is gone, which is never erased"},
		{"one record of a call that is gone", call, []revert.Body{started(), done()}, ofKind(revert.KindDone), "only some records of call c_1 are erased"},
		{"records of a call that are gone", call, []revert.Body{started(), done()}, func(e revert.Entry) bool { return e.Header.Call == call }, "no record says who erased it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			rec := l.txn()
			for _, b := range tt.bodies {
				id := tt.call
				switch b := b.(type) {
				case *revert.Reverting:
					b.Of.Txn = rec.Txn()
				case *revert.Reverted:
					b.Of.Txn, id = rec.Txn(), "c_2"
				case *revert.Held:
					if b.Key == "earlier" {
						id = "c_0"
					}
				case *revert.Committing, *revert.Aborting, *revert.Committed, *revert.Aborted:
					id = ""
				}
				l.line(rec, id, b)
			}
			l.next()
			if tt.gone != nil {
				l.reverter.Journal = bodyless{l.journal, tt.gone}
			}
			l.refuse(rec.Txn(), tt.words)
		})
	}
}

// refuse requires that a transaction whose records make no sense is left alone.
func (l *lab) refuse(txn, words string) {
	l.t.Helper()
	ctx, j := l.t.Context(), l.reverter.Journal
	before := maps.Clone(l.shelf.values)
	var problems []string
	_, err := revert.Fsck(ctx, j, revert.FsckOptions{Found: func(p revert.Problem) { problems = append(problems, p.What) }})
	require.ErrorIs(l.t, err, revert.ErrDamaged)
	require.Contains(l.t, problems[0], words)
	found, err := l.reverter.Recover(ctx)
	require.ErrorIs(l.t, err, revert.ErrDamaged)
	require.Len(l.t, found.Failed, 1)
	_, load := revert.Load(ctx, j, txn)
	_, adopt := l.reverter.Adopt(ctx, txn)
	_, redo := l.reverter.Redo(ctx, txn, "kim")
	_, preview := l.reverter.Preview(ctx, txn, revert.Undoing{})
	rep, undo := l.reverter.Undo(ctx, txn, revert.Undoing{Force: "kim"})
	require.False(l.t, rep.Complete())
	for _, err := range []error{err, load, adopt, redo, preview, undo} {
		require.ErrorIs(l.t, err, revert.ErrDamaged)
		require.ErrorContains(l.t, err, words)
		require.ErrorContains(l.t, err, "entry ")
	}
	require.Equal(l.t, before, l.shelf.values)
}

func waits(purpose string) *revert.Asked {
	return &revert.Asked{Input: json.RawMessage(`{}`), Decision: json.RawMessage(`{}`), Purpose: purpose}
}

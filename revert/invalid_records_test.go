package revert_test

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// missingBodies is a journal in which the bodies of some entries are missing without
// an erased record.
type missingBodies struct {
	journal.Journal
	gone func(e record.Entry) bool
}

func (b missingBodies) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
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

func ofKind(k record.Kind) func(record.Entry) bool {
	return func(e record.Entry) bool { return e.Header.Kind == k }
}

// TestRecordsOutOfOrder checks that a stream that no run can write is rejected.
// No revert uses it, and fsck reports the reason.
func TestRecordsOutOfOrder(t *testing.T) {
	const call = "c_1"
	started := func() *record.Started {
		s := handled()
		s.Key, s.Input, s.Decision = "k", json.RawMessage(`{}`), json.RawMessage(`{}`)
		return s
	}
	change := func(n int) *record.Changed {
		return &record.Changed{Change: effect.Change{N: n, Scheme: "kv", Resource: "a", Kind: "write", Pre: "v:1", Post: "v:7"}}
	}
	held := func(n int, key string) *record.Held {
		h := &record.Held{Started: *started()}
		h.Sequence, h.Key = n, key
		return h
	}
	posts := []record.Post{{N: 1, Post: "v:8"}}
	of := record.CallRef{Txn: "self", Call: call}
	for _, tt := range []struct {
		name   string
		call   string
		bodies []record.Body
		gone   func(record.Entry) bool
		words  string
	}{
		{"begun twice", "", []record.Body{&record.Begun{Owner: "o"}}, nil, "began twice"},
		{"more after the end", "", []record.Body{&record.Committed{}, &record.Savepoint{Name: "s"}}, nil, "savepoint after transaction"},
		{"a call after the end", call, []record.Body{&record.Committed{}, started()}, nil, "started after transaction"},
		{"no id", "", []record.Body{started()}, nil, "started without a call id"},
		{"no start", call, []record.Body{done()}, nil, "done of call c_1 before it started"},
		{"two ends", call, []record.Body{started(), done(), done()}, nil, "done of call c_1, which ended as done"},
		{"started twice", call, []record.Body{started(), started()}, nil, "started cannot follow in call c_1"},
		{"asked twice before it ran", call, []record.Body{waits(""), waits("")}, nil, "asked of call c_1, which waits for an answer"},
		{"asked twice of its program", call, []record.Body{waits("apply"), waits("apply")}, nil, "asked of call c_1, which waits for an answer"},
		{"asked before it ran, when it runs", call, []record.Body{started(), waits("")}, nil, "asked of call c_1, which has started"},
		{"an end while it waits", call, []record.Body{&record.Asked{Input: json.RawMessage(`{}`), Decision: json.RawMessage(`{}`)}, done()}, nil, "done of call c_1, which waits for an answer"},
		{"a change too many", call, []record.Body{started(), change(2)}, nil, "change 2 of call c_1, want 1"},
		{"a version of no change", call, []record.Body{started(), &record.PostVersions{Posts: posts}}, nil, "version of change 1, but call c_1 has 0"},
		{"a version of no change in the end", call, []record.Body{started(), &record.Done{Output: json.RawMessage("null"), Posts: posts}}, nil, "version of change 1, but call c_1 has 0"},
		{"a version of change 0", call, []record.Body{started(), change(1), &record.PostVersions{Posts: []record.Post{{}}}}, nil, "version of change 0, but call c_1 has 1"},
		{"a decision where there is no doubt", call, []record.Body{started(), done(), &record.Decided{By: "kim", Why: "x"}}, nil, "decided on call c_1, which is done"},
		{"an undo of nothing", "c_2", []record.Body{&record.Reverting{Of: of}}, nil, "reverting call c_1, which the journal does not have"},
		{"an undo that ends and did not begin", call, []record.Body{started(), done(), &record.Reverted{Of: of}}, nil, "call c_1 reverted without reverting"},
		{"nested twice", "", []record.Body{&record.Nested{ID: "n"}, &record.Nested{ID: "n"}}, nil, `nested transaction "n" began twice`},
		{"nested without an id", "", []record.Body{&record.Nested{}}, nil, `nested transaction "" began twice`},
		{"nested in nothing", "", []record.Body{&record.Nested{ID: "n", In: "m"}}, nil, "nested transaction n began in m, which is not open"},
		{"nested in what has ended", "", []record.Body{&record.Nested{ID: "m"}, &record.NestEnded{ID: "m"}, &record.Nested{ID: "n", In: "m"}}, nil, "nested transaction n began in m, which is not open"},
		{"an end of no nested one", "", []record.Body{&record.NestEnded{ID: "n"}}, nil, "nested transaction n ended, and was not open"},
		{"two ends of a nested one", "", []record.Body{&record.Nested{ID: "n"}, &record.NestEnded{ID: "n"}, &record.NestEnded{ID: "n"}}, nil, "nested transaction n ended, and was not open"},
		{"said to be erased", call, []record.Body{started(), done(), &record.Erased{Cause: "asked"}}, nil, "call c_1 is said to be erased, and its records are there"},
		{"held twice", call, []record.Body{held(1, "k"), held(1, "k")}, nil, "held of call c_1, which waits for the commit"},
		{"an end while it is held", call, []record.Body{held(1, "k"), done()}, nil, "done of call c_1, which waits for the commit"},
		{"a failure of what was not released", call, []record.Body{held(1, "k"), &record.Failed{Proof: "no_effect"}}, nil, "failed by no_effect of call c_1, which was not released"},
		{"a failure before the commit", call, []record.Body{held(1, "k"), &record.Failed{Proof: "not_started"}}, nil, "call c_1 was released, and transaction"},
		{"a release before the commit", call, []record.Body{held(1, "k"), started()}, nil, "call c_1 was released, and transaction"},
		{"a release while it is reverted", call, []record.Body{held(1, "k"), &record.Aborting{}, started()}, nil, "call c_1 was released, and transaction"},
		{"a release of what was dropped", call, []record.Body{held(1, "k"), &record.Dropped{Cause: "revert"}, &record.Committing{}, started()}, nil, "started of call c_1, which was held and ended as dropped"},
		{"a second release", call, []record.Body{held(1, "k"), &record.Committing{}, started(), done(), started()}, nil, "started of call c_1, which was held and ended as done"},
		{"a release under another key", call, []record.Body{held(1, "l"), &record.Committing{}, started()}, nil, "call c_1 was released under another operation key"},
		{"a release out of turn", call, []record.Body{held(2, "k"), held(1, "earlier"), &record.Committing{}, started()}, nil, "call c_1 was released before call c_0, which was held earlier"},
		{"two commits", "", []record.Body{&record.Committing{}, &record.Committing{}}, nil, "began to commit a second time"},
		{"a commit while it is reverted", "", []record.Body{&record.Aborting{}, &record.Committing{}}, nil, "began to commit a second time, or during its revert"},
		{"a savepoint while it commits", "", []record.Body{&record.Committing{}, &record.Savepoint{Name: "s"}}, nil, "savepoint after transaction"},
		{"nested while it commits", "", []record.Body{&record.Committing{}, &record.Nested{ID: "n"}}, nil, "nested after transaction"},
		{"another call while it commits", call, []record.Body{&record.Committing{}, started()}, nil, "started after transaction"},
		{"an end that forgets a held call", call, []record.Body{held(1, "k"), &record.Committed{}}, nil, "call c_1 was neither released nor dropped"},
		{"an abort that forgets a held call", call, []record.Body{held(1, "k"), &record.Aborted{}}, nil, "call c_1 was neither released nor dropped"},
		{"a beginning that is gone", "", nil, ofKind(record.KindBegun), "the body of begun is gone, which is never erased"},
		{"an end that is gone", "", []record.Body{&record.Committed{}}, ofKind(record.KindCommitted), "the body of committed is gone, which is never erased"},
		{"one record of a call that is gone", call, []record.Body{started(), done()}, ofKind(record.KindDone), "only some records of call c_1 are erased"},
		{"records of a call that are gone", call, []record.Body{started(), done()}, func(e record.Entry) bool { return e.Header.Call == call }, "no record says who erased it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newTestEnv(t)
			rec := l.txn()
			for _, b := range tt.bodies {
				id := tt.call
				switch b := b.(type) {
				case *record.Reverting:
					b.Of.Txn = rec.Txn()
				case *record.Reverted:
					b.Of.Txn, id = rec.Txn(), "c_2"
				case *record.Held:
					if b.Key == "earlier" {
						id = "c_0"
					}
				case *record.Committing, *record.Aborting, *record.Committed, *record.Aborted:
					id = ""
				}
				l.line(rec, id, b)
			}
			l.next()
			if tt.gone != nil {
				l.reverter.Journal = missingBodies{l.journal, tt.gone}
			}
			l.refuse(rec.Txn(), tt.words)
		})
	}
}

// refuse requires that a transaction with invalid records is left unchanged.
func (l *testEnv) refuse(txn, words string) {
	l.t.Helper()
	ctx, j := l.t.Context(), l.reverter.Journal
	before := maps.Clone(l.values.values)
	var problems []string
	_, err := revert.Fsck(ctx, j, revert.FsckOptions{Found: func(p revert.Problem) { problems = append(problems, p.What) }})
	require.ErrorIs(l.t, err, record.ErrDamaged)
	require.Contains(l.t, problems[0], words)
	found, err := l.reverter.Recover(ctx)
	require.ErrorIs(l.t, err, record.ErrDamaged)
	require.Len(l.t, found.Failed, 1)
	_, load := revert.Load(ctx, j, txn)
	_, adopt := l.reverter.TakeOwnership(ctx, txn)
	_, redo := l.reverter.Redo(ctx, txn, "kim")
	_, preview := l.reverter.Preview(ctx, txn, revert.Options{})
	rep, undo := l.reverter.Revert(ctx, txn, revert.Options{Force: true, By: "kim"})
	require.False(l.t, rep.Complete())
	for _, err := range []error{err, load, adopt, redo, preview, undo} {
		require.ErrorIs(l.t, err, record.ErrDamaged)
		require.ErrorContains(l.t, err, words)
		require.ErrorContains(l.t, err, "entry ")
	}
	require.Equal(l.t, before, l.values.values)
}

func waits(purpose string) *record.Asked {
	return &record.Asked{Input: json.RawMessage(`{}`), Decision: json.RawMessage(`{}`), Purpose: purpose}
}

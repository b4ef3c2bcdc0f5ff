package journaltest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
)

func testFsck(t *testing.T, s store) {
	t.Run("a sound journal has no problems", func(t *testing.T) {
		open := s(t)
		j, other := open.until(t), open.until(t)
		empty := head(t, j)
		run(t, j, "t1", true)
		middle := head(t, j)
		run(t, other, "t2", false)
		for _, kept := range []revert.Head{{}, empty, middle, head(t, j)} {
			report, problems, err := fsck(t, open.until(t), kept)
			require.NoError(t, err)
			require.Empty(t, problems)
			require.Equal(t, revert.FsckReport{Entries: 9, Txns: 2, Blobs: 4, Head: head(t, j)}, report)
		}
	})

	t.Run("a head of another journal", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t", true)
		for _, kept := range []revert.Head{{Size: 3, Root: digest(nil)}, {Size: 6, Root: digest(nil)}, {Size: 0, Root: digest([]byte("x"))}} {
			requireProblems(t, j, kept, revert.Problem{}, "the head kept elsewhere")
		}
	})

	t.Run("content that is gone", func(t *testing.T) {
		j := s.fresh(t)
		own := begun(t, j, "t", &revert.Begun{Owner: j.Owner()})
		missing := inline(content(10, 1)).Ref()
		require.NoError(t, j.Append(t.Context(), revert.Batch{Fence: own, Entries: []revert.Entry{
			seal(revert.Header{Kind: revert.KindStarted, Txn: "t", Call: "c"}, started()),
			seal(revert.Header{Kind: revert.KindChanged, Txn: "t", Call: "c"}, changed(missing)),
		}}))
		requireProblems(t, j, revert.Head{}, revert.Problem{Pos: 3}, missing.Digest)
	})

	t.Run("a record that cannot follow", func(t *testing.T) {
		j := s.fresh(t)
		own := begun(t, j, "t", &revert.Begun{Owner: j.Owner()})
		require.NoError(t, j.Append(t.Context(), revert.Batch{Fence: own, Entries: []revert.Entry{
			seal(revert.Header{Kind: revert.KindDone, Txn: "t", Call: "c"}, &revert.Done{Output: json.RawMessage("null")}),
		}, End: true}))
		requireProblems(t, j, revert.Head{}, revert.Problem{Pos: 1}, "done of call c before it started")
	})

	t.Run("a stream without a beginning", func(t *testing.T) {
		j := s.fresh(t)
		require.NoError(t, j.Append(t.Context(), revert.Batch{Entries: numbered("t", 3)}))
		requireProblems(t, j, revert.Head{}, revert.Problem{Pos: 1}, "transaction t begins with invalid")
	})

	t.Run("an end that only one side knows of", func(t *testing.T) {
		j := s.fresh(t)
		own := begun(t, j, "t", &revert.Begun{Owner: j.Owner()})
		end(t, j, own)
		requireProblems(t, j, revert.Head{}, revert.Problem{Pos: 1}, "held for ended")

		j = s.fresh(t)
		begun(t, j, "t", &revert.Begun{Owner: j.Owner()})
		require.NoError(t, j.Append(t.Context(), revert.Batch{Entries: []revert.Entry{seal(revert.Header{Kind: revert.KindCommitted, Txn: "t"}, &revert.Committed{})}}))
		requireProblems(t, j, revert.Head{}, revert.Problem{}, "its records say committed")
	})

	t.Run("an owner that only one side knows of", func(t *testing.T) {
		j := s.fresh(t)
		begun(t, j, "t", &revert.Begun{Owner: "somebody"})
		requireProblems(t, j, revert.Head{}, revert.Problem{Pos: 1}, "its records name the owner somebody")
	})

	t.Run("an undo that its subject does not know of", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t", true)
		begun(t, j, "u", &revert.Begun{Owner: j.Owner(), Undoes: "t"})
		requireProblems(t, j, revert.Head{}, revert.Problem{Pos: 6}, "works on t, which does not say so")
	})
}

// begun begins a transaction with the record that says so.
func begun(t *testing.T, j revert.Journal, txn string, b *revert.Begun) revert.Ownership {
	t.Helper()
	own := revert.Ownership{Txn: txn, Owner: j.Owner()}
	require.NoError(t, j.Append(t.Context(), revert.Batch{
		Entries: []revert.Entry{seal(revert.Header{Kind: revert.KindBegun, Txn: txn}, b)},
		Take:    revert.Take{To: own}, Fence: own, Durable: true,
	}))
	return own
}

// run records a transaction with one call that changes something: four entries,
// or five when it is committed.
func run(t *testing.T, j revert.Journal, txn string, commit bool) {
	t.Helper()
	own := begun(t, j, txn, &revert.Begun{Owner: j.Owner()})
	call := revert.Header{Session: "s", Txn: txn, Call: "c_" + txn}
	of := func(kind revert.Kind) revert.Header {
		h := call
		h.Kind = kind
		return h
	}
	small, large := keep(t, j, content(100, 9)), keep(t, j, content(revert.InlineMax+1, 9))
	require.NoError(t, j.Append(t.Context(), revert.Batch{
		Fence: own, Claims: []string{"r_" + txn}, Blobs: []revert.Blob{small, large}, Durable: true,
		Entries: []revert.Entry{seal(of(revert.KindStarted), started()), seal(of(revert.KindChanged), changed(small.Ref(), large.Ref()))},
	}))
	require.NoError(t, j.Append(t.Context(), revert.Batch{Fence: own, Durable: true, Entries: []revert.Entry{
		seal(of(revert.KindDone), &revert.Done{Output: json.RawMessage(`"secret"`), OutputDigest: digest(nil)}),
	}}))
	if commit {
		require.NoError(t, j.Append(t.Context(), revert.Batch{Fence: own, Durable: true, End: true, Entries: []revert.Entry{
			seal(revert.Header{Kind: revert.KindCommitted, Session: "s", Txn: txn}, &revert.Committed{}),
		}}))
	}
}

func started() *revert.Started {
	return &revert.Started{
		Sequence: 1, Key: digest(nil), Tool: revert.ToolRef{Name: "tool"}, Input: json.RawMessage(`{"secret":1}`),
		InputDigest: digest(nil), Class: revert.Reversible, Confinement: "handles", Decision: json.RawMessage("{}"),
	}
}

func changed(refs ...revert.BlobRef) *revert.Changed {
	return &revert.Changed{Change: revert.Change{
		N: 1, Scheme: "test", Resource: "r", Kind: "write", Pre: "v1", Post: "v2", Inverse: json.RawMessage("{}"), Blobs: refs,
	}}
}

func fsck(t *testing.T, j revert.Journal, kept revert.Head) (revert.FsckReport, []revert.Problem, error) {
	t.Helper()
	var problems []revert.Problem
	report, err := revert.Fsck(t.Context(), j, revert.FsckOptions{Kept: kept, Found: func(p revert.Problem) { problems = append(problems, p) }})
	require.Len(t, problems, int(report.Problems))
	return report, problems, err
}

// requireProblems requires the position and the words of the first problem.
func requireProblems(t *testing.T, j revert.Journal, kept revert.Head, want revert.Problem, words string) {
	t.Helper()
	_, problems, err := fsck(t, j, kept)
	require.ErrorIs(t, err, revert.ErrDamaged)
	require.NotEmpty(t, problems)
	require.Contains(t, problems[0].What, words)
	want.What = problems[0].What
	require.Equal(t, want, problems[0])
}

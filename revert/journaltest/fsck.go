package journaltest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

func testFsck(t *testing.T, s store) {
	t.Run("a sound journal has no problems", func(t *testing.T) {
		open := s(t)
		j, other := open.until(t), open.until(t)
		empty := head(t, j)
		run(t, j, "t1", true)
		middle := head(t, j)
		run(t, other, "t2", false)
		for _, kept := range []journal.Head{{}, empty, middle, head(t, j)} {
			report, problems, err := fsck(t, open.until(t), kept)
			require.NoError(t, err)
			require.Empty(t, problems)
			require.Equal(t, revert.FsckReport{Entries: 9, Txns: 2, Blobs: 4, Head: head(t, j)}, report)
		}
	})

	t.Run("a head of another journal", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t", true)
		for _, kept := range []journal.Head{{Size: 3, Root: digest(nil)}, {Size: 6, Root: digest(nil)}, {Size: 0, Root: digest([]byte("x"))}} {
			requireProblems(t, j, kept, revert.Problem{}, "the head kept elsewhere")
		}
	})

	t.Run("content that is gone", func(t *testing.T) {
		j := s.fresh(t)
		own := begun(t, j, "t", &record.Begun{Owner: j.Owner()})
		missing := inline(content(10, 1)).Ref()
		require.NoError(t, j.Append(t.Context(), journal.Batch{Fence: own, Entries: []record.Entry{
			seal(record.Header{Kind: record.KindStarted, Txn: "t", Call: "c"}, started()),
			seal(record.Header{Kind: record.KindChanged, Txn: "t", Call: "c"}, changed(missing)),
		}}))
		requireProblems(t, j, journal.Head{}, revert.Problem{Pos: 3}, missing.Digest)
	})

	t.Run("a record that cannot follow", func(t *testing.T) {
		j := s.fresh(t)
		own := begun(t, j, "t", &record.Begun{Owner: j.Owner()})
		require.NoError(t, j.Append(t.Context(), journal.Batch{Fence: own, Entries: []record.Entry{
			seal(record.Header{Kind: record.KindDone, Txn: "t", Call: "c"}, &record.Done{Output: json.RawMessage("null")}),
		}, End: true}))
		requireProblems(t, j, journal.Head{}, revert.Problem{Pos: 1}, "done of call c before it started")
	})

	t.Run("a stream without a beginning", func(t *testing.T) {
		j := s.fresh(t)
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: numbered("t", 3)}))
		requireProblems(t, j, journal.Head{}, revert.Problem{Pos: 1}, "transaction t begins with invalid")
	})

	t.Run("an end that only one side knows of", func(t *testing.T) {
		j := s.fresh(t)
		own := begun(t, j, "t", &record.Begun{Owner: j.Owner()})
		end(t, j, own)
		requireProblems(t, j, journal.Head{}, revert.Problem{Pos: 1}, "held for ended")

		j = s.fresh(t)
		begun(t, j, "t", &record.Begun{Owner: j.Owner()})
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: []record.Entry{seal(record.Header{Kind: record.KindCommitted, Txn: "t"}, &record.Committed{})}}))
		requireProblems(t, j, journal.Head{}, revert.Problem{}, "its records say committed")
	})

	t.Run("an owner that only one side knows of", func(t *testing.T) {
		j := s.fresh(t)
		begun(t, j, "t", &record.Begun{Owner: "somebody"})
		requireProblems(t, j, journal.Head{}, revert.Problem{Pos: 1}, "its records name the owner somebody")
	})

	t.Run("an undo that its subject does not know of", func(t *testing.T) {
		j := s.fresh(t)
		run(t, j, "t", true)
		begun(t, j, "u", &record.Begun{Owner: j.Owner(), Reverts: "t"})
		requireProblems(t, j, journal.Head{}, revert.Problem{Pos: 6}, "works on t, which does not name it")
	})
}

// begun begins a transaction with its record.
func begun(t *testing.T, j journal.Journal, txn string, b *record.Begun) journal.Ownership {
	t.Helper()
	own := journal.Ownership{Txn: txn, Owner: j.Owner()}
	require.NoError(t, j.Append(t.Context(), journal.Batch{
		Entries: []record.Entry{seal(record.Header{Kind: record.KindBegun, Txn: txn}, b)},
		Take:    journal.OwnerChange{To: own}, Fence: own, Durable: true,
	}))
	return own
}

// run records a transaction with one call that changes something: four entries,
// or five if it is committed.
func run(t *testing.T, j journal.Journal, txn string, commit bool) {
	t.Helper()
	own := begun(t, j, txn, &record.Begun{Owner: j.Owner()})
	call := record.Header{Session: "s", Txn: txn, Call: "c_" + txn}
	of := func(kind record.Kind) record.Header {
		h := call
		h.Kind = kind
		return h
	}
	small, large := keep(t, j, content(100, 9)), keep(t, j, content(journal.InlineMax+1, 9))
	require.NoError(t, j.Append(t.Context(), journal.Batch{
		Fence: own, Claims: []string{"r_" + txn}, Blobs: []journal.Blob{small, large}, Durable: true,
		Entries: []record.Entry{seal(of(record.KindStarted), started()), seal(of(record.KindChanged), changed(small.Ref(), large.Ref()))},
	}))
	require.NoError(t, j.Append(t.Context(), journal.Batch{Fence: own, Durable: true, Entries: []record.Entry{
		seal(of(record.KindDone), &record.Done{Output: json.RawMessage(`"secret"`), OutputDigest: digest(nil)}),
	}}))
	if commit {
		require.NoError(t, j.Append(t.Context(), journal.Batch{Fence: own, Durable: true, End: true, Entries: []record.Entry{
			seal(record.Header{Kind: record.KindCommitted, Session: "s", Txn: txn}, &record.Committed{}),
		}}))
	}
}

func started() *record.Started {
	return &record.Started{
		Sequence: 1, Key: digest(nil), Tool: record.ToolRef{Name: "tool"}, Input: json.RawMessage(`{"secret":1}`),
		InputDigest: digest(nil), Class: effect.Reversible, Confinement: "handles", Decision: json.RawMessage("{}"),
	}
}

func changed(refs ...effect.BlobRef) *record.Changed {
	return &record.Changed{Change: effect.Change{
		N: 1, Scheme: "test", Resource: "r", Kind: "write", Pre: "v1", Post: "v2", Inverse: json.RawMessage("{}"), Blobs: refs,
	}}
}

func fsck(t *testing.T, j journal.Journal, kept journal.Head) (revert.FsckReport, []revert.Problem, error) {
	t.Helper()
	var problems []revert.Problem
	report, err := revert.Fsck(t.Context(), j, revert.FsckOptions{Kept: kept, Found: func(p revert.Problem) { problems = append(problems, p) }})
	require.Len(t, problems, int(report.Problems))
	return report, problems, err
}

// requireProblems checks the position and the text of the first problem.
func requireProblems(t *testing.T, j journal.Journal, kept journal.Head, want revert.Problem, words string) {
	t.Helper()
	_, problems, err := fsck(t, j, kept)
	require.ErrorIs(t, err, record.ErrDamaged)
	require.NotEmpty(t, problems)
	require.Contains(t, problems[0].What, words)
	want.What = problems[0].What
	require.Equal(t, want, problems[0])
}

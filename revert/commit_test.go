package revert_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

func commitRuling(effect string, answer *record.Answered) *record.CommitDecided {
	return &record.CommitDecided{Effect: effect, Digest: "sha256:00", Decision: json.RawMessage(`{}`), Txn: json.RawMessage(`{}`), Facts: &record.Facts{}, Answer: answer}
}

// TestCommitRecordsOutOfOrder checks that a commit that was not permitted is
// damage.
func TestCommitRecordsOutOfOrder(t *testing.T) {
	yes, no := &record.Answered{Approved: true, By: "ann"}, &record.Answered{By: "ann"}
	ask, allow := commitRuling("ask", nil), commitRuling("allow", nil)
	commit, committing, aborting := &record.Committed{}, &record.Committing{}, &record.Aborting{Why: "revert", Denied: true}
	for name, tt := range map[string]struct {
		bodies []record.Body
		words  string
	}{
		"allowed":                   {[]record.Body{allow, commit}, ""},
		"asked, then allowed":       {[]record.Body{ask, allow, commit}, ""},
		"approved":                  {[]record.Body{ask, commitRuling("ask", yes), committing, commit}, ""},
		"denied":                    {[]record.Body{commitRuling("deny", nil), aborting, &record.Aborted{Complete: true}}, ""},
		"committed while it waits":  {[]record.Body{ask, commit}, "whose commit was not permitted"},
		"released while it waits":   {[]record.Body{ask, committing}, "whose commit was not permitted"},
		"committed though denied":   {[]record.Body{commitRuling("deny", nil), commit}, "whose commit was not permitted"},
		"committed though rejected": {[]record.Body{commitRuling("ask", no), commit}, "whose commit was not permitted"},
		"denied by an answer":       {[]record.Body{commitRuling("deny", yes), commit}, "whose commit was not permitted"},
		"decided while it releases": {[]record.Body{committing, allow}, "whose end has begun"},
		"decided in its revert":     {[]record.Body{aborting, allow}, "whose end has begun"},
		"decided after the end":     {[]record.Body{commit, allow}, "commit_decided after transaction"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTestEnv(t)
			rec := l.txn()
			for i, b := range tt.bodies {
				id := ""
				if record.KindOf(b) == record.KindCommitDecided {
					id = fmt.Sprint("d_", i)
				}
				l.line(rec, id, b)
			}
			l.next()
			if tt.words != "" {
				l.refuse(rec.Txn(), tt.words)
				return
			}
			l.load(rec.Txn())
		})
	}
}

// TestWaitingCommit finds the answer that counts.
func TestWaitingCommit(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	_, waits := l.load(rec.Txn()).WaitingCommit().Get()
	require.False(t, waits)
	require.False(t, l.load(rec.Txn()).Waits())
	l.line(rec, "d_1", commitRuling("ask", nil))
	l.line(rec, "d_1", &record.Answered{Approved: true, By: "ann"})
	d, waits := l.load(rec.Txn()).WaitingCommit().Get()
	require.True(t, waits)
	require.Equal(t, "ann", d.Answered.By)
	require.True(t, l.load(rec.Txn()).Waits())
	l.line(rec, "d_1", &record.Answered{By: "bob"})
	l.line(rec, "d_1", &record.Answered{Approved: true, By: "ann"})
	d, _ = l.load(rec.Txn()).WaitingCommit().Get()
	require.Equal(t, "bob", d.Answered.By, "a rejection stays")
	l.line(rec, "d_2", commitRuling("ask", nil))
	d, waits = l.load(rec.Txn()).WaitingCommit().Get()
	require.True(t, waits)
	require.Nil(t, d.Answered)
	l.line(rec, "d_3", commitRuling("allow", nil), &record.Committed{})
	_, waits = l.load(rec.Txn()).WaitingCommit().Get()
	require.False(t, waits)
}

// changing returns a call that changes resources.
func changing(class effect.Class, changes ...effect.Change) []record.Body {
	bodies := []record.Body{&record.Started{
		Class: class, Confinement: "handles", Declared: true, Tool: record.ToolRef{Name: "put"}, Input: json.RawMessage(`{}`), Decision: json.RawMessage(`{}`),
	}}
	for i, ch := range changes {
		ch.N, ch.Scheme, ch.Kind = i+1, "values", "write"
		bodies = append(bodies, &record.Changed{Change: ch})
	}
	return append(bodies, done())
}

func change(resource string, pre, post effect.Token) effect.Change {
	return effect.Change{Resource: resource, Pre: pre, Post: post}
}

// TestNetEffects computes what is left of the changes of a transaction.
func TestNetEffects(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	l.line(rec, "c_1", changing(effect.Reversible,
		change("x:made", effect.Absent, "1"), change("x:gone", "1", effect.Absent), change("x:written", "1", "2"),
		change("x:back", "1", "2"), change("x:raced", "1", "2"), change("x:made and gone", effect.Absent, "1"))...)
	digest := l.load(rec.Txn()).CommitDigest()
	l.line(rec, "c_2", changing(effect.Compensable,
		change("x:back", "2", "1"), change("x:raced", "3", "1"), change("x:made and gone", "1", effect.Absent), change("x:written", "2", "3"))...)
	l.line(rec, "c_3", append(changing(effect.Pure)[:1], &record.RevertNote{Key: effect.HostsNote, Value: json.RawMessage(`[{"origin":"https://h.example"}]`)}, done())...)
	s := sends()
	s.Class, s.Access = effect.Pivot, []record.Access{{Action: "connect", Resource: "https://mail.example/"}, {Action: "read", Resource: "file://w/a"}}
	l.line(rec, "c_4", s, &record.Unknown{Status: "unknown", Why: "lost"})
	h := &record.Held{Started: *sends()}
	h.Sequence, h.Key = 5, "k"
	l.line(rec, "c_5", h)
	txn := l.load(rec.Txn())
	require.NotEqual(t, digest, txn.CommitDigest())
	require.Equal(t, txn.CommitDigest(), l.load(rec.Txn()).CommitDigest())
	var got []string
	for _, e := range txn.NetEffects() {
		got = append(got, fmt.Sprint(e.Kind, " ", e.Resource, " ", e.Class, " ", e.Coverage, " ", e.Call, " ", e.Unknown))
	}
	require.Equal(t, []string{
		"call https://mail.example/ pivot declared c_4 true",
		"release tool://send deferrable declared c_5 false",
		"write x:raced compensable confined c_2 false",
		"write x:written compensable confined c_2 false",
		"create x:made reversible confined c_1 false",
		"delete x:gone reversible confined c_1 false",
		"connect https://h.example/ pure confined c_3 false",
	}, got)
	for i, id := range []string{"c_5", "c_4"} { // each thing that goes changes the digest
		was := l.load(rec.Txn()).CommitDigest()
		if i == 0 {
			l.line(rec, id, &record.Dropped{Cause: "revert"})
		} else {
			l.line(rec, id, &record.Decided{By: "ann", Why: "looked"})
		}
		require.NotEqual(t, was, l.load(rec.Txn()).CommitDigest(), id)
	}
}

// TestNetEffectsOfManyChanges stays proportional to the changes.
func TestNetEffectsOfManyChanges(t *testing.T) {
	const n = 10_000
	l := newTestEnv(t)
	rec := l.txn()
	var all []effect.Change
	for i := range n {
		all = append(all, change(fmt.Sprintf("x:%05d", i), effect.Absent, "1"))
	}
	l.line(rec, "c_1", changing(effect.Reversible, all...)...)
	txn := l.load(rec.Txn())
	require.Len(t, txn.NetEffects(), n)
	few := testing.AllocsPerRun(1, func() { txn.NetEffects() })
	require.Less(t, few, float64(10*n))
}

// TestErasedCommitDecision goes with the first erased call of its transaction.
func TestErasedCommitDecision(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	_, err := l.process.call(t.Context(), rec, put(write{"a", 7}))
	require.NoError(t, err)
	ask := commitRuling("ask", nil)
	ask.Txn, ask.Expires = json.RawMessage(`{"effects":"of a"}`), time.Now()
	l.line(rec, "d_1", ask)
	l.line(rec, "d_1", &record.Answered{Approved: true, By: "ann"})
	yes := commitRuling("ask", &record.Answered{Approved: true, By: "ann"})
	l.must(rec, revert.Write{Records: []revert.CallRecord{{Call: "d_2", Body: yes}, {Body: &record.Committed{}}}, End: true})
	call := l.load(rec.Txn()).Calls[0].Ref.Call
	out, err := l.reverter.Erase(t.Context(), call, record.Erased{By: "ann", Why: "private"})
	require.NoError(t, err)
	require.Equal(t, 1, out.Records)
	txn := l.load(rec.Txn())
	require.Len(t, txn.Commits, 2)
	for _, d := range txn.Commits {
		require.Nil(t, d.Decided)
	}
	for e, err := range l.journal.Entries(t.Context(), journal.Query{Txn: rec.Txn(), Kinds: []record.Kind{record.KindCommitDecided, record.KindAnswered}}) {
		require.NoError(t, err)
		require.Nil(t, e.Body)
	}
	found, err := revert.Fsck(t.Context(), l.journal, revert.FsckOptions{})
	require.NoError(t, err)
	require.Empty(t, found.Problems)
}

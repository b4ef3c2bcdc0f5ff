package revert_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// sends returns the start of a call that can be held.
func sends() *record.Started {
	return &record.Started{
		Class: effect.Deferrable, Confinement: "trusted", Declared: true, Tool: record.ToolRef{Name: "send"},
		Input: json.RawMessage(`{}`), Decision: json.RawMessage(`{}`),
	}
}

// queue holds a call.
func (l *testEnv) queue(rec revert.Recorder, change ...func(*record.Held)) string {
	l.calls++
	id := fmt.Sprintf("c_%d_%d", l.lives, l.calls)
	h := &record.Held{Started: *sends()}
	h.Sequence, h.Key = l.calls, "key-"+id
	for _, c := range change {
		c(h)
	}
	l.line(rec, id, h)
	return id
}

// TestHeldRecordsOutOfOrder checks that a held call that was released early,
// twice, out of order, under another key or not at all is damage.
func TestHeldRecordsOutOfOrder(t *testing.T) {
	held := func(n int, key string) *record.Held {
		h := &record.Held{Started: *sends()}
		h.Sequence, h.Key = n, key
		return h
	}
	started := func(n int, key string) *record.Started { s := held(n, key).Started; return &s }
	const one, two = "c_1", "c_2"
	type line struct {
		call string
		body record.Body
	}
	first, second := line{one, held(1, "k1")}, line{two, held(2, "k2")}
	commit := line{"", &record.Committing{}}
	release := line{one, started(1, "k1")}
	unknown := line{one, &record.Unknown{Status: "unknown", Why: "lost"}}
	failed := line{one, &record.Failed{Status: "failed", Why: "x", Proof: "no_effect"}}
	refused := line{one, &record.Failed{Status: "failed", Why: "x", Proof: "not_started"}}
	for _, tt := range []struct {
		name  string
		lines []line
		words string
	}{
		{"refused out of order", []line{first, second, commit, {two, refused.body}}, "call c_2 was released before call c_1"},
		{"again though unknown", []line{first, commit, release, unknown, release}, "started of call c_1, which was held and ended as unknown"},
		{"dropped though it is done", []line{first, commit, release, {one, done()}, {one, &record.Dropped{Cause: "revert"}}}, "dropped of call c_1, which was held and ended as done"},
		{"dropped after a failure, and released", []line{first, commit, release, failed, {one, &record.Dropped{Cause: "revert"}}, release}, "which was held and ended as failed"},
		{"left behind by a commit", []line{first, commit, {"", &record.Committed{}}}, "ended, and call c_1 was neither released nor dropped"},
		{"left behind after a failure", []line{first, commit, release, failed, {"", &record.Committed{}}}, "ended, and call c_1 was neither released nor dropped"},
		{"held after the commit began", []line{commit, first}, "held after transaction"},
		{"a way back after the commit began", []line{{"", &record.Savepoint{Name: "s"}}, commit, {"", &record.RevertedTo{Name: "s"}}}, "reverted_to after transaction"},
		{"one that waited, held after the commit began", []line{{one, &record.Asked{Input: json.RawMessage(`{}`), Decision: json.RawMessage(`{}`)}}, commit, first}, "held after transaction"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newTestEnv(t)
			rec := l.txn()
			for _, x := range tt.lines {
				l.line(rec, x.call, x.body)
			}
			l.next()
			l.refuse(rec.Txn(), tt.words)
		})
	}
}

// TestQueue checks that held calls keep the order in which they were held, also
// after an approval, and that the queue still has a call after an attempt
// without effect.
func TestQueue(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	l.line(rec, "c_asked", &record.Asked{Input: json.RawMessage(`{}`), Decision: json.RawMessage(`{}`)})
	first := l.queue(rec)
	l.calls++
	late := &record.Held{Started: *sends()}
	late.Sequence, late.Key = l.calls, "k"
	l.line(rec, "c_asked", late)
	last := l.queue(rec, func(h *record.Held) { h.Idempotent = true })
	ids := func() (ids []string) {
		for _, c := range l.load(rec.Txn()).HeldCalls() {
			ids = append(ids, c.Ref.Call)
		}
		return ids
	}
	require.Equal(t, []string{first, "c_asked", last}, ids())
	require.Equal(t, effect.Deferrable, l.call(first).Class())
	require.False(t, l.call(first).HasEffects())
	require.False(t, l.call(first).Confined())
	l.line(rec, "", &record.Committing{})
	l.release(rec, first)
	require.Equal(t, []string{"c_asked", last}, ids())
	l.line(rec, first, &record.Failed{Status: "failed", Why: "x", Proof: "no_effect"})
	require.Equal(t, []string{first, "c_asked", last}, ids())
	l.line(rec, first, &record.Failed{Status: "denied", Stage: "grant", Why: "x", Proof: "not_started"})
	l.release(rec, first)
	l.line(rec, first, &record.Unknown{Status: "unknown", Why: "lost"})
	require.Equal(t, []string{"c_asked", last}, ids())
	require.True(t, l.call(first).HasEffects())
	l.line(rec, first, &record.Decided{By: "kim", Why: "not there"})
	require.Equal(t, []string{first, "c_asked", last}, ids(), "somebody says that it had no effect")
	l.release(rec, first)
	l.line(rec, first, done(), &record.Decided{Applied: true, By: "ada", Why: "late"})
	require.Nil(t, l.call(first).Decided, "it was released again")
	l.release(rec, "c_asked")
	l.line(rec, "c_asked", done())
	l.release(rec, last)
	l.line(rec, last, &record.Unknown{Status: "unknown", Why: "lost"})
	require.Equal(t, []string{last}, ids(), "the same key has one effect")
	l.release(rec, last)
	l.line(rec, last, done())
	l.end(rec)
	require.Empty(t, ids())
	require.Equal(t, revert.TxnCommitted, l.load(rec.Txn()).State())
}

// TestRepeatedRelease checks that a commit repeats a release of unknown outcome
// if the tool is idempotent. It does not if the journal knows a version that
// the release left, because the inverse belongs to that attempt.
func TestRepeatedRelease(t *testing.T) {
	for _, tt := range []struct {
		pre, post effect.Token
		again     bool
	}{{"v:1", "", true}, {"v:1", "v:1", true}, {"v:1", "v:2", false}, {"", "v:2", false}} {
		l := newTestEnv(t)
		rec := l.txn()
		id := l.queue(rec, func(h *record.Held) { h.Idempotent = true })
		l.line(rec, "", &record.Committing{})
		l.release(rec, id)
		l.line(rec, id, &record.Changed{Change: effect.Change{N: 1, Scheme: "kv", Resource: "a", Kind: "post", Pre: tt.pre, Post: tt.post}})
		l.line(rec, id, &record.Unknown{Status: "unknown", Why: "lost"})
		require.Equal(t, tt.again, l.call(id).IsHeld(), "%+v", tt)
	}
}

// TestConcurrentResolutionAndRelease checks that a person can resolve a call while
// a commit continues without having read that. The journal then holds both, in
// either order, and stays readable.
func TestConcurrentResolutionAndRelease(t *testing.T) {
	for _, idempotent := range []bool{false, true} {
		for _, applied := range []bool{false, true} {
			l := newTestEnv(t)
			rec := l.txn()
			id := l.queue(rec, func(h *record.Held) { h.Idempotent = idempotent })
			next := l.queue(rec)
			l.line(rec, "", &record.Committing{})
			l.release(rec, id)
			l.line(rec, id, &record.Unknown{Status: "unknown", Why: "lost"})
			l.line(rec, id, &record.Decided{Applied: applied, By: "kim", Why: "looked"})
			if idempotent {
				l.release(rec, id)
				l.line(rec, id, &record.Decided{Applied: applied, By: "ada", Why: "looked too"}, done())
			}
			l.release(rec, next) // the commit skips an in-doubt call
			l.line(rec, next, done())
			l.end(rec)
			txn := l.load(rec.Txn())
			require.Equal(t, revert.TxnCommitted, txn.State())
			require.Empty(t, txn.HeldCalls())
			l.situation()
		}
	}
}

// TestRecoveryOfARelease checks that a release is recovered like any call in
// flight, and is held again if it can be repeated.
func TestRecoveryOfARelease(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*record.Held)
		want   revert.Phase
		queued bool
	}{
		{"trusted", func(*record.Held) {}, revert.PhaseUnknown, false},
		{"with one effect for a key", func(h *record.Held) { h.Idempotent = true }, revert.PhaseUnknown, true},
		{"confined", func(h *record.Held) { h.Confinement = "handles" }, revert.PhaseFailed, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newTestEnv(t)
			rec := l.txn()
			id := l.queue(rec, tt.change)
			l.line(rec, "", &record.Committing{})
			l.release(rec, id)
			l.next()
			found, err := l.reverter.Recover(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{rec.Txn()}, found.Committing)
			require.Equal(t, found.Abandoned, found.Committing)
			require.Equal(t, tt.want, l.call(id).Phase)
			require.Equal(t, tt.queued, len(l.load(rec.Txn()).HeldCalls()) == 1)
			_, err = l.reverter.TakeOwnership(t.Context(), rec.Txn())
			require.NoError(t, err)
			rep, err := l.reverter.Abort(t.Context(), rec.Txn(), revert.Options{})
			require.NoError(t, err)
			require.Equal(t, tt.want == revert.PhaseFailed, rep.Complete())
			require.Len(t, rep.Items, 1)
			require.Equal(t, tt.queued, l.call(id).Dropped != nil)
			l.situation()
		})
	}
}

// TestReportsOfHeldCalls checks that a report and a preview have an item for
// each held call that never ran, and another item for an in-doubt one.
func TestReportsOfHeldCalls(t *testing.T) {
	l := newTestEnv(t)
	var told []string
	l.reverter.OnDrop = func(session, call string) { told = append(told, session+" "+call) }
	rec := l.txn()
	kept, named, failed := l.queue(rec), l.queue(rec), l.queue(rec)
	named, failed = failed, named
	preview, err := l.reverter.Preview(t.Context(), rec.Txn(), revert.Options{Calls: []string{named}})
	require.NoError(t, err)
	rep, err := l.reverter.Abort(t.Context(), rec.Txn(), revert.Options{Calls: []string{named}, By: "kim"})
	require.NoError(t, err)
	require.Equal(t, preview.Items, rep.Items)
	require.Equal(t, []revert.ResourceResult{{
		Call: named, Tool: "send", Action: revert.ActionDrop,
		Result: effect.Result{Resource: "tool://send", Outcome: effect.Already, Why: "it was held until the commit and never ran"},
	}}, rep.Items)
	require.Equal(t, revert.TxnOpen, rep.State)
	require.Equal(t, "kim", l.call(named).Dropped.By)
	l.line(rec, "", &record.Committing{})
	l.release(rec, kept)
	l.line(rec, kept, done())
	l.release(rec, failed)
	l.line(rec, failed, &record.Failed{Status: "failed", Why: "x", Proof: "no_effect"})
	_, err = l.reverter.RevertTo(t.Context(), rec.Txn(), "here", "kim")
	require.ErrorIs(t, err, journal.ErrNotFound)
	preview, err = l.reverter.Preview(t.Context(), rec.Txn(), revert.Options{})
	require.NoError(t, err)
	rep, err = l.reverter.Abort(t.Context(), rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, revert.TxnRevertedPartial, rep.State)
	require.Equal(t, preview.Items, rep.Items)
	require.Equal(t, "it was held until the commit, and has had no effect", rep.Items[0].Why)
	require.Equal(t, kept, rep.NotReverted()[0].Call)
	require.Equal(t, []string{"s_1 " + named, "s_1 " + failed}, told)
}

// TestNoSavepointOnceItCommits checks that a committing transaction accepts no
// revert to a savepoint: the calls after it may have been released.
func TestNoSavepointOnceItCommits(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	l.line(rec, "", &record.Savepoint{Name: "here"}, &record.Committing{})
	_, err := l.reverter.RevertTo(t.Context(), rec.Txn(), "here", "kim")
	require.ErrorIs(t, err, journal.ErrNotOwner)
	require.ErrorContains(t, err, "has begun to commit")
	l.situation()
}

// TestErasedHeldCalls checks what the journal still tells about erased held
// calls.
func TestErasedHeldCalls(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	gone, sent := l.queue(rec), l.queue(rec)
	_, err := l.reverter.Erase(t.Context(), gone, record.Erased{By: "kim", Why: "asked for"})
	require.ErrorIs(t, err, revert.ErrNotEnded)
	_, err = l.reverter.Abort(t.Context(), rec.Txn(), revert.Options{Calls: []string{gone}})
	require.NoError(t, err)
	l.line(rec, "", &record.Committing{})
	l.release(rec, sent)
	l.line(rec, sent, done())
	l.end(rec)
	for _, id := range []string{gone, sent} {
		_, err = l.reverter.Erase(t.Context(), id, record.Erased{By: "kim", Why: "asked for"})
		require.NoError(t, err)
	}
	require.Equal(t, string(revert.PhaseDropped), l.call(gone).Erased.As)
	require.Empty(t, l.call(gone).Erased.Status)
	require.Equal(t, effect.Deferrable, l.call(gone).Class())
	require.False(t, l.call(gone).HasEffects())
	require.Equal(t, "done", l.call(sent).Erased.Status)
	require.True(t, l.call(sent).HasEffects())
	l.situation()

	other := l.txn()
	l.queue(other)
	_, err = l.reverter.Abort(t.Context(), other.Txn(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, 1, l.prune(t, revert.Retention{}).Txns)
	l.situation()
}

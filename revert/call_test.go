package revert_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

func (l *testEnv) load(id string) *revert.Txn {
	l.t.Helper()
	txn, err := revert.Load(l.t.Context(), l.journal, id)
	require.NoError(l.t, err)
	return txn
}

func (l *testEnv) call(id string) *revert.Call {
	l.t.Helper()
	_, c, err := revert.LoadCall(l.t.Context(), l.journal, id)
	require.NoError(l.t, err)
	return c
}

func TestEffectClasses(t *testing.T) {
	for _, c := range effect.Classes() {
		require.True(t, c.Valid())
		require.Equal(t, c, c.OrPivot())
	}
	for _, c := range []effect.Class{"", "Pure", "harmless"} {
		require.False(t, c.Valid())
		require.Equal(t, effect.Pivot, c.OrPivot())
		require.NotContains(t, effect.Classes(), c)
	}
}

// TestClassOfACall checks that an unknown class is the worst one, and that a
// call that never started has no effect.
func TestClassOfACall(t *testing.T) {
	erased := &record.Erased{Class: effect.Compensable}
	for _, tt := range []struct {
		call revert.Call
		want effect.Class
	}{
		{revert.Call{}, effect.Pure},
		{revert.Call{Phase: revert.PhasePending, Asked: &record.Asked{}}, effect.Pure},
		{revert.Call{Started: &record.Started{}}, effect.Pivot},
		{revert.Call{Started: &record.Started{Class: "harmless"}}, effect.Pivot},
		{revert.Call{Started: &record.Started{Class: effect.Reversible}}, effect.Reversible},
		{revert.Call{Phase: revert.PhaseErased, Erased: erased}, effect.Compensable},
		{revert.Call{Phase: revert.PhaseErased, Erased: &record.Erased{}}, effect.Pure},
	} {
		require.Equal(t, tt.want, tt.call.Class())
	}
	require.True(t, (&revert.Call{}).Verdict().IsAbsent())
}

// TestFirstDecisionCounts checks two people who resolve a call at once.
func TestFirstDecisionCounts(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	id := l.start(rec, startedPayment())
	l.line(rec, id, &record.Unknown{Status: "unknown", Why: "lost"},
		&record.Decided{Applied: true, By: "kim", Why: "it is there"}, &record.Decided{By: "ada", Why: "it is not"})
	c := l.call(id)
	require.Equal(t, revert.PhaseDone, c.Phase)
	require.Equal(t, "kim", c.Decided.By)
	require.True(t, c.HasEffects())
}

// TestErasureOfAnInDoubtCall checks that the counters of an erased
// in-doubt call stay.
func TestErasureOfAnInDoubtCall(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	s := handled()
	s.Counts = map[string]json.Number{"amount": "5"}
	id := l.start(rec, s, write{"a", 7})
	l.line(rec, id, &record.Unknown{Status: "unknown", Why: "stood in the way"})
	l.end(rec)
	_, err := l.reverter.Erase(t.Context(), id, record.Erased{By: "kim", Why: "asked for"})
	require.NoError(t, err)
	c := l.call(id)
	require.Equal(t, "unknown", c.Erased.Status)
	require.True(t, c.Erased.Spent)
	require.True(t, c.Erased.Left)
	require.Equal(t, s.Counts, c.Erased.Counts)
	done := l.prune(t, revert.Retention{})
	require.Zero(t, done.Txns, "there is nothing to drop")
}

// TestErasureLosesToAConcurrentRevert checks an erasure against a revert that began
// after the erasure read the call.
func TestErasureLosesToAConcurrentRevert(t *testing.T) {
	l := newTestEnv(t)
	l.ids["t"] = l.worked()
	other := newProcess(l.open, &l.values.kvStore, 9)
	other.reverter.EnvironmentFor = l.reverter.EnvironmentFor
	l.at("journal.append.erased", func() {
		other.crashAt(2)
		_, err := other.reverter.Revert(t.Context(), l.ids["t"], revert.Options{})
		require.ErrorIs(t, err, errProcessEnded)
	})
	_, err := l.reverter.Erase(t.Context(), l.ids["second"], record.Erased{By: "kim", Why: "asked for"})
	require.ErrorIs(t, err, revert.ErrBusy)
	require.NotEqual(t, revert.PhaseErased, l.call(l.ids["second"]).Phase)
}

// TestPruneAfterAnErasure checks that prune does not count erased calls, and
// prunes transactions with a shared revert together.
func TestPruneAfterAnErasure(t *testing.T) {
	l := newTestEnv(t)
	first := l.worked()
	_, err := l.reverter.Erase(t.Context(), l.ids["second"], record.Erased{By: "kim", Why: "asked for"})
	require.NoError(t, err)
	stacked(l)
	_, err = l.reverter.Revert(t.Context(), l.ids["t"], revert.Options{Cascade: true})
	require.NoError(t, err)
	foreseen := l.prune(t, revert.Retention{DryRun: true})
	done := l.prune(t, revert.Retention{})
	require.Equal(t, 4, done.Txns)
	require.Equal(t, 2+3+3, done.Calls, "two that were left, three that an undo took along, and their undos")
	require.Equal(t, [3]int64{4, 8, foreseen.Content}, [3]int64{int64(foreseen.Txns), int64(foreseen.Calls), done.Content})
	for _, txn := range []string{first, l.ids["t"], l.ids["middle"], l.ids["top"]} {
		require.True(t, l.pruned(t, txn))
	}
}

// TestOutOfANestedTransaction checks that a revert of a nested transaction
// reverts only the calls that name it.
func TestOutOfANestedTransaction(t *testing.T) {
	l := newTestEnv(t)
	opened(l)
	rec := revert.NewRecorder(l.journal, l.host, "s_1").In(l.ids["t"])
	elsewhere := handled()
	elsewhere.Nest = "n_9"
	id := l.start(rec, elsewhere, write{"d", 1})
	l.line(rec, id, done())
	gone := l.put(rec, write{"e", 1})
	l.must(rec, revert.Write{
		Records: []revert.CallRecord{{Call: gone, Body: &record.Erased{Cause: "asked", Class: effect.Reversible, Left: true}}},
		Erase:   []string{gone},
	})
	rep, err := l.reverter.RevertNested(t.Context(), l.ids["t"], "n_1")
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Equal(t, map[string]string{"a": "7", "b": "2", "d": "1", "e": "1"}, l.values.values)
}

// TestErasedBeforeItBegan checks erased records of a call in a stream without a
// beginning.
func TestErasedBeforeItBegan(t *testing.T) {
	l := newTestEnv(t)
	rec := revert.NewRecorder(l.journal, l.host, "s_1")
	l.must(rec, revert.Write{Records: []revert.CallRecord{{Txn: "t_lost", Call: "c_1", Body: &record.Invalid{Why: "x"}}}})
	l.must(rec, revert.Write{Erase: []string{"c_1"}})
	_, err := revert.Load(t.Context(), l.journal, "t_lost")
	require.ErrorIs(t, err, record.ErrDamaged)
	require.ErrorContains(t, err, "invalid before transaction t_lost began")
}

// TestPreviewOfAnInDoubtCall checks that a preview shows an in-doubt call with the
// resources that it may have touched, and the calls below it.
func TestPreviewOfAnInDoubtCall(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	l.put(rec, write{"a", 7}, write{"c", 8})
	id := l.start(rec, startedPayment(), write{"a", 9})
	l.line(rec, id, &record.Unknown{Status: "unknown", Why: "lost"})
	l.end(rec)
	foreseen, err := l.reverter.Preview(t.Context(), rec.Txn(), revert.Options{})
	require.NoError(t, err)
	rep, err := l.reverter.Revert(t.Context(), rec.Txn(), revert.Options{})
	require.NoError(t, err)
	want := map[string]effect.Outcome{"tool://put": effect.Unknown, "a": effect.Unknown, "c": effect.Restored}
	require.Equal(t, want, outcomes(foreseen.Items))
	require.Equal(t, want, outcomes(rep.Items))
}

// fixedPlan is a scheme with fixed plans.
type fixedPlan struct {
	*kvStore
	plan   func(changes []effect.Change, keep journal.ContentStore) ([]effect.Step, []journal.Blob, error)
	settle func() (effect.Token, error)
}

func (s fixedPlan) Plan(_ context.Context, changes []effect.Change, keep journal.ContentStore) ([]effect.Step, []journal.Blob, error) {
	return s.plan(changes, keep)
}

func (s fixedPlan) Settle(context.Context, effect.Change) (effect.Token, error) { return s.settle() }

func (l *testEnv) with(schemes ...revert.Scheme) {
	l.reverter.EnvironmentFor = func(context.Context, string) (revert.Environment, error) {
		return revert.Environment{Schemes: schemes}, nil
	}
}

// TestForceOverUnknownVersions checks that force overwrites nothing if the
// scheme cannot tell the current version or the resource of a step.
func TestForceOverUnknownVersions(t *testing.T) {
	for name, tt := range map[string]struct {
		of     []int
		settle func() (effect.Token, error)
		words  string
	}{
		"no version":       {[]int{1}, func() (effect.Token, error) { return "", nil }, "not ours"},
		"no look":          {[]int{1}, func() (effect.Token, error) { return "", errFault }, "not ours; it could not be overwritten: this operation failed"},
		"of no change":     {nil, func() (effect.Token, error) { return "v:theirs", nil }, "not ours"},
		"a conflict again": {[]int{1}, func() (effect.Token, error) { return "v:theirs", nil }, "not ours"},
	} {
		l := newTestEnv(t)
		id := l.one(t, "a", 7)
		l.with(fixedPlan{
			kvStore: &l.values.kvStore,
			settle:  tt.settle,
			plan: func(changes []effect.Change, _ journal.ContentStore) ([]effect.Step, []journal.Blob, error) {
				return []effect.Step{{Of: tt.of, Plan: effect.Conflict, Why: "not ours", Change: effect.Change{Scheme: "kv", Resource: "a"}}}, nil, nil
			},
		})
		rep, err := l.reverter.Revert(t.Context(), id, revert.Options{Force: true, By: "kim"})
		require.NoError(t, err, name)
		require.Equal(t, revert.TxnRevertedPartial, rep.State, name)
		require.Equal(t, effect.Conflict, rep.Items[0].Outcome, name)
		require.Equal(t, tt.words, rep.Items[0].Why, name)
		require.False(t, rep.Items[0].Forced, name)
	}
}

// TestPreviewOfContentThatCannotBeRead checks that a preview reads content
// although it stores none.
func TestPreviewOfContentThatCannotBeRead(t *testing.T) {
	l := newTestEnv(t)
	id := l.one(t, "a", 7)
	torn := errors.New("torn")
	l.with(fixedPlan{kvStore: &l.values.kvStore, plan: func(_ []effect.Change, keep journal.ContentStore) ([]effect.Step, []journal.Blob, error) {
		_, err := keep.StoreContent(t.Context(), iotest.ErrReader(torn))
		return nil, nil, err
	}})
	_, err := l.reverter.Preview(t.Context(), id, revert.Options{})
	require.ErrorIs(t, err, torn)
}

// TestUndoWithoutItsScheme checks that a process without the scheme leaves a
// revert that another program began, and loses nothing.
func TestUndoWithoutItsScheme(t *testing.T) {
	l := newTestEnv(t)
	begun(revertRequest("t", revert.Options{}), 2)(l)
	l.with()
	rep, err := l.reverter.Revert(t.Context(), l.ids["t"], revert.Options{})
	require.NoError(t, err)
	require.Len(t, rep.NotReverted(), len(rep.Items))
	for _, i := range rep.Items {
		require.Equal(t, effect.Failed, i.Outcome, "%+v", i)
	}
	l.next()
	require.NoError(t, revertRequest("t", revert.Options{})(t.Context(), l).err)
	require.Equal(t, before(), l.values.values)
}

// withoutTool are tools without the requested one.
type withoutTool struct{ faultyTools }

func (withoutTool) Probe(context.Context, revert.Call) (record.Verified, error) {
	return record.Verified{}, revert.ErrToolNotFound
}

// TestRecoveryWithoutATool checks that a call that only its tool can probe
// waits for a program with that tool. All other calls are recovered.
func TestRecoveryWithoutATool(t *testing.T) {
	l := newTestEnv(t)
	left(l)
	other := l.txn()
	l.start(other, handled(), write{"z", 9})
	l.next()
	schemes := []revert.Scheme{valueStoreView{l.values, l.faults}}
	l.reverter.EnvironmentFor = func(context.Context, string) (revert.Environment, error) {
		return revert.Environment{Schemes: schemes, Prober: withoutTool{}}, nil
	}
	found, err := l.reverter.Recover(t.Context())
	require.NoError(t, err, "it is not this program's to settle")
	require.Len(t, found.Failed, 1)
	require.Equal(t, l.ids["t"], found.Failed[0].Txn)
	require.Contains(t, found.Failed[0].Why, "recover in the program that has it")
	require.NotContains(t, l.values.values, "z")
	waiting := l.load(l.ids["t"]).InFlight()
	require.Len(t, waiting, 2)
	for _, c := range waiting {
		require.False(t, c.Confined())
	}
	l.next()
	require.NoError(t, recovered(t.Context(), l).err)
}

// TestOtherNamespaces checks that the same name in another namespace is another
// resource.
func TestOtherNamespaces(t *testing.T) {
	l := newTestEnv(t)
	mine := l.txn()
	l.put(mine, write{"a", 7})
	l.end(mine)
	first := mine.Txn()
	rec := revert.NewRecorder(l.journal, l.host, "s_2").In("t_other")
	own := journal.Ownership{Txn: rec.Txn(), Owner: l.journal.Owner()}
	l.must(rec, revert.Write{Take: journal.OwnerChange{To: own}, Records: []revert.CallRecord{{Body: &record.Begun{Owner: own.Owner}}}})
	l.put(rec, write{"a", 8})
	l.end(rec)
	l.values.values["a"] = "7" // in the first namespace, where no call wrote 8
	foreseen, err := l.reverter.Preview(t.Context(), first, revert.Options{Cascade: true})
	require.NoError(t, err)
	require.Empty(t, foreseen.Dependents)
	rep, err := l.reverter.Revert(t.Context(), first, revert.Options{Cascade: true})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Equal(t, revert.TxnCommitted, l.load("t_other").State())
}

// handleRevert is a tool whose Revert acts through a handle.
type handleRevert struct {
	faultyTools
	l *testEnv
}

func (handleRevert) CanRevert(context.Context, revert.Call) (bool, string) { return true, "" }

func (r handleRevert) RevertCall(ctx context.Context, rec revert.Recorder, _ revert.Call, undoCall, _ string) error {
	will, blobs, err := valueStoreView{r.l.values, r.l.faults}.keepNow(ctx, "z", r.l.journal)
	if err != nil {
		return err
	}
	ch := valueStoreView{r.l.values, r.l.faults}.change(1, "z", "write", r.l.values.token("z"), "v:back", will, nil)
	r.l.values.set("z", ch.Post)
	return rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Call: undoCall, Body: &record.Changed{Change: ch}}}, Blobs: blobs, Claims: []string{"z"}, Durable: true})
}

// TestErasureAfterReleaseAndRevert checks a call that was held,
// released, reverted, released again and reverted. Its erasure leaves no body,
// and no content that a record of any attempt named.
func TestErasureAfterReleaseAndRevert(t *testing.T) {
	l := newTestEnv(t)
	first, second := strings.Repeat("secret", journal.InlineMax), strings.Repeat("another", journal.InlineMax)
	l.values.values["z"] = first
	tools := handleRevert{faultyTools{l.faults, l.till}, l}
	l.reverter.EnvironmentFor = func(context.Context, string) (revert.Environment, error) {
		return revert.Environment{Schemes: []revert.Scheme{valueStoreView{l.values, l.faults}}, ToolReverter: tools}, nil
	}
	rec := l.txn()
	id := l.hold(rec, startedPayment(), true)
	l.line(rec, "", &record.Committing{})
	l.release(rec, id)
	_, err := l.reverter.RevertCall(t.Context(), rec, id, "failed")
	require.NoError(t, err)
	l.line(rec, id, &record.Failed{Status: "failed", Why: "declined", Proof: "reverted"})
	l.values.values["z"] = second
	l.release(rec, id)
	l.line(rec, id, done())
	l.end(rec)
	rep, err := l.reverter.Revert(t.Context(), rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete(), "%+v", rep)

	other := l.open() // with a second opening, only named content is deleted
	defer func() { require.NoError(t, other.Close()) }()
	out, err := l.reverter.Erase(t.Context(), id, record.Erased{By: "kim", Why: "asked for"})
	require.NoError(t, err)
	require.Equal(t, 3, out.Records, "the call, and two takings back")
	require.Empty(t, out.Shared)
	for e, err := range l.journal.Entries(t.Context(), journal.Query{}) {
		require.NoError(t, err)
		if e.Header.Kind.Erasable() {
			require.NotEmpty(t, e.Erased, "%s of %s", e.Header.Kind, e.Header.Call)
		}
	}
	for _, secret := range []string{first, second} {
		_, err := l.journal.OpenContent(t.Context(), refOf(secret))
		require.ErrorIs(t, err, journal.ErrNotFound)
	}
}

// TestReleaseAfterAnUnknownOutcome checks a call that was released with an unknown
// outcome, and died when it was released again. It stays in doubt for any
// result of the second attempt.
func TestReleaseAfterAnUnknownOutcome(t *testing.T) {
	l := newTestEnv(t)
	rec := l.txn()
	l.ids["t"] = rec.Txn()
	l.line(rec, "", &record.Savepoint{Name: "here"})
	s := startedPayment()
	s.Confinement = "handles"
	id := l.hold(rec, s, true)
	l.line(rec, "", &record.Committing{})
	l.release(rec, id)
	l.line(rec, id, &record.Unknown{Status: "unknown", Why: "lost"})
	_, err := l.reverter.RevertTo(t.Context(), rec.Txn(), "here", "kim")
	require.ErrorIs(t, err, journal.ErrNotOwner)
	require.ErrorContains(t, err, "has begun to commit")
	l.release(rec, id)
	l.next()
	l.with(valueStoreView{l.values, l.faults})
	found, err := l.reverter.Recover(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{rec.Txn()}, found.Committing)
	require.Len(t, found.Settled, 1)
	require.Equal(t, revert.PhaseUnknown, found.Settled[0].Outcome)
	require.Contains(t, found.Settled[0].Why, "it was released before")
}

func refOf(content string) effect.BlobRef {
	return effect.BlobRef{Digest: string(canon.SumBytes([]byte(content))), Size: int64(len(content))}
}

// TestWaits checks that a call waits before it starts. While it runs, it waits
// until its approval request has an answer or another approval.
func TestWaits(t *testing.T) {
	during := &record.Asked{During: true, Digest: "d"}
	for name, tt := range map[string]struct {
		call revert.Call
		want bool
	}{
		"pending":          {revert.Call{Phase: revert.PhasePending, Asked: during}, true},
		"runs":             {revert.Call{Phase: revert.PhaseStarted}, false},
		"was asked before": {revert.Call{Phase: revert.PhaseStarted, Asked: &record.Asked{Digest: "d"}}, false},
		"asks":             {revert.Call{Phase: revert.PhaseStarted, Asked: during}, true},
		"answered":         {revert.Call{Phase: revert.PhaseStarted, Asked: during, Answered: &record.Answered{Digest: "d"}}, false},
		"approved":         {revert.Call{Phase: revert.PhaseStarted, Asked: during, Approvals: []record.Approved{{Approval: record.Approval{Digest: "d"}}}}, false},
		"other approved":   {revert.Call{Phase: revert.PhaseStarted, Asked: during, Approvals: []record.Approved{{Approval: record.Approval{Digest: "o"}}}}, true},
		"done":             {revert.Call{Phase: revert.PhaseDone, Asked: during}, false},
	} {
		require.Equal(t, tt.want, tt.call.Waits(), name)
	}
}

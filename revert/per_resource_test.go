package revert_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// TestStateWithOneCallOfTwo checks that a complete revert of one call does not
// make its transaction partly reverted. A complete redo of one of two reverts
// does not either. A conflict does, until the other call is redone completely.
func TestStateWithOneCallOfTwo(t *testing.T) {
	ctx := t.Context()
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	a, err := p.call(ctx, rec, put(write{"a", 7}))
	require.NoError(t, err)
	b, err := p.call(ctx, rec, put(write{"d", 9}))
	require.NoError(t, err)
	require.NoError(t, p.commit(ctx, rec))
	state := func() revert.TxnState {
		txn, err := revert.Load(ctx, p.journal, rec.Txn())
		require.NoError(t, err)
		return txn.State()
	}
	undo := func(call string, want revert.TxnState) string {
		t.Helper()
		rep, err := p.reverter.Revert(ctx, call, revert.Options{})
		require.NoError(t, err)
		require.Equal(t, want, rep.State)
		require.Equal(t, want, state())
		return rep.RevertTxn
	}
	redo := func(id string, want revert.TxnState) {
		t.Helper()
		rep, err := p.reverter.Redo(ctx, id, "kim")
		require.NoError(t, err)
		require.True(t, rep.Complete())
		require.Equal(t, want, rep.State)
		require.Equal(t, want, state())
	}
	first := undo(a, revert.TxnCommitted)
	second := undo(b, revert.TxnReverted)
	redo(first, revert.TxnCommitted)
	redo(second, revert.TxnCommitted)
	undo(b, revert.TxnCommitted)
	p.store.values["a"] = "theirs"
	undo(a, revert.TxnRevertedPartial)
	redo(rec.Txn(), revert.TxnCommitted)
	undo(b, revert.TxnCommitted)
}

// TestPerResource checks that a report with an item for each call equals the
// preview for each resource, with one item each.
func TestPerResource(t *testing.T) {
	ctx := t.Context()
	for name, tt := range map[string]struct {
		writes [][]write
		theirs bool
		want   []string // resources and outcomes
	}{
		"changed twice":       {[][]write{{{"a", 7}}, {{"a", 8}}}, false, []string{"a restored"}},
		"made and changed":    {[][]write{{{"new", 7}}, {{"new", 8}}}, false, []string{"new restored"}},
		"changed and deleted": {[][]write{{{"a", 7}}, {{"a", nil}}}, false, []string{"a restored"}},
		"deleted and made":    {[][]write{{{"a", nil}}, {{"a", 8}}}, false, []string{"a restored"}},
		"changed three times": {[][]write{{{"a", 7}}, {{"a", 8}}, {{"a", 9}}}, true, []string{"a conflict"}},
		"two":                 {[][]write{{{"a", 7}, {"d", 4}}, {{"a", 8}}}, false, []string{"a restored", "d restored"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
			rec, err := p.begin(ctx)
			require.NoError(t, err)
			for _, w := range tt.writes {
				_, err = p.call(ctx, rec, put(w...))
				require.NoError(t, err)
			}
			require.NoError(t, p.commit(ctx, rec))
			if tt.theirs {
				p.store.values["a"] = "theirs"
			}
			look, err := p.reverter.Preview(ctx, rec.Txn(), revert.Options{})
			require.NoError(t, err)
			require.ElementsMatch(t, tt.want, reportLines(look, false))
			rep, err := p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
			require.NoError(t, err)
			require.ElementsMatch(t, tt.want, reportLines(rep.PerResource(), false))
		})
	}
}

// TestPerResourceOfATemporaryResource checks a resource that calls created and
// removed: it is absent before and after.
func TestPerResourceOfATemporaryResource(t *testing.T) {
	ctx := t.Context()
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	for _, value := range []any{7, nil} {
		_, err = p.call(ctx, rec, put(write{"new", value}))
		require.NoError(t, err)
	}
	require.NoError(t, p.commit(ctx, rec))
	rep, err := p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"new already "}, reportLines(rep.PerResource(), true))
}

// TestPerResourceOfOutcomes merges items of resources that are not files.
func TestPerResourceOfOutcomes(t *testing.T) {
	again := revert.Report{Items: []revert.ResourceResult{
		{Call: "c_2", Result: effect.Result{Resource: "a", Outcome: effect.Already}},
		{Call: "c_1", Action: "write", Result: effect.Result{Resource: "a", Outcome: effect.Restored}},
		{Call: "c_2", Result: effect.Result{Resource: "tool://x", Outcome: effect.Restored}},
		{Call: "c_1", Result: effect.Result{Resource: "tool://x", Outcome: effect.Restored}},
		{Call: "c_2", Action: "create", Result: effect.Result{Resource: "d", Outcome: effect.Restored, Now: "1"}},
		{Call: "c_1", Action: "delete", Result: effect.Result{Resource: "d", Outcome: effect.Restored, Now: effect.Absent}},
		{Call: "c_2", Action: "delete", Result: effect.Result{Resource: "e", Outcome: effect.Restored, Now: effect.Absent}},
		{Call: "c_1", Action: "create", Result: effect.Result{Resource: "e", Outcome: effect.Restored, Now: "1"}},
		{Call: "c_1", Action: "write", Result: effect.Result{Resource: "b", Outcome: effect.Restored}},
		{Call: "c_0", Result: effect.Result{Resource: "b", Outcome: effect.Already}},
		{Call: "c_0", Result: effect.Result{Resource: "b", Outcome: effect.Failed}},
		{Call: "c_0", Result: effect.Result{Resource: "b", Outcome: effect.Conflict}},
	}}
	require.Equal(t, []string{"a restored write", "tool://x restored ", "tool://x restored ", "d restored delete", "e restored write", "b failed "}, reportLines(again.PerResource(), true))
}

func reportLines(rep revert.Report, does bool) (out []string) {
	for _, i := range rep.Items {
		text := i.Resource + " " + string(i.Outcome)
		if does {
			text += " " + i.Action
		}
		out = append(out, text)
	}
	return out
}

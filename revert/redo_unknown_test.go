package revert_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// TestRedoOfAnUnclearCall: a person reverts the changes of a call that failed,
// or whose outcome is unknown. A redo puts back what that revert removed, and
// the changes can be reverted again.
func TestRedoOfAnUnclearCall(t *testing.T) {
	for name, tt := range map[string]struct {
		started record.Started
		end     []record.Body
	}{
		"confined, unknown": {*handled(), []record.Body{&record.Unknown{Status: "unknown", Why: "lost"}}},
		"observed, unknown": {record.Started{Class: effect.Pivot, Confinement: "trusted", Coverage: effect.Observed}, []record.Body{&record.Unknown{Status: "unknown", Why: "lost"}}},
		"observed, done":    {record.Started{Class: effect.Pivot, Confinement: "trusted", Coverage: effect.Observed}, []record.Body{done()}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTestEnv(t)
			rec, before := l.txn(), maps.Clone(l.values.values)
			s := tt.started
			id := l.start(rec, &s, write{"a", 7}, write{"new", 8}, write{"b", nil})
			l.line(rec, id, tt.end...)
			l.end(rec)
			after := maps.Clone(l.values.values)
			for range 2 {
				rep, err := l.reverter.Revert(t.Context(), rec.Txn(), revert.Options{By: "kim"})
				require.NoError(t, err)
				require.Equal(t, before, l.values.values)
				require.True(t, l.load(rec.Txn()).Redoable(rep.RevertTxn))

				rep, err = l.reverter.Redo(t.Context(), rec.Txn(), "kim")
				require.NoError(t, err)
				require.True(t, rep.Complete(), "%+v", rep)
				require.Equal(t, after, l.values.values)
				require.Equal(t, revert.TxnCommitted, rep.State)
				require.True(t, l.call(id).HasEffects())
			}
		})
	}
}

// TestRedoOfAFailedCall: the revert of a failed call left a conflict, and a
// person forced it. A redo restores what the force overwrote, and nothing that
// the call itself reverted.
func TestRedoOfAFailedCall(t *testing.T) {
	l := newTestEnv(t)
	rec, before := l.txn(), maps.Clone(l.values.values)
	id := l.start(rec, handled(), write{"a", 7}, write{"b", 8})
	l.values.values["a"] = "theirs"
	_, err := l.reverter.RevertCall(t.Context(), rec, id, "failed")
	require.NoError(t, err)
	l.line(rec, id, &record.Failed{Proof: "reverted", Why: "it failed"})
	l.end(rec)
	require.Equal(t, "theirs", l.values.values["a"])
	require.Equal(t, before["b"], l.values.values["b"])

	rep, err := l.reverter.Revert(t.Context(), rec.Txn(), revert.Options{Force: true, By: "kim"})
	require.NoError(t, err)
	require.Equal(t, before, l.values.values)
	require.True(t, l.load(rec.Txn()).Redoable(rep.RevertTxn))
	_, err = l.reverter.Redo(t.Context(), rec.Txn(), "kim")
	require.NoError(t, err)
	require.Equal(t, "theirs", l.values.values["a"])
	require.Equal(t, before["b"], l.values.values["b"])
}

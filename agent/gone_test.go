package agent_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// TestVerifyAfterUndo: a Revert that ends well has not undone what the tool's own
// Verify still finds; tried again, with an effect that is gone by then, it has.
func TestVerifyAfterUndo(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answer  verify.Verdict // to the look after the undo
		want    effect.Outcome
		verdict string
	}{
		{"gone", verify.Absent(), effect.Restored, "absent"},
		{"still there", verify.Applied("order 7 is on the list"), effect.Failed, "applied"},
		{"half there", verify.Partial("one line of order 7 is on the list"), effect.Failed, "partial"},
		{"no answer", verify.CannotTell("the list cannot be read"), effect.Restored, "cannot_tell"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer, keys := tt.answer, []string{}
			order, err := tool.FromSpec(tool.Spec{
				Name: "order", Description: "Orders.", EffectClass: effect.Compensable, UndoVersion: "1",
				Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
					return tool.Text("7"), nil
				},
				Revert: func(_ context.Context, rc tool.RevertContext) error {
					keys = append(keys, rc.RevertKey)
					return nil
				},
				Verify: func(_ context.Context, s verify.Subject) verify.Verdict {
					if s.Phase != verify.AfterRevert {
						return verify.Applied()
					}
					require.JSONEq(t, `"7"`, string(s.Output))
					return answer
				},
			})
			rt := newRuntime(t, agent.Tools(mustTool(t, order, err)), agent.Policy(allowAll()))
			s := newSession(t, rt)
			tx := begin(t, s)
			out, err := tx.Invoke(t.Context(), "order", "one")
			require.NoError(t, err)
			require.NoError(t, tx.Commit(t.Context()))
			rep, err := s.Revert(t.Context(), tx.ID(), revert.Options{})
			require.Len(t, rep.Items, 1)
			require.Equal(t, tt.want, rep.Items[0].Outcome, rep.Items[0].Why)
			txn, c, lerr := revert.LoadCall(t.Context(), rt.Journal(), out.Call)
			require.NoError(t, lerr)
			require.EqualValues(t, tt.verdict, c.Reversal.Verified.Presence)
			if tt.want == effect.Restored {
				require.NoError(t, err)
				require.Equal(t, revert.TxnReverted, txn.State())
				return
			}
			require.ErrorIs(t, err, agent.ErrPartialRevert)
			require.Contains(t, rep.Items[0].Why, "its Verify still finds the effect")
			require.Contains(t, rep.Items[0].Why, tt.answer.Findings()[0])
			require.Equal(t, revert.TxnRevertedPartial, txn.State())
			answer = verify.Absent()
			_, err = s.Revert(t.Context(), tx.ID(), revert.Options{})
			require.NoError(t, err)
			require.Len(t, keys, 2)
			require.Equal(t, keys[0], keys[1], "each attempt has the same key")
		})
	}
}

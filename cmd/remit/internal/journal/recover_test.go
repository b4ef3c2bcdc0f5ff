package journal

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
)

func TestRecoveryNamesWhatIsNotSettled(t *testing.T) {
	var out bytes.Buffer
	where := &state.Workspace{HintFlags: []string{"--workspace", "ws"}}
	writeRecovery(cli.Style(false), &out, revert.RecoveryReport{
		Settled:   []revert.RecoveredCall{{Txn: "t_1", Call: "c_1", Tool: "send", Outcome: revert.PhaseUnknown, Why: "nobody can tell"}},
		Abandoned: []string{"t_1"},
		Failed:    []revert.UnrecoveredTxn{{Txn: "t_2", Why: "its tool is not at hand"}},
		Finished: []revert.Finished{
			{Txn: "t_3", Of: "t_1", State: revert.TxnReverted},
			{Txn: "t_4", Of: "t_5", Redoes: true, State: revert.TxnRevertedPartial},
		},
	}, where)
	require.Equal(t, `? c_1 send         unknown: nobody can tell
     show  remit show c_1 --workspace ws
✗ t_2 not resolved
     why   its tool is not at hand
     show  remit show t_2 --workspace ws
1 call resolved
t_3 closed: the revert of t_1 was interrupted, and recover finished it; t_1 is reverted
redo these changes: remit redo t_3 --workspace ws
t_4 closed: the redo of t_5 was interrupted, and recover finished it; t_5 is reverted_partial
try again what did not change: remit redo t_5 --workspace ws
revert it again: remit revert t_5 --workspace ws
`, out.String())
}

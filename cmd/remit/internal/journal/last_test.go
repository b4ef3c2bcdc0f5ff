package journal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// TestNeverReverts: the newest transaction is not one of which a revert left only calls that no revert can change.
func TestNeverReverts(t *testing.T) {
	pivot := func() *revert.Call {
		return &revert.Call{
			Phase: revert.PhaseDone, Started: &record.Started{Class: effect.Pivot},
			Reversal: &revert.Reversal{Reverted: &record.Reverted{Results: []effect.Result{{Resource: "tool://client_outside", Outcome: effect.Failed}}}},
		}
	}
	require.True(t, cannotRevert(pivot()))
	for name, change := range map[string]func(*revert.Call){
		"the first revert tells that it cannot": func(c *revert.Call) { c.Reversal = nil },
		"its tool has a revert":                 func(c *revert.Call) { c.Tool.UndoVersion = "1" },
		"it changed a resource":                 func(c *revert.Call) { c.Changes = []effect.Change{{}} },
		"its outcome is unknown":                func(c *revert.Call) { c.Phase = revert.PhaseUnknown },
		"it is reversible":                      func(c *revert.Call) { c.Started.Class = effect.Reversible },
	} {
		c := pivot()
		change(c)
		require.False(t, cannotRevert(c), name)
	}
}

package journal

import (
	"encoding/json"
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

// TestLeavesSomething: an undo names the newer calls that stay, and no others.
func TestLeavesSomething(t *testing.T) {
	reverted := &revert.Reversal{Reverted: &record.Reverted{Results: []effect.Result{{Resource: "tool://client_shell_observed", Outcome: effect.Unknown}}}}
	for name, c := range map[string]struct {
		revert.Call

		left bool
	}{
		"waits for approval":                     {revert.Call{Phase: revert.PhasePending}, true},
		"held until the commit":                  {revert.Call{Phase: revert.PhaseHeld}, true},
		"of a prompt that still runs":            {revert.Call{Phase: revert.PhaseDone, Started: &record.Started{Class: effect.Reversible}, Changes: []effect.Change{{}}}, true},
		"cannot be reverted, nobody was told":    {revert.Call{Phase: revert.PhaseDone, Started: &record.Started{Class: effect.Pivot}}, true},
		"the report of its revert told the rest": {revert.Call{Phase: revert.PhaseDone, Started: &record.Started{Class: effect.Pivot, Coverage: effect.Observed}, Reversal: reverted}, false},
		"only reads":                             {revert.Call{Phase: revert.PhaseDone, Started: &record.Started{Class: effect.Pure}}, false},
		"denied":                                 {revert.Call{Phase: revert.PhaseDenied}, false},
		"dropped":                                {revert.Call{Phase: revert.PhaseDropped}, false},
	} {
		require.Equal(t, c.left, leavesSomething(&c.Call), name)
	}
}

// TestPassedOverReason: only a call whose end is known changed nothing.
func TestPassedOverReason(t *testing.T) {
	done := func(tool, output string) *revert.Call {
		c := &revert.Call{Phase: revert.PhaseDone, Started: &record.Started{Class: effect.Reversible}, Done: &record.Done{Output: json.RawMessage(output)}}
		c.Tool.Name = tool
		return c
	}
	const nothing, unknown = "it changed nothing", "its agent reported no end, and no change of it is recorded"
	for _, test := range []struct{ tool, output, why string }{
		{"client_write", `{"reported":true}`, nothing},
		{"client_write", `{"reported":false}`, unknown},
		{"client_write", `{}`, nothing},
		{"client_write", `null`, nothing},
		{"report_card", `{"reported":false}`, nothing}, // the output of another tool means something else
	} {
		require.Equal(t, test.why, passedOverReason(done(test.tool, test.output)), "%+v", test)
	}
}

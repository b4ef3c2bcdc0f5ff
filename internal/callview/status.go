package callview

import (
	"cmp"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// Status returns the status of the call's outcome, or in_flight.
func Status(c *revert.Call) string {
	switch c.Phase {
	case revert.PhaseErased:
		return cmp.Or(c.Erased.Status, string(c.Erased.As))
	case revert.PhaseStarted:
		return "in_flight"
	case revert.PhaseDone:
		for _, v := range c.Verified {
			if v.Phase == "call" && !v.OK {
				return string(tool.StatusVerifyFailed)
			}
		}
	case revert.PhaseFailed:
		return cmp.Or(c.Failed.Status, string(c.Phase))
	case revert.PhaseDenied:
		return c.Denied.Status()
	case revert.PhaseInvalid, revert.PhasePending, revert.PhaseHeld, revert.PhaseDropped, revert.PhaseUnknown:
	}
	return string(c.Phase)
}

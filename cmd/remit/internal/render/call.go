package render

import (
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// Mark returns the sign of a status.
func Mark(p cli.Style, s tool.Status) string {
	switch s {
	case tool.StatusDone:
		return p.Good("✓")
	case tool.StatusPending, tool.StatusHeld:
		return p.Doubt("…")
	case tool.Status(revert.PhaseDropped):
		return p.Faint("·")
	case tool.StatusUnknown:
		return p.Bad("?")
	case tool.StatusInvalid, tool.StatusDenied, tool.StatusFailed, tool.StatusVerifyFailed, tool.StatusCancelled, tool.StatusTimeout:
	}
	return p.Bad("✗")
}

// State formats the state of a transaction. OwnerGone marks an open one whose
// owner process has ended.
func State(p cli.Style, s revert.TxnState, ownerGone bool) string {
	switch {
	case s == revert.TxnRevertedPartial:
		return p.Bad(string(s))
	case s == revert.TxnOpen && ownerGone:
		return p.Doubt("open, owner gone")
	case s == revert.TxnOpen:
		return p.Doubt(string(s))
	default:
		return p.Good(string(s))
	}
}

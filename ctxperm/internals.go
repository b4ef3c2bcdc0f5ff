package ctxperm

import (
	"slices"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/perm"
)

// init lets this module reach what tool authors do not see: see package
// internal/handleaccess.
func init() {
	handleaccess.Install(handleaccess.Contexts[ToolContext, Permit]{
		New:        func(c *callstate.Call) ToolContext { return ToolContext{call: c} },
		Call:       func(tc ToolContext) *callstate.Call { return tc.call },
		PermitCall: func(p Permit) *callstate.Call { return p.op.Call() },
		NewPermit: func(op *callstate.Op, accesses ...perm.ResourceAccess) Permit {
			return Permit{op: op, accesses: slices.Clone(accesses)}
		},
	})
}

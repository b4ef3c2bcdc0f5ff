package ctxperm

import (
	"context"

	"github.com/remit-dev/remit/revert"
)

// Driver holds what the handles of one package need and calls must not see:
// connections, credentials, network access. The host program passes drivers to
// the runtime (agent.Driver). A handle finds the driver of its package with
// DriverOf. Any tool that can name the type can do the same, so exported
// methods must not expose secrets. A Driver must be safe for concurrent use.
// Its creator closes it, after the runtime.
type Driver interface {
	// Schemes restore what calls changed through the handles. It is empty if
	// these changes cannot be restored.
	Schemes() []revert.Scheme
}

// DriverOf returns the runtime's driver of one type, the first if there are
// several. It fails with ErrClosed after the call has ended. It fails with
// ErrNoDriver if the runtime has no such driver; the handle then says how to
// create one.
func DriverOf[D Driver](ctx context.Context, tc ToolContext) (D, error) {
	var none D
	op, err := tc.call.Enter(ctx)
	if err != nil {
		return none, err
	}
	defer op.Leave()
	for _, d := range tc.call.Config().Drivers {
		if found, ok := d.(D); ok {
			return found, nil
		}
	}
	return none, ErrNoDriver
}

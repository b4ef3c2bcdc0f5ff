package ctxperm

import (
	"context"

	"github.com/remit-dev/remit/revert"
)

// Driver is what the handles of one package work with and no call gets to see:
// connections, credentials, the way to a network. A runtime is given its drivers
// (agent.Driver), and a handle finds the one of its package with DriverOf. So does
// any tool that can name its type: what must stay inside the package is not among
// its exported methods. It must be safe for concurrent use. Whoever made it closes
// it, after the runtime.
type Driver interface {
	// Schemes restore what calls changed through the handles; none where nothing
	// of it can be restored.
	Schemes() []revert.Scheme
}

// DriverOf returns the runtime's driver of one type, the first if there are
// several. It fails with ErrClosed once the call has ended, and with ErrNoDriver
// where the runtime was given none: the handle then says how to make one.
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

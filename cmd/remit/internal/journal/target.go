package journal

import (
	"context"

	"github.com/remit-dev/remit/agent"
)

// target selects a transaction: the one with an ID, or the last one. An empty
// ID selects none.
type target struct {
	id   string
	last bool
}

// find returns the ID of the selected transaction, and the newer calls that
// --last skipped. The ID is empty if there is no last transaction.
func (t target) find(ctx context.Context, rt *agent.Runtime) (id string, over []passedOver, err error) {
	if t.last {
		return lastTxn(ctx, rt, nil, nil)
	}
	return t.id, nil, nil
}

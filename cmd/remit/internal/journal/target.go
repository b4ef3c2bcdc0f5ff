package journal

import (
	"context"

	"github.com/remit-dev/remit/agent"
)

// target says which transaction is meant: the one with an id, or the last one.
// No id means none, never the last.
type target struct {
	id   string
	last bool
	undo bool // with last: the newest undo is meant
}

// find is the id of what is meant, and the newer calls that the last one passes over;
// empty where the last one is meant, and there is none.
func (t target) find(ctx context.Context, rt *agent.Runtime) (id string, over []passedOver, err error) {
	if t.last && t.undo {
		return lastUndo(ctx, rt)
	}
	if t.last {
		return lastTxn(ctx, rt)
	}
	return t.id, nil, nil
}

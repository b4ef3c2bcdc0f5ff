package pipeline

import (
	"context"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// addValues adds to a request where the values of the arguments come from. It
// does nothing if the engine says that it does not read this.
func (l *Pipeline) addValues(ctx context.Context, t tool.Tool, req *perm.Request) (err error) {
	if e, ok := l.engine().(interface{ ReadsValues() bool }); ok && !e.ReadsValues() || req.Call.Values != nil || t.IsZero() {
		return nil
	}
	req.Call.Values, req.Call.ValuesCut, err = l.p.Facts.Values(ctx, t, req.Call.Args)
	return err
}

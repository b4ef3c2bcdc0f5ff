package files

import (
	"context"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/handleaccess"
)

// init lets this module reach what tool authors do not see: see package
// internal/handleaccess.
func init() {
	handleaccess.Install(handleaccess.Files[ChangeSet, DetectedChanges, FilePreImage]{
		NewChangeSet: newChangeSet,
		Scheme:       newScheme,
		View:         newView,
		Detect: func(ctx context.Context, t *DetectedChanges, name string, root disk.Root, before []FilePreImage) error {
			return t.detect(ctx, name, root, before)
		},
		Record: func(ctx context.Context, t *DetectedChanges, call *callstate.Call) error { return t.record(ctx, call) },
		Decide: func(ctx context.Context, t *DetectedChanges, call *callstate.Call) error { return t.decide(ctx, call) },
	})
}

package revert

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Scheme handles one kind of resource: it reads the changes that its handle
// recorded, and reverts them. Implementations are safe for concurrent use and
// keep no state between calls: the change contains all that they need.
//
// A scheme that applies many steps at less cost than one by one, because they
// share a durable write, also has
//
//	ApplyAll(ctx context.Context, steps []effect.Step, keep journal.ContentStore) []effect.Result
//
// which applies them in order, each by the rules of Apply, and returns one
// result for each.
//
// A scheme that cannot store every version that a step overwrites also has
//
//	Keeps(s effect.Step) bool
//
// A step that it does not keep is never forced: another actor's version would
// be lost.
type Scheme interface {
	// Name returns the value of Change.Scheme that belongs to this scheme.
	Name() string
	// Settle brings the resource of an interrupted change to a state that a
	// plan can start from. It removes half-made files and restores what it
	// displaced but did not own. It returns the current version.
	Settle(ctx context.Context, c effect.Change) (effect.Token, error)
	// Plan reads the resources and returns, in the order to follow, the steps
	// that revert the changes of one call. It first stores content that a step
	// will displace, so that the step itself can be reverted.
	Plan(ctx context.Context, changes []effect.Change, keep journal.ContentStore) ([]effect.Step, []journal.Blob, error)
	// Apply performs one planned step by check-and-swap: it MUST NOT change a
	// resource whose version is not the one that the step expects.
	Apply(ctx context.Context, s effect.Step, keep journal.ContentStore) effect.Result
}

// ToolReverter reverts effects outside handles, by the tool's own Revert.
// Package agent implements it.
type ToolReverter interface {
	// CanRevert reports whether the call's tool can be found and declares a
	// Revert. If not, why is the reason.
	CanRevert(ctx context.Context, c Call) (ok bool, why string)
	// RevertCall runs the tool's Revert. rec records its changes through
	// handles under undoCall. A nil error means that the effect is gone,
	// ErrRevertUnknown that it cannot be determined. After a crash RevertCall
	// is called again with the same key.
	RevertCall(ctx context.Context, rec Recorder, c Call, undoCall, key string) error
}

// ErrRevertUnknown is returned by a ToolReverter that cannot determine whether
// the effect is gone.
var ErrRevertUnknown = errors.New("it is unknown whether the effect was reverted")

// ErrToolNotFound is returned by a Prober if the call's tool is not available.
// Another program can still have the tool.
var ErrToolNotFound = errors.New("the tool is not available in this program")

// Prober finds whether the effect of an interrupted or a reverted call is
// present, by the tool's own Verify. Package agent implements it. The journal
// keeps the returned value, except OK and Why. The zero Verified says that the
// tool has no Verify.
type Prober interface {
	// Probe checks a call whose process died.
	Probe(ctx context.Context, c Call) (record.Verified, error)
	// ProbeReverted checks a reverted call. If the effect is applied or
	// partial, it is still present, even if a Revert returned no error.
	ProbeReverted(ctx context.Context, c Call) record.Verified
}

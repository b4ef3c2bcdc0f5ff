package revert

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Scheme knows one kind of resource: it reads the changes that its handle
// recorded and takes them back. Implementations are safe for concurrent use and
// keep no state of their own between calls: what they need is in the change.
//
// A scheme that can do many steps at less cost than one by one, since they share what
// makes them durable, also has
//
//	ApplyAll(ctx context.Context, steps []Step, keep Keeper) []Result
//
// which does them in their order, each by the rules of Apply, with one result for each.
//
// One that cannot always keep what a step displaces also has
//
//	Keeps(s Step) bool
//
// A step that it does not keep is never forced: what somebody else left would be lost.
type Scheme interface {
	// Name is the value of Change.Scheme that belongs to this scheme.
	Name() string
	// Settle brings the resource of a change that was interrupted into a state
	// that a plan can start from (it withdraws half-made files and puts back
	// what it displaced but did not own), and returns the version there now.
	Settle(ctx context.Context, c effect.Change) (effect.Token, error)
	// Plan looks at the world and says, in the order to be followed, what
	// taking the changes of one call back means. Content that a step is going
	// to displace is kept first, so that the step can itself be taken back.
	Plan(ctx context.Context, changes []effect.Change, keep journal.ContentStore) ([]effect.Step, []journal.Blob, error)
	// Apply does one planned step by check-and-swap: it MUST leave a resource
	// alone whose version is not the one that the step expects.
	Apply(ctx context.Context, s effect.Step, keep journal.ContentStore) effect.Result
}

// ToolReverter takes back effects outside handles, by the tool's own Revert. Package
// agent gives it.
type ToolReverter interface {
	// CanRevert reports whether the call's tool is found again and declares a
	// Revert. A reason is given for no.
	CanRevert(ctx context.Context, c Call) (ok bool, why string)
	// RevertCall runs it. What it does through handles is recorded by rec under
	// undoCall. A nil error means that the effect is gone, ErrRevertUnknown that
	// nobody can tell. It is called again with the same key after a crash.
	RevertCall(ctx context.Context, rec Recorder, c Call, undoCall, key string) error
}

// ErrRevertUnknown is what an Undoer returns when it cannot tell whether the effect
// is gone.
var ErrRevertUnknown = errors.New("it cannot be told whether the effect is gone")

// ErrToolNotFound is what a Prober returns when the call's tool is not at hand: another
// program may still be able to tell.
var ErrToolNotFound = errors.New("its tool is not among the tools here")

// Prober looks whether the effect of a call is there, by the tool's own Verify:
// of an interrupted one, and of one that was taken back. Package agent gives it.
// What it returns is what the journal keeps of the look, OK and Why aside; the
// zero Verified says that the tool has no Verify.
type Prober interface {
	// Probe looks at a call whose process died.
	Probe(ctx context.Context, c Call) (record.Verified, error)
	// ProbeReverted looks after an undo. What is applied or partial is still there,
	// whatever a Revert said.
	ProbeReverted(ctx context.Context, c Call) record.Verified
}

// Finding is what a probe found out.
type Finding string

// The findings. The empty finding is CannotTell.
const (
	CannotTell Finding = "cannot_tell"
	Applied    Finding = "applied"
	Partial    Finding = "partial"
	AbsentYet  Finding = "absent"
)

package revert

import (
	"context"
	"errors"
	"io"
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
	Settle(ctx context.Context, c Change) (Token, error)
	// Plan looks at the world and says, in the order to be followed, what
	// taking the changes of one call back means. Content that a step is going
	// to displace is kept first, so that the step can itself be taken back.
	Plan(ctx context.Context, changes []Change, keep Keeper) ([]Step, []Blob, error)
	// Apply does one planned step by check-and-swap: it MUST leave a resource
	// alone whose version is not the one that the step expects.
	Apply(ctx context.Context, s Step, keep Keeper) Result
}

// Keeper takes content in and gives it back; a Journal is one.
type Keeper interface {
	Keep(ctx context.Context, r io.Reader) (Blob, error)
	Open(ctx context.Context, ref BlobRef) (io.ReadCloser, error)
}

// Step is one resource to be taken back: the planned outcome and, where
// something is to be done, the counter-change. A counter-change is a Change: its
// Pre is what is there now, its Post what will be there again.
type Step struct {
	Of     []int       `json:"of"`               // numbers of the changes it takes back
	Plan   UndoOutcome `json:"plan"`             // restored: do Change; already, conflict, failed: nothing is done
	Change Change      `json:"change"`           // the counter-change; without effect unless Plan is restored
	Forced bool        `json:"forced,omitempty"` // what it displaces is somebody else's
	Why    string      `json:"why,omitempty"`
}

// UndoOutcome is what became of taking one change back.
type UndoOutcome string

// The outcomes of an undo. The empty outcome counts as UndoUnknown.
const (
	Restored    UndoOutcome = "restored" // the earlier version is there again
	Already     UndoOutcome = "already"  // it was there before the undo began
	Conflict    UndoOutcome = "conflict" // somebody else's version is there; left alone
	UndoFailed  UndoOutcome = "failed"   // there was no way back, or it did not work
	UndoUnknown UndoOutcome = "unknown"  // cannot be told
)

// Clean reports whether nothing of the effect is left.
func (o UndoOutcome) Clean() bool { return o == Restored || o == Already }

// Result is what became of one resource.
type Result struct {
	Resource string      `json:"resource"`
	Outcome  UndoOutcome `json:"outcome"`
	Now      Token       `json:"now,omitempty"`    // version there afterwards, where known
	Forced   bool        `json:"forced,omitempty"` // it displaced what somebody else had left, which is kept
	Why      string      `json:"why,omitempty"`    // for people: what was found, and what to do
}

// Undoer takes back effects outside handles, by the tool's own Revert. Package
// agent gives it.
type Undoer interface {
	// CanUndo reports whether the call's tool is found again and declares a
	// Revert. A reason is given for no.
	CanUndo(ctx context.Context, c Call) (ok bool, why string)
	// Undo runs it. What it does through handles is recorded by rec under
	// undoCall. A nil error means that the effect is gone, ErrUndoUnknown that
	// nobody can tell. It is called again with the same key after a crash.
	Undo(ctx context.Context, rec Recorder, c Call, undoCall, key string) error
}

// ErrUndoUnknown is what an Undoer returns when it cannot tell whether the effect
// is gone.
var ErrUndoUnknown = errors.New("it cannot be told whether the effect is gone")

// ErrNoTool is what a Prober returns when the call's tool is not at hand: another
// program may still be able to tell.
var ErrNoTool = errors.New("its tool is not among the tools here")

// Prober looks whether the effect of a call is there, by the tool's own Verify:
// of an interrupted one, and of one that was taken back. Package agent gives it.
// What it returns is what the journal keeps of the look, OK and Why aside; the
// zero Verified says that the tool has no Verify.
type Prober interface {
	// Probe looks at a call whose process died.
	Probe(ctx context.Context, c Call) (Verified, error)
	// Gone looks after an undo. What is applied or partial is still there,
	// whatever a Revert said.
	Gone(ctx context.Context, c Call) Verified
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

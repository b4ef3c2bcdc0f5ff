package ctxperm

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/perm"
)

// Errors that tools and handles distinguish with errors.Is.
var (
	// ErrDenied says that a grant, the policy or an approver refused an access.
	ErrDenied = callstate.ErrDenied
	// ErrClosed says that the call of the context or permit has ended, or that
	// the context or permit belongs to no call.
	ErrClosed = callstate.ErrClosed
	// ErrInvalid says that an argument is invalid before any policy decision,
	// such as a path outside its root.
	ErrInvalid = callstate.ErrInvalid
	// ErrNoDriver says that the runtime has no driver for the handle.
	ErrNoDriver = errors.New("the runtime has no driver for this handle")
)

// ToolContext is the authority of one call while the call runs. Every operation
// refuses the zero ToolContext. Copies share one authority. Its methods are
// safe for concurrent use.
type ToolContext struct{ call *callstate.Call }

// Call describes the call that a ToolContext belongs to.
type Call struct {
	ID        string         // same ID as in the journal
	Key       string         // operation key: the same for each attempt at this call, so that a service can detect a repeat
	Tool      string         // tool name
	Txn       string         // transaction ID
	Session   string         // session ID
	Principal perm.Principal // principal that makes the call
}

// Call returns the call that the context belongs to, or the zero Call for a
// zero context.
func (tc ToolContext) Call() Call {
	if tc.call == nil {
		return Call{}
	}
	cfg := tc.call.Config()
	return Call{
		ID: cfg.ID, Key: cfg.Key, Tool: cfg.Tool, Principal: cfg.Principal.Clone(),
		Txn: cfg.Recorder.Txn(), Session: cfg.Recorder.Session(),
	}
}

// Note records a value for the tool's Revert, such as the ID of what the tool
// created. The value is durable when Note returns. It must marshal to JSON. A
// second note with the same key replaces the first.
func (tc ToolContext) Note(ctx context.Context, key string, value any) error {
	op, err := tc.call.Enter(ctx)
	if err != nil {
		return err
	}
	defer op.Leave()
	return tc.call.Note(ctx, key, value)
}

// Progress reports the progress of the call, in any unit. Total 0 means
// unknown.
func (tc ToolContext) Progress(done, total float64, message string) {
	if tc.call != nil {
		tc.call.Progress(done, total, message)
	}
}

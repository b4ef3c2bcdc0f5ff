package ctxperm

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/perm"
)

// The conditions that tools and handles tell apart with errors.Is.
var (
	// ErrDenied: a grant, the policy or an approver refused an access.
	ErrDenied = callstate.ErrDenied
	// ErrClosed: the context or permit belongs to a call that has ended, or to
	// none.
	ErrClosed = callstate.ErrClosed
	// ErrInvalid: an argument that no policy would be asked about, such as a
	// path outside its root.
	ErrInvalid = callstate.ErrInvalid
	// ErrNoDriver: the runtime was given nothing that a handle could work with.
	ErrNoDriver = errors.New("the runtime has no driver for this handle")
)

// ToolContext is the authority of one call while it runs. The zero ToolContext
// is refused everywhere. Copies are the same authority. Its methods are safe
// for concurrent use.
type ToolContext struct{ call *callstate.Call }

// New wraps the live state of a call. Only this module can have one.
func New(c *callstate.Call) ToolContext { return ToolContext{call: c} }

// Call describes the call that a ToolContext belongs to.
type Call struct {
	ID        string         // as in the journal
	Key       string         // operation key: the same for each attempt at this call, for services that can tell a repeat
	Tool      string         // name
	Txn       string         // transaction id
	Session   string         // session id
	Principal perm.Principal // who asks
}

// Call returns what the context belongs to; the zero Call for a zero context.
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

// Note records something that the tool's Revert will want to know, such as the
// id of what it created. It is durable when Note returns. The value must
// marshal to JSON; a second note under the same key replaces the first.
func (tc ToolContext) Note(ctx context.Context, key string, value any) error {
	op, err := tc.call.Enter(ctx)
	if err != nil {
		return err
	}
	defer op.Leave()
	return tc.call.Note(ctx, key, value)
}

// Progress reports how far the call is, in any unit; total 0 is "not known".
func (tc ToolContext) Progress(done, total float64, message string) {
	if tc.call != nil {
		tc.call.Progress(done, total, message)
	}
}

// CallState opens the inside for packages of this module.
func (tc ToolContext) CallState(k callstate.ModuleKey) *callstate.Call {
	if !k.Valid() {
		return nil
	}
	return tc.call
}

package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// CallOption configures one call.
type CallOption func(*callConfig)

type callConfig struct {
	id       string
	named    bool
	progress func(tool.Progress)
	begun    func(call string, keep func(context.Context) error, note func(ctx context.Context, key string, value any) error)
	asked    func(ctx context.Context, ask ctxperm.ApprovalRequest)
}

func configured(opts []CallOption) (c callConfig) {
	for _, o := range opts {
		o(&c)
	}
	return c
}

// OnCallProgress sets a listener for the progress of this call, beside
// OnProgress for all calls. The runtime calls it on the call's own goroutine,
// so it should return at once. A call that is answered from the journal reports
// no progress.
func OnCallProgress(listen func(tool.Progress)) CallOption {
	return func(c *callConfig) { c.progress = listen }
}

// OnStart sets a listener that is called when the code of the call is about to
// run. The runtime calls it on the call's own goroutine, with the call's ID, so
// it should return at once. keep makes the start of the call durable. Otherwise
// the start is recorded with the first change or with the end. After keep the
// journal knows the call, even if this process dies. note records a note of the
// call, as ctxperm.ToolContext.Note does for its tool. Both functions can be
// called at any time, and fail once the code has ended.
func OnStart(listen func(call string, keep func(context.Context) error, note func(ctx context.Context, key string, value any) error)) CallOption {
	return func(c *callConfig) { c.begun = listen }
}

// OnAsked sets a listener for the approval requests that the call waits for
// while it runs. Only a call that can have had an effect, in a runtime with
// SuspendForApproval, waits this way. The request is then on the journal, and
// Runtime.Answer answers it; tool.Limits.Answer bounds the wait. The runtime
// calls listen on its own goroutine. Its context ends when the wait ends.
func OnAsked(listen func(ctx context.Context, ask ctxperm.ApprovalRequest)) CallOption {
	return func(c *callConfig) { c.asked = listen }
}

// WithCallID sets the call ID that the host program chose, such as the one that
// a model sent: 1 to 256 bytes of valid UTF-8 without a zero byte. Within a
// session one ID identifies one call. If the ID is used again with the same tool
// and input, Invoke runs nothing and returns the recorded outcome, also in a
// later transaction. It waits while the first call is in flight. Another tool or
// input is invalid.
func WithCallID(id string) CallOption {
	return func(c *callConfig) { c.id, c.named = id, true }
}

// CallID returns the ID under which the journal records a call that was given
// this ID with WithCallID.
func (s *Session) CallID(given string) string {
	sum := canon.Sum("remit/call-id/v1", []byte(s.id), []byte(given))
	// 128 bits: a caller who chooses IDs cannot find a collision.
	return "c_" + strings.TrimPrefix(string(sum), "sha256:")[:32]
}

// runOnce runs a call with an ID of the host program, unless it ran before.
func (tx *Txn) runOnce(ctx context.Context, req pipeline.Request, given string) (tool.Outcome, error) {
	if given == "" || len(given) > 256 || !utf8.ValidString(given) || strings.ContainsRune(given, 0) {
		err := errors.New("a call id has 1 to 256 bytes of valid UTF-8")
		return tx.refused(req.Tool, tool.StatusInvalid, err), fmt.Errorf("%w: %w", tool.ErrInvalid, err)
	}
	req.ID = tx.s.CallID(given)
	leave, err := tx.s.rt.named.enter(ctx, tx.s.rt.services.Host, req.ID)
	if err != nil {
		return pipeline.NotBegun(ctx, req.Request, tx.ID(), err)
	}
	defer leave()
	_, c, err := revert.LoadCall(ctx, tx.s.rt.journal, req.ID)
	switch {
	case err == nil:
		// The process that wrote the end can have died before its barrier, and
		// the outcome is now returned.
		//mutant:barrier
		if err := tx.s.rt.journal.Append(ctx, journal.Batch{Durable: true}); err != nil {
			return tx.refused(req.Tool, tool.StatusUnknown, err), fmt.Errorf("%w: the journal could not be written: %w", tool.ErrUnknown, err)
		}
		out := tx.line.RecordedOutcome(c, req)
		return out, out.Err()
	case !errors.Is(err, journal.ErrNotFound):
		// It is unknown whether the call ran, so it does not run.
		return tx.refused(req.Tool, tool.StatusUnknown, err), fmt.Errorf("%w: the journal could not be read: %w", tool.ErrUnknown, err)
	}
	return tx.run(ctx, req)
}

// callIDLocks allows one call in flight for each ID.
type callIDLocks struct {
	mu    sync.Mutex // never held across a wait
	calls map[string]*callIDWaiter
}

type callIDWaiter struct {
	lock *host.Lock
	n    int // callers that hold the lock or wait for it
}

func (n *callIDLocks) enter(ctx context.Context, h host.Host, id string) (leave func(), err error) {
	n.mu.Lock()
	if n.calls == nil {
		n.calls = map[string]*callIDWaiter{}
	}
	w, ok := n.calls[id]
	if !ok {
		w = &callIDWaiter{lock: host.NewLock(h, "session.call")}
		n.calls[id] = w
	}
	w.n++
	n.mu.Unlock()
	if err := w.lock.Lock(ctx); err != nil {
		n.drop(id, w)
		return nil, err
	}
	return func() {
		w.lock.Unlock()
		n.drop(id, w)
	}, nil
}

func (n *callIDLocks) drop(id string, w *callIDWaiter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w.n--; w.n == 0 {
		delete(n.calls, id)
	}
}

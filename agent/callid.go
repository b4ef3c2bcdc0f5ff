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
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// CallOption configures one call.
type CallOption func(*callConfig)

type callConfig struct {
	given    string
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

// OnCallProgress listens to what the call reports, beside OnProgress, which listens to all calls. It is called on the
// call's own goroutine and should return at once. A call that is answered from the journal reports nothing.
func OnCallProgress(listen func(tool.Progress)) CallOption {
	return func(c *callConfig) { c.progress = listen }
}

// OnStart listens to the moment at which the code of the call is about to run, and is told the call's id. It is called on the
// call's own goroutine and should return at once. Keep makes it durable that the call has begun, which else comes to the journal
// with the first change, or with the end: from then on the journal knows the call, whatever becomes of this process. Note notes
// something of the call, as ctxperm.ToolContext.Note does for its tool. Both can be called at any time, and fail once the code has ended.
func OnStart(listen func(call string, keep func(context.Context) error, note func(ctx context.Context, key string, value any) error)) CallOption {
	return func(c *callConfig) { c.begun = listen }
}

// WithAsked listens to questions with which the call waits while it runs: those of a call that may have had an effect, in a runtime
// with Wait. The question is on the journal by then, and Runtime.Answer answers it; see tool.Limits.Answer for how long. Listen is
// called on a goroutine of its own, and its context ends when the call waits no more.
func WithAsked(listen func(ctx context.Context, ask ctxperm.ApprovalRequest)) CallOption {
	return func(c *callConfig) { c.asked = listen }
}

// WithCallID names a call by an id that the host gives, such as the one a model
// sent with it: at most 256 bytes of valid UTF-8. Within a session one id is one
// call: asked again with the same tool and input, Invoke returns the outcome
// that is on the journal and runs nothing, also in a later transaction, and waits
// while the first is in flight; another tool or input is invalid.
func WithCallID(id string) CallOption {
	return func(c *callConfig) { c.given, c.named = id, true }
}

// CallID is the id under which the journal knows the call that the host named
// by WithCallID.
func (s *Session) CallID(given string) string {
	sum := canon.Sum("remit/call-id/v1", []byte(s.id), []byte(given))
	// 128 bits: nobody who chooses ids finds two that meet.
	return "c_" + strings.TrimPrefix(string(sum), "sha256:")[:32]
}

// runOnce runs a call that the host named, unless it ran before.
func (tx *Txn) runOnce(ctx context.Context, req tool.Request, given string) (tool.Outcome, error) {
	if given == "" || len(given) > 256 || !utf8.ValidString(given) || strings.ContainsRune(given, 0) {
		err := errors.New("a call id has 1 to 256 bytes of valid UTF-8")
		return tx.refused(req.Tool, tool.StatusInvalid, err), fmt.Errorf("%w: %w", tool.ErrInvalid, err)
	}
	req.ID = tx.s.CallID(given)
	leave, err := tx.s.rt.named.enter(ctx, tx.s.rt.host, req.ID)
	if err != nil {
		return req.NotBegun(ctx, tx.ID(), err)
	}
	defer leave()
	_, c, err := revert.LoadCall(ctx, tx.s.rt.journal, req.ID)
	switch {
	case err == nil:
		// Whoever wrote its end may have died before his barrier, and now somebody is
		// told of it.
		if err := tx.s.rt.journal.Append(ctx, journal.Batch{Durable: true}); err != nil {
			return tx.refused(req.Tool, tool.StatusUnknown, err), fmt.Errorf("%w: the journal could not be written: %w", tool.ErrUnknown, err)
		}
		out := tx.line.RecordedOutcome(c, req)
		return out, out.Err()
	case !errors.Is(err, journal.ErrNotFound):
		// Whether it ran cannot be told, so it does not run.
		return tx.refused(req.Tool, tool.StatusUnknown, err), fmt.Errorf("%w: the journal could not be read: %w", tool.ErrUnknown, err)
	}
	return tx.run(ctx, req)
}

// callIDLocks lets one call of each id be in flight.
type callIDLocks struct {
	mu    sync.Mutex // never held across a wait
	calls map[string]*callIDWaiter
}

type callIDWaiter struct {
	lock *host.Lock
	n    int // callers that hold or wait for it
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

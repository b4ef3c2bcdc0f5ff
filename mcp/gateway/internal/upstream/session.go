package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// attempt is one attempt to connect to a server. Several calls can wait for it,
// and none of them ends it, so later calls profit from it.
type attempt struct {
	begun time.Time
	over  chan struct{} // closed at the end of the attempt
	s     *Conn         // written before over is closed
	err   error
}

// Session returns the connection. It connects if there is none.
func (u *Upstream) Session(ctx context.Context) (*Conn, error) {
	if s := u.Current(); s != nil {
		return s, nil
	}
	t, err := u.startAttempt()
	if err != nil {
		return nil, err
	}
	if t.wait(ctx, u.Shared.Life) {
		return t.s, t.err
	}
	if cause := context.Cause(u.Shared.Life); cause != nil { // Close waits for this call
		return nil, &unavailableError{server: u.Server.Name, err: cause}
	}
	waited := u.Shared.Now().Sub(t.begun).Round(100 * time.Millisecond)
	return nil, &unavailableError{server: u.Server.Name, err: fmt.Errorf("it was started %s ago and has not answered: %w", waited, context.Cause(ctx))}
}

// maxWaitMargin bounds how long before its deadline a call stops waiting for a
// server.
const maxWaitMargin = time.Second

var errNoTime = errors.New("the call has no more time")

// withWaitTimeout returns a context that ends a while before the timeout of a call. A
// call that still waits for its server has no effect; one that times out may
// have any. Zero means the default of the runtime, which is longer than a
// start.
func withWaitTimeout(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit-min(limit/4, maxWaitMargin), errNoTime)
}

// wait waits for the end of an attempt, and reports whether it has ended.
func (t *attempt) wait(ctx, life context.Context) bool {
	select {
	case <-t.over:
	case <-ctx.Done():
	case <-life.Done():
	}
	select {
	case <-t.over:
		return true
	default:
		return false
	}
}

// startAttempt returns the running attempt, or begins one. It returns an error
// during the backoff.
func (u *Upstream) startAttempt() (*attempt, error) {
	if err := u.Shared.Closed(); err != nil {
		return nil, &unavailableError{server: u.Server.Name, err: err}
	}
	u.mu.Lock()
	t, rest, why := u.trying, u.notBefore.Sub(u.Shared.Now()), u.why
	u.mu.Unlock()
	if t != nil {
		return t, nil
	}
	if rest > 0 && !u.renewed(why) {
		return nil, &unavailableError{server: u.Server.Name, err: why, delay: rest}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.trying == nil {
		u.trying = &attempt{begun: u.Shared.Now(), over: make(chan struct{})}
		go u.try(u.trying)
	}
	return u.trying, nil
}

// try connects, unless there is a connection.
func (u *Upstream) try(t *attempt) {
	u.gate <- struct{}{} // Close holds the gate while it ends the connection
	defer func() { <-u.gate }()
	if t.s = u.Current(); t.s == nil {
		if t.s, t.err = u.connect(u.Shared.Life); t.err != nil {
			u.startBackoff(t.err)
			t.err = &unavailableError{server: u.Server.Name, err: t.err}
		}
	}
	u.mu.Lock()
	u.trying = nil
	u.mu.Unlock()
	close(t.over)
}

// AwaitDefinitions waits until the definitions of a server are in the mirror.
// The error says why the server is unknown.
func (u *Upstream) AwaitDefinitions(ctx context.Context) error {
	u.mu.Lock()
	t := u.trying
	u.mu.Unlock()
	if t != nil {
		t.wait(ctx, u.Shared.Life)
	}
	if !u.Unknown() {
		return nil
	}
	_, err := u.Session(ctx)
	return err
}

// Unknown reports whether a server has no pins and has not responded.
func (u *Upstream) Unknown() bool {
	_, pinned := u.Shared.Pins.Server(u.Server.Name)
	return !pinned && !u.Declared().Known
}

// retryDue reports whether a retry is due for a server that never responded, or
// that has gone while its resources are subscribed to.
func (u *Upstream) retryDue() bool {
	wanted := u.Current() == nil && len(u.watches.uris()) > 0
	u.mu.Lock()
	missing, rests, why := !u.has.Known || wanted, u.notBefore.After(u.Shared.Now()), u.why
	u.mu.Unlock()
	return missing && (!rests || u.renewed(why))
}

// Retry begins an attempt to connect if one is due. It does not wait for the
// end of the attempt. Calls report its error.
func (u *Upstream) Retry() {
	if u.retryDue() {
		_, _ = u.startAttempt()
	}
}

// unavailableError says that a server cannot be reached, and that nothing was
// sent to it.
type unavailableError struct {
	server string
	err    error
	delay  time.Duration
}

// Error says why the server cannot be reached, and when the gateway tries
// again.
func (e *unavailableError) Error() string {
	if login := LoginOf(e.err); login != nil {
		return login.Error()
	}
	if e.delay > 0 {
		return fmt.Sprintf("server %s is down, and is tried again in %s: %v", e.server, e.delay.Round(time.Second), e.err)
	}
	return fmt.Sprintf("server %s cannot be reached: %v", e.server, e.err)
}

// Unwrap returns the reason.
func (e *unavailableError) Unwrap() error { return e.err }

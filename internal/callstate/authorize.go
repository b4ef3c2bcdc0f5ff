package callstate

import (
	"context"
	"errors"
	"slices"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
)

// Ruling is the policy decision about one access that a running call requests:
// it is allowed, or needs an approval. A denial is a DeniedError.
type Ruling struct {
	Access   perm.ResourceAccess
	Decision perm.Decision
	Terms    Obligations
}

// Asks reports whether the access needs an approval.
func (r Ruling) Asks() bool { return r.Decision.Effect() == perm.Ask }

// AuthorizeFunc decides one access that a running call requests. It returns a
// DeniedError for a denial.
type AuthorizeFunc func(ctx context.Context, a perm.ResourceAccess) (Ruling, error)

// Approve requests one approval for all accesses that the policy asks about. It
// returns who approved which of them, or a DeniedError for a rejection. It
// returns an error that wraps ErrWaits if the call was suspended
// (Call.Suspend).
type Approve func(ctx context.Context, c *Call, asked []Ruling) ([]*record.Approved, error)

// Survey collects the accesses that one operation needs. Need decides each of
// them without an approval request. Grant then requests one approval for all
// that need it. So an operation on many resources knows all its needs before
// the request, and nothing has changed by then. A Survey belongs to one
// goroutine.
type Survey struct {
	call  *Call
	asked []Ruling
}

// Survey begins an operation that needs several accesses.
func (c *Call) Survey() *Survey { return &Survey{call: c} }

// Authorize decides exact accesses. It grants those that were decided before
// the call, and decides all others now, with one approval request if any is
// necessary. A denied access that changes a resource marks the call.
func (c *Call) Authorize(ctx context.Context, accesses ...perm.ResourceAccess) error {
	s := c.Survey()
	for _, a := range accesses {
		if err := s.Need(ctx, a); err != nil {
			return err
		}
	}
	return s.Grant(ctx)
}

// Asks reports whether Grant must request an approval.
func (s *Survey) Asks() bool { return len(s.asked) > 0 }

// Need decides one access. It returns nil if the access is granted, or will be
// after Grant has returned nil.
func (s *Survey) Need(ctx context.Context, a perm.ResourceAccess) error {
	c := s.call
	if err := c.held(ctx, a); err != nil {
		return err
	}
	if err := c.checkPart(a); err != nil {
		return err
	}
	if err := c.checkPure(a); err != nil {
		return err
	}
	if c.granted(a) || slices.ContainsFunc(s.asked, func(r Ruling) bool { return r.Access == a }) {
		return nil
	}
	if err := c.cfg.Recorder.Host().Point(ctx, "line.gate"); err != nil {
		return err
	}
	r, err := c.cfg.Gate(ctx, a)
	if err == nil && r.Asks() {
		r.Access = a
		s.asked = append(s.asked, r)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.mark(err, a)
		return err
	}
	c.grant(a, r.Terms)
	return nil
}

// Grant requests the necessary approval. It blocks until the answer, or until
// the request expires.
func (s *Survey) Grant(ctx context.Context) error {
	c := s.call
	accesses := make([]perm.ResourceAccess, 0, len(s.asked))
	for _, r := range s.asked {
		accesses = append(accesses, r.Access)
	}
	return c.approveInside(ctx, accesses, func() ([]*record.Approved, error) {
		left := slices.DeleteFunc(s.asked, func(r Ruling) bool { return c.granted(r.Access) }) // granted meanwhile for another goroutine
		s.asked = nil
		if len(left) == 0 {
			return nil, nil
		}
		if c.cfg.Approve == nil {
			return nil, &DeniedError{Access: left[0].Access, Stage: "approver", Decision: left[0].Decision, Why: "the runtime has no approver", Unanswered: true}
		}
		approved, err := c.cfg.Approve(ctx, c, left)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, r := range left {
			c.grant(r.Access, r.Terms)
		}
		return approved, nil
	})
}

// AuthorizeChanges decides changes with known content: those of a program that
// has ended, and those of a handle that the exact access does not fully
// describe. After an error, none of them may happen.
func (c *Call) AuthorizeChanges(ctx context.Context, accesses []perm.ResourceAccess, facts []perm.ChangeFacts, preview func() string) error {
	if len(accesses) == 0 {
		return nil
	}
	if err := c.held(ctx, accesses[0]); err != nil {
		return err
	}
	for _, a := range accesses {
		if err := c.checkPure(a); err != nil {
			return err
		}
	}
	return c.approveInside(ctx, accesses, func() ([]*record.Approved, error) {
		if c.cfg.Changes == nil {
			return nil, &DeniedError{Access: accesses[0], Stage: "policy", Why: "the runtime has no policy for the changes of a program"}
		}
		if err := c.cfg.Recorder.Host().Point(ctx, "line.changes"); err != nil {
			return nil, err
		}
		return c.cfg.Changes(ctx, c, ProposedChanges{accesses, facts, c.Terms(), preview})
	})
}

// noWaitKey is the key of WithoutWait in a context.
type noWaitKey struct{}

// WithoutWait returns a context in which a running call does not wait for an
// answer in the journal: its client waits for the call meanwhile, and cannot
// show the request.
func WithoutWait(ctx context.Context) context.Context {
	return context.WithValue(ctx, noWaitKey{}, true)
}

// CannotWait reports whether a context is one of WithoutWait.
func CannotWait(ctx context.Context) bool {
	no, _ := ctx.Value(noWaitKey{}).(bool)
	return no
}

// approveInside requests approvals for one goroutine of the call at a time. An
// approver answers one request at a time, and its answer can also cover the
// next.
func (c *Call) approveInside(ctx context.Context, accesses []perm.ResourceAccess, approve func() ([]*record.Approved, error)) error {
	if len(accesses) == 0 {
		return nil
	}
	resume := c.cfg.Clock.Pause()
	defer resume()
	asks := c.askLock()
	if err := asks.Lock(ctx); err != nil {
		return err
	}
	defer asks.Unlock()
	if err := c.Waits(); err != nil {
		return err
	}
	approved, err := approve()
	if err == nil {
		err = c.approve(ctx, approved)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range accesses {
		c.mark(err, a)
	}
	return err
}

// granted reports whether an access is granted.
func (c *Call) granted(a perm.ResourceAccess) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.decided[a]
}

// grant adds an access; the caller holds the lock.
func (c *Call) grant(a perm.ResourceAccess, t Obligations) {
	c.decide(a)
	c.terms = c.terms.And(t)
}

// approve records who approved accesses of a running call. It records that with
// the start of the call if that is not written yet, and otherwise now, before
// any effect that it permits.
func (c *Call) approve(ctx context.Context, approved []*record.Approved) error {
	if len(approved) == 0 {
		return nil
	}
	if err := c.order(ctx); err != nil {
		return err
	}
	defer c.writes.Unlock()
	c.mu.Lock()
	if c.started != nil {
		c.approved = append(c.approved, approved...)
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()
	//mutant:barrier
	w := revert.Write{Durable: true}
	for _, a := range approved {
		w.Records = append(w.Records, revert.CallRecord{Call: c.cfg.ID, Body: a})
	}
	return c.cfg.Recorder.Write(ctx, w)
}

// Approved returns the approvals during the call, while its start is not
// written.
func (c *Call) Approved() []*record.Approved {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.approved)
}

// Suspend ends a call without effects, so that it can run again after an
// approval. From here on the call changes nothing, and requests no approval.
// Suspend returns false and does nothing if the start of the call is written,
// because the call cannot run again then. The error wraps ErrWaits.
func (c *Call) Suspend(ctx context.Context, why error) bool {
	if err := c.order(ctx); err != nil {
		return errors.Is(err, ErrWaits)
	}
	defer c.writes.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started == nil {
		return false
	}
	c.waits = why
	return true
}

// Waits returns the error of a call that waits for an approval, for any result
// of its tool; nil: it does not wait.
func (c *Call) Waits() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waits
}

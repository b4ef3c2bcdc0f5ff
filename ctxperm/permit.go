package ctxperm

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// Permit proves that exact accesses of one call were authorized. It carries the
// recorder of the changes of that call. It is valid until its operation ends.
// Only Authorize creates one. Every operation refuses the zero Permit.
type Permit struct {
	op       *callstate.Op
	accesses []perm.ResourceAccess
}

// Authorize decides exact accesses and returns the permit for one operation.
// The caller must call End. Accesses that were decided before the call are
// granted at once. Authorize decides any other access now, within the needs of
// the tool and the grant of the session. A denial is ErrDenied and names its
// reason. A denied access that changes a resource ends the whole call as
// denied.
func Authorize(ctx context.Context, tc ToolContext, accesses ...perm.ResourceAccess) (Permit, error) {
	if len(accesses) == 0 {
		return Permit{}, fmt.Errorf("authorize: %w: no access was named", ErrInvalid)
	}
	op, err := tc.call.Enter(ctx)
	if err != nil {
		return Permit{}, err
	}
	given := false
	defer func() {
		if !given { // also if the decision panics: an operation that does not leave keeps the call from ending
			op.Leave()
		}
	}()
	if err := tc.call.Authorize(ctx, accesses...); err != nil {
		return Permit{}, err
	}
	given = true
	return Permit{op: op, accesses: slices.Clone(accesses)}, nil
}

// End ends the operation. A call does not end before its operations do, so the
// caller must end every permit. It may do so more than once. Every operation
// refuses an ended permit.
func (p Permit) End() { p.op.Leave() }

// Covers reports whether the permit holds exactly this access.
func (p Permit) Covers(a perm.ResourceAccess) bool {
	return p.op.Call() != nil && slices.Contains(p.accesses, a)
}

// RecordChange makes changes durable before their effects begin and returns
// them with their numbers. The permit must cover each resource with an action
// that changes it. RecordChange returns journal.ErrClaimed if another open
// transaction claims a resource. After an error the effect must not happen.
func (p Permit) RecordChange(ctx context.Context, changes []effect.Change, blobs ...journal.Blob) ([]effect.Change, error) {
	call, leave, err := p.op.Hold() // keeps the call from ending between the check and the record
	if err != nil {
		return nil, err
	}
	defer leave()
	written := make(map[string]bool, len(p.accesses)) // a program can make many changes
	for _, a := range p.accesses {
		written[a.Resource] = written[a.Resource] || !a.Action.Observes()
	}
	for _, c := range changes {
		//mutant:check
		if !written[c.Resource] {
			return nil, fmt.Errorf("change of %s: %w: the permit was not given for it", c.Resource, ErrDenied)
		}
	}
	return call.Intend(ctx, changes, blobs)
}

// LockResource waits until no other call of the transaction changes a resource.
// It keeps the lock until this call has ended. Other operations of this call
// wait for the end of the permit. So a change starts from the version that the
// handle read, and Verify sees what the change left. Locking the same resource
// twice waits for itself. If two calls would wait for each other, one of them
// is refused. If the runtime has a claim timeout, LockResource also waits for
// another transaction that claims the resource, and then claims it.
func (p Permit) LockResource(ctx context.Context, resource string) error {
	call := p.op.Call()
	if call == nil {
		return ErrClosed
	}
	release, err := call.Config().Locks.Take(ctx, call.Config().ID, resource)
	if err != nil {
		return err
	}
	p.op.Then(release)
	return call.Await(ctx, resource)
}

// Claim claims a resource for the transaction without a change, so that no
// other transaction removes what the call found there. It fails as RecordChange
// does if another transaction claims the resource.
func (p Permit) Claim(ctx context.Context, resource string) error {
	call, leave, err := p.op.Hold()
	if err != nil {
		return err
	}
	defer leave()
	if !p.writes(resource) {
		return fmt.Errorf("claim on %s: %w: the permit was not given for it", resource, ErrDenied)
	}
	return call.Claim(ctx, resource)
}

// StoreContent stores content that the inverse of a change needs. Pass the blob
// to the RecordChange call whose change names it.
func (p Permit) StoreContent(ctx context.Context, r io.Reader) (journal.Blob, error) {
	call := p.op.Call()
	if call == nil {
		return journal.Blob{}, ErrClosed
	}
	return call.Config().Recorder.Journal().StoreContent(ctx, r)
}

// RecordVersions sets the version that a change left. Use it if RecordChange
// did not know that version, or with the version before the change if the
// effect did not happen.
func (p Permit) RecordVersions(n int, post effect.Token) {
	if call := p.op.Call(); call != nil {
		call.SetPostVersion(n, post)
	}
}

func (p Permit) writes(resource string) bool {
	return slices.ContainsFunc(p.accesses, func(a perm.ResourceAccess) bool {
		return a.Resource == resource && !a.Action.Observes()
	})
}

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

// Permit is proof that some exact accesses of one call were decided. It carries
// the recorder of that call's changes and works until the operation that it was
// made for is over. Only Authorize makes one; the zero Permit is refused.
type Permit struct {
	op       *callstate.Op
	accesses []perm.ResourceAccess
}

// Authorize decides exact accesses and returns the permit for one operation,
// which the caller must End. Accesses that were decided before the call are
// granted at once; any other is asked for now, within what the tool declared
// and the session holds. A refusal is ErrDenied and names its reason; a refused
// access that would have changed something ends the whole call as denied.
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
		if !given { // also when deciding panics: an operation left behind would keep the call from ending
			op.Leave()
		}
	}()
	if err := tc.call.Authorize(ctx, accesses...); err != nil {
		return Permit{}, err
	}
	given = true
	return Permit{op: op, accesses: slices.Clone(accesses)}, nil
}

// NewPermit makes a permit for accesses that were decided in another way: as what a
// program wants to change. Only this module can.
func NewPermit(k callstate.ModuleKey, op *callstate.Op, accesses ...perm.ResourceAccess) Permit {
	if !k.Valid() {
		return Permit{}
	}
	return Permit{op: op, accesses: slices.Clone(accesses)}
}

// End ends the operation. A call does not end before its operations have, so
// every permit must be ended, once or more often. An ended permit is refused.
func (p Permit) End() { p.op.Leave() }

// Covers reports whether the permit was given for exactly this access.
func (p Permit) Covers(a perm.ResourceAccess) bool {
	return p.op.Call() != nil && slices.Contains(p.accesses, a)
}

// RecordChange makes changes durable before their effects begin and returns them with
// their numbers. Each resource must be one that the permit was given for, with
// an action that changes something, and no other open transaction may hold it
// (journal.ErrClaimed). After an error no effect may happen.
func (p Permit) RecordChange(ctx context.Context, changes []effect.Change, blobs ...journal.Blob) ([]effect.Change, error) {
	call, leave, err := p.op.Hold() // so that the call does not end between the check and the record
	if err != nil {
		return nil, err
	}
	defer leave()
	written := make(map[string]bool, len(p.accesses)) // a program's changes are many
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

// LockResource waits until no other call of the transaction changes a resource, and
// keeps it so until the call has ended; other operations of this call come after
// the permit has. So what a handle reads of it is what its change starts from, and
// what Verify looks at is what the change left. Taking the same resource twice
// waits for itself; two calls that would wait for each other do not: one is
// refused. Where the runtime has patience, another transaction that holds the
// resource is waited for too, and it is claimed from here on.
func (p Permit) LockResource(ctx context.Context, resource string) error {
	call := p.op.Call()
	if call == nil {
		return ErrClosed
	}
	release, err := call.Config().Turns.Take(ctx, call.Config().ID, resource)
	if err != nil {
		return err
	}
	p.op.Then(release)
	return call.Await(ctx, resource)
}

// Claim holds a resource for the transaction although nothing is changed, so
// that no other one takes away what the call found there. It fails as Intend
// does where another transaction holds it.
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

// StoreContent takes content in that a change's way back needs; pass the blob to the
// Intend whose change names it.
func (p Permit) StoreContent(ctx context.Context, r io.Reader) (journal.Blob, error) {
	call := p.op.Call()
	if call == nil {
		return journal.Blob{}, ErrClosed
	}
	return call.Config().Recorder.Journal().StoreContent(ctx, r)
}

// RecordVersions notes the version that a change really left: one that Intend did not
// know, or the version from before where the change came to nothing.
func (p Permit) RecordVersions(n int, post effect.Token) {
	if call := p.op.Call(); call != nil {
		call.Landed(n, post)
	}
}

// CallState opens the inside for packages of this module.
func (p Permit) CallState(k callstate.ModuleKey) *callstate.Call {
	if !k.Valid() {
		return nil
	}
	return p.op.Call()
}

func (p Permit) writes(resource string) bool {
	return slices.ContainsFunc(p.accesses, func(a perm.ResourceAccess) bool {
		return a.Resource == resource && !a.Action.Observes()
	})
}

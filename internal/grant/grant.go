// Package grant holds what a session may access, and ends it.
package grant

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/perm"
)

// Grant is the set of accesses that a session holds. A session can narrow and
// delegate a grant but never widen it. A grant ends when it, or a grant that it
// was delegated from, expires, is revoked or is used up. The zero Grant holds
// nothing. Copies share one grant. A Grant is safe for concurrent use.
type Grant struct{ g *grant }

// Config configures a new grant.
type Config struct {
	ID      string // session ID
	Set     perm.Set
	Expires time.Time // expiry; zero: never
	Uses    int       // number of calls that may start; 0: unlimited
	Used    int       // number of calls that have started
	Parent  Grant     // the grant that this one was delegated from; zero: none
	Now     func() time.Time
	// CheckRevoked reports whether another process has revoked the grant, and
	// why. An error refuses the access. Nil: no other process can revoke it.
	CheckRevoked func(ctx context.Context, id string) (revoked bool, why string, err error)
	// Before returns how many calls the journal has that started under the grant
	// before a call whose start it has. Nil: no other process can use the grant.
	Before func(ctx context.Context, call string) (int, error)
}

type grant struct {
	Config

	mu      sync.Mutex // never held across a wait
	used    int
	revoked string // why the grant was revoked; empty: it was not
}

// New creates a grant. It returns the zero Grant without a clock. A delegated
// grant never holds more than its parent.
func New(c Config) Grant {
	if c.Now == nil {
		return Grant{}
	}
	return Grant{&grant{Config: c, used: c.Used}}
}

// ID returns the ID of the session that holds the grant.
func (g Grant) ID() string {
	if g.g == nil {
		return ""
	}
	return g.g.ID
}

// Allows reports whether the grant holds one exact access. It does not report
// whether the grant is still valid; see Check.
func (g Grant) Allows(a perm.ResourceAccess) bool {
	r, err := perm.ParseResource(a.Resource)
	return err == nil && g.AllowsResource(a.Action, r, a.Method)
}

// AllowsResource is Allows for a parsed resource.
func (g Grant) AllowsResource(action perm.Action, r perm.Resource, method string) bool {
	for at := g.g; at != nil; at = at.Parent.g {
		if !at.Set.AllowsResource(action, r, method) {
			return false
		}
	}
	return g.g != nil
}

// Set returns the accesses of the grant.
func (g Grant) Set() perm.Set {
	if g.g == nil {
		return perm.Set{}
	}
	return g.g.Set
}

// Check returns callstate.ErrDenied, with the reason, if the grant or one of its parents
// is no longer valid.
func (g Grant) Check(ctx context.Context) error {
	if g.g == nil {
		return fmt.Errorf("%w: nothing was granted", callstate.ErrDenied)
	}
	for at := g.g; at != nil; at = at.Parent.g {
		if err := at.check(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (g *grant) check(ctx context.Context) error {
	g.mu.Lock()
	revoked := g.revoked
	g.mu.Unlock()
	switch {
	case revoked != "":
		return fmt.Errorf("%w: the grant of session %s was revoked %s", callstate.ErrDenied, g.ID, revoked)
	case !g.Expires.IsZero() && !g.Now().Before(g.Expires):
		return fmt.Errorf("%w: the grant of session %s expired at %s", callstate.ErrDenied, g.ID, g.Expires.UTC().Format(time.RFC3339))
	case g.CheckRevoked == nil:
		return nil
	}
	gone, why, err := g.CheckRevoked(ctx, g.ID)
	if err != nil {
		return fmt.Errorf("%w: whether the grant of session %s still stands cannot be told: %w", callstate.ErrDenied, g.ID, err)
	}
	if gone {
		g.revoke(why)
		return fmt.Errorf("%w: the grant of session %s was revoked %s", callstate.ErrDenied, g.ID, why)
	}
	return nil
}

func (g *grant) revoke(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.revoked == "" {
		g.revoked = why
	}
}

// Revoke ends the grant in this process, with all grants delegated from it.
func (g Grant) Revoke(why string) {
	if g.g != nil {
		g.g.revoke(why)
	}
}

// Bounded reports whether the grant or one of its parents limits the number of
// calls.
func (g Grant) Bounded() bool {
	for at := g.g; at != nil; at = at.Parent.g {
		if at.Uses > 0 {
			return true
		}
	}
	return false
}

// Counted reports whether other processes can use up the grant or one of its
// parents. CheckStarted then decides about each call.
func (g Grant) Counted() bool {
	for at := g.g; at != nil; at = at.Parent.g {
		if at.Uses > 0 && at.Before != nil {
			return true
		}
	}
	return false
}

// CheckStarted returns callstate.ErrDenied, with the reason, if calls of other
// processes had used up the grant when a call started. The start of the call is
// on the journal.
func (g Grant) CheckStarted(ctx context.Context, call string) error {
	for at := g.g; at != nil; at = at.Parent.g {
		if at.Uses == 0 || at.Before == nil {
			continue
		}
		n, err := at.Before(ctx, call)
		if err != nil {
			return fmt.Errorf("%w: how often the grant of session %s was used cannot be told: %w", callstate.ErrDenied, at.ID, err)
		}
		if n >= at.Uses {
			return at.usedUp()
		}
	}
	return nil
}

func (g *grant) usedUp() error {
	return fmt.Errorf("%w: the grant of session %s is used up: it was for %d calls", callstate.ErrDenied, g.ID, g.Uses)
}

// Use counts one call against the grant and each of its parents: against all of
// them or none. The caller must call back if the call did not start.
func (g Grant) Use(ctx context.Context) (back func(), err error) {
	if err := g.Check(ctx); err != nil {
		return nil, err
	}
	if !g.Bounded() {
		return func() {}, nil
	}
	return g.take()
}

func (g Grant) take() (back func(), err error) {
	var taken []*grant
	back = func() {
		for _, at := range taken {
			at.mu.Lock()
			at.used--
			at.mu.Unlock()
		}
		taken = nil
	}
	for at := g.g; at != nil; at = at.Parent.g {
		at.mu.Lock()
		over := at.Uses > 0 && at.used >= at.Uses
		if !over {
			at.used++
		}
		at.mu.Unlock()
		if over {
			back()
			return nil, at.usedUp()
		}
		taken = append(taken, at)
	}
	return back, nil
}

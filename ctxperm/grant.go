package ctxperm

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/perm"
)

// Grant is what a session holds: accesses that can be narrowed and handed on,
// never widened, and that end when they expire, are revoked or are used up, here
// or in any grant that they came from. The zero Grant holds nothing. Copies are
// the same grant. It is safe for concurrent use.
type Grant struct{ g *grant }

// GrantConfig is what a grant is made of.
type GrantConfig struct {
	ID      string // of its session
	Set     perm.Set
	Expires time.Time // zero: it does not
	Uses    int       // calls that may start under it; 0: any number
	Used    int       // calls that did
	Parent  Grant     // what it was handed on from; zero: a root
	Now     func() time.Time
	// CheckRevoked asks whether somebody elsewhere has revoked the grant, and why. An
	// error refuses. Nil: nobody could.
	CheckRevoked func(ctx context.Context, id string) (revoked bool, why string, err error)
}

type grant struct {
	GrantConfig

	mu      sync.Mutex // never held across a wait
	used    int
	revoked string // why; empty: it is not
}

// NewGrant makes a grant, or the zero Grant for a key that this module did not
// make. One that was handed on holds no more than what it came from.
func NewGrant(k callstate.ModuleKey, c GrantConfig) Grant {
	if !k.Valid() || c.Now == nil {
		return Grant{}
	}
	return Grant{&grant{GrantConfig: c, used: c.Used}}
}

// ID names the session that holds the grant.
func (g Grant) ID() string {
	if g.g == nil {
		return ""
	}
	return g.g.ID
}

// Allows reports whether the grant holds one exact access. It says nothing of
// whether the grant still stands; see Check.
func (g Grant) Allows(a perm.ResourceAccess) bool {
	for at := g.g; at != nil; at = at.Parent.g {
		if !at.Set.Allows(a) {
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

// Check reports why the grant, or one that it came from, does not stand any more.
// It is ErrDenied.
func (g Grant) Check(ctx context.Context) error {
	if g.g == nil {
		return fmt.Errorf("%w: nothing was granted", ErrDenied)
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
		return fmt.Errorf("%w: the grant of session %s was revoked %s", ErrDenied, g.ID, revoked)
	case !g.Expires.IsZero() && !g.Now().Before(g.Expires):
		return fmt.Errorf("%w: the grant of session %s expired at %s", ErrDenied, g.ID, g.Expires.UTC().Format(time.RFC3339))
	case g.CheckRevoked == nil:
		return nil
	}
	gone, why, err := g.CheckRevoked(ctx, g.ID)
	if err != nil {
		return fmt.Errorf("%w: whether the grant of session %s still stands cannot be told: %w", ErrDenied, g.ID, err)
	}
	if gone {
		g.revoke(why)
		return fmt.Errorf("%w: the grant of session %s was revoked %s", ErrDenied, g.ID, why)
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

// Revoke ends the grant in this process, with all that were handed on from it.
func (g Grant) Revoke(k callstate.ModuleKey, why string) {
	if k.Valid() && g.g != nil {
		g.g.revoke(why)
	}
}

// Bounded reports whether only so many calls may start under the grant, or under one that it came from.
func (g Grant) Bounded() bool {
	for at := g.g; at != nil; at = at.Parent.g {
		if at.Uses > 0 {
			return true
		}
	}
	return false
}

// Use takes one of the calls that may start under the grant, and under each that
// it came from: from all of them or from none. Back gives it back where the call
// did not start.
func (g Grant) Use(ctx context.Context) (back func(), err error) {
	if err := g.Check(ctx); err != nil {
		return nil, err
	}
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
			return nil, fmt.Errorf("%w: the grant of session %s is used up: it was for %d calls", ErrDenied, at.ID, at.Uses)
		}
		taken = append(taken, at)
	}
	return back, nil
}

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// SessionOption configures one session.
type SessionOption func(*sessionConfig)

type sessionConfig struct {
	grant   []perm.ResourceAccess
	limited bool
	except  []perm.ResourceAccess
	expires time.Time
	uses    int
	wrong   error
	limits  tool.Limits
	client  *perm.ClientFacts
	data    []any // of each option Data
	heard   []string
}

// Grant restricts a session's grant to these accesses, as far as the tools need
// them. The option never extends the grant.
func Grant(accesses ...perm.ResourceAccess) SessionOption {
	return func(c *sessionConfig) { c.grant, c.limited = append(c.grant, accesses...), true }
}

// Except removes accesses from a session's grant.
func Except(accesses ...perm.ResourceAccess) SessionOption {
	return func(c *sessionConfig) { c.except = append(c.except, accesses...) }
}

// Expires sets the time at which a session's grant expires.
func Expires(t time.Time) SessionOption {
	return func(c *sessionConfig) {
		if c.expires = t.UTC(); t.IsZero() {
			c.wrong = errors.New("Expires: the time is zero")
		}
	}
}

// MaxUses bounds how many calls can start under a session's grant and all
// delegations of it together.
func MaxUses(n int) SessionOption {
	return func(c *sessionConfig) {
		if c.uses = n; n < 1 {
			c.wrong = fmt.Errorf("a grant for %d calls is none", n)
		}
	}
}

// checkResumed returns an error for options that a resumed session cannot take.
func (c *sessionConfig) checkResumed() error {
	if c.wrong == nil && (c.limited || len(c.except) > 0 || !c.expires.IsZero() || c.uses > 0 || c.client != nil || len(c.data) > 0) {
		return fmt.Errorf("a resumed session keeps its grant, its client profile and its data; valid are ClaimTimeout and Heard: %w", tool.ErrInvalid)
	}
	return c.wrong
}

func (c *sessionConfig) narrow(from perm.Set) (perm.Set, error) {
	if c.wrong != nil {
		return perm.Set{}, c.wrong
	}
	if c.limited {
		less, err := perm.NewSet(c.grant...)
		if err != nil {
			return perm.Set{}, err
		}
		from = from.Intersect(less)
	}
	return from.Except(c.except...)
}

// Session opens a session for a principal that the host program vouches for.
// Its grant is what the runtime's tools need, unless options restrict it.
func (rt *Runtime) Session(ctx context.Context, p perm.Principal, opts ...SessionOption) (*Session, error) {
	if p.ID == "" {
		return nil, errors.New("agent: a session needs a principal with an id")
	}
	rt.warnOfRoots()
	all := rt.tools.Load()
	set, err := all.Grant()
	if err != nil {
		return nil, fmt.Errorf("agent: grant: %w", err)
	}
	s := &Session{rt: rt, principal: p.Clone(), roots: rt.roots.byName(), limits: rt.limits}
	return s, s.open(ctx, set, all, nil, opts)
}

// Delegate opens the session of a sub-agent with a part of the session's grant.
// The part is never more than this session holds, does not last longer, and is
// revoked with it. Policies see the delegation in the principal's chain. The
// chain of the given principal must be empty.
func (s *Session) Delegate(ctx context.Context, to perm.Principal, opts ...SessionOption) (*Session, error) {
	switch {
	case to.ID == "":
		return nil, errors.New("agent: a session needs a principal with an id")
	case len(to.Chain) > 0:
		return nil, errors.New("agent: the chain of a principal is made of the sessions that handed the grant on")
	}
	if err := cmp.Or(s.state.grant.Check(ctx), s.catchUp(ctx, "")); err != nil {
		return nil, fmt.Errorf("agent: hand on: %w", err)
	}
	child := &Session{rt: s.rt, principal: to.Clone(), roots: s.roots, limits: s.limits}
	child.principal.Chain = append(slices.Clone(s.principal.Chain), s.principal.ID)
	if err := child.open(ctx, s.state.grant.Set(), nil, s, opts); err != nil {
		return nil, err
	}
	// Last, and with a barrier: no other code knows the new session before, and
	// without the record this session would not find its uses.
	rec := revert.NewRecorder(s.rt.journal, s.rt.services.Host, s.id)
	//mutant:barrier
	w := revert.Write{Records: []revert.CallRecord{{Body: &record.Delegated{To: child.id}}}, Durable: true}
	if err := rec.Write(ctx, w); err != nil {
		return nil, fmt.Errorf("agent: hand on: %w", err)
	}
	if s.state.moves.shared { // another process can resume it
		s.state.origins.follow()
	}
	return child, nil
}

// open records a new session with the part of a set that the options leave. all
// is the registry whose whole grant the set is, or nil.
func (s *Session) open(ctx context.Context, set perm.Set, all *tool.Registry, from *Session, opts []SessionOption) error {
	c := sessionConfig{limits: s.limits}
	for _, o := range opts {
		o(&c)
	}
	if c.limited || len(c.except) > 0 {
		all = nil
	}
	set, err := c.narrow(set)
	if err != nil {
		return fmt.Errorf("agent: grant: %w", err)
	}
	body, err := s.rt.sessionRecord(s.principal)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if s.client, body.Client, err = shownTo(c.client, from); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if s.data, err = c.sessionData(from); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	body.Data, s.limits = s.data, c.limits
	s.id = host.NewID(s.rt.services.Host, "s_")
	token, digest := s.rt.token(s.id)
	s.token = func() string { return token }
	body.Token, body.Expires, body.Uses = digest, c.expires, c.uses
	var above *sessionState
	if from != nil {
		body.Parent, above = from.id, from.state
	}
	s.state = s.rt.sessionStates.keep(s.id, s.rt.newSessionState(s.id, body, set, above, 0))
	// No barrier: the first durable record of the session makes it durable too.
	lines := []revert.CallRecord{{Body: body}}
	if from != nil { // it starts with the labels of the parent
		lines = append(lines, s.state.inherit()...)
	}
	if err := s.rt.writeSession(ctx, s.id, lines, body, set, all); err != nil {
		return fmt.Errorf("agent: session: %w", err)
	}
	return s.Heard(ctx, c.heard...)
}

// Allows reports whether the session's grant contains one exact access. The
// policy still decides each call that uses it.
func (s *Session) Allows(a perm.ResourceAccess) bool { return s.state.grant.Allows(a) }

// Revoke revokes a remembered approval, or the grant of a session with all its
// delegations. by names who revokes. The revocation applies at once, also to
// the next access of a running call through a handle. In other processes it
// also applies at once to remembered approvals and to grants that are
// delegated, expire or have a number of uses. Any other session ends with its
// transaction.
func (rt *Runtime) Revoke(ctx context.Context, id, by, why string) error {
	if by == "" {
		return fmt.Errorf("a revocation needs the name of the person who revokes: %w", tool.ErrInvalid)
	}
	session, err := rt.grantedBy(ctx, id)
	if err != nil {
		return err
	}
	body := &record.Revoked{Grant: id, By: by, Why: why}
	if st := rt.sessionStates.get(id); st != nil {
		st.grant.Revoke(wordsOf(body)) // first: the revocation must apply even if the journal fails
	}
	//mutant:barrier
	w := revert.Write{Records: []revert.CallRecord{{Body: body}}, Durable: true}
	return revert.NewRecorder(rt.journal, rt.services.Host, session).Write(ctx, w)
}

// grantedBy returns the session whose stream holds the record of a grant.
func (rt *Runtime) grantedBy(ctx context.Context, id string) (string, error) {
	if strings.HasPrefix(id, "g_") {
		session, err := rt.register.of(ctx, id)
		if err != nil {
			return "", fmt.Errorf("grant %s: %w", id, err)
		}
		return session, nil
	}
	if _, err := rt.recordOf(ctx, id); err != nil {
		return "", fmt.Errorf("grant %s: %w", id, err)
	}
	return id, nil
}

package agent

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/grant"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// sessionState is what all Session values of one session share in this process:
// its counts and its grant.
type sessionState struct {
	counters *sessionCounters
	grant    grant.Grant
	userURLs *userURLs
	origins  *origins
	from     *sessionState // of the delegating session; kept so that its uses are counted once
	moves    *moves

	properties sync.Map     // for filters
	requests   atomic.Int64 // number of turns so far: batches and single calls
}

// records notes records that a transaction of the session has written.
func (st *sessionState) records(at time.Time, lines []revert.CallRecord) {
	st.counters.records(at, lines)
	st.origins.written(lines)
}

// nextTurn returns the number of a new turn of the session.
func (st *sessionState) nextTurn() int { return int(st.requests.Add(1)) - 1 }

// turn returns the number of the newest turn.
func (st *sessionState) turn() int { return max(int(st.requests.Load())-1, 0) }

// sessionStates holds the states that are in use. Others are rebuilt from the
// journal.
type sessionStates struct {
	mu    sync.Mutex // never held across a wait
	of    map[string]weak.Pointer[sessionState]
	sweep int // the size at which the next keep looks for states that are gone
}

// minSweep is how many states sessionStates holds before it looks for some that
// are gone.
const minSweep = 64

func (s *sessionStates) get(id string) *sessionState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[id].Value()
}

// keep returns the existing state of a session, or stores st.
func (s *sessionStates) keep(id string, st *sessionState) *sessionState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if there := s.of[id].Value(); there != nil {
		return there
	}
	if s.of == nil {
		s.of = map[string]weak.Pointer[sessionState]{}
	}
	if len(s.of) >= s.sweep { // at twice the size that the last sweep left, so each new state pays for few others
		for old, p := range s.of {
			if p.Value() == nil {
				delete(s.of, old)
			}
		}
		s.sweep = 2*len(s.of) + minSweep
	}
	s.of[id] = weak.Make(st)
	return st
}

// erased removes what a call returned from the origins of values, and what it
// did from the earlier calls of its session.
func (s *sessionStates) erased(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.of {
		if st := p.Value(); st != nil {
			st.origins.written([]revert.CallRecord{{Call: call, Body: &record.Erased{}}})
			st.counters.past.erase(call)
		}
	}
}

// newSessionState makes the state of a session. used is the number of uses
// already spent.
func (rt *Runtime) newSessionState(id string, body *record.Session, set perm.Set, from *sessionState, used int) *sessionState {
	c := grant.Config{ID: id, Set: set, Expires: body.Expires, Uses: body.Uses, Used: used, Now: rt.services.Host.Now}
	if from != nil {
		c.Parent = from.grant
	}
	if body.Parent != "" || body.Uses > 0 || !body.Expires.IsZero() {
		c.CheckRevoked = rt.register.gone
	}
	if body.Uses > 0 && isShared(rt.journal) {
		c.Before = newGrantUses(rt.journal, id).before
	}
	urls, values := newUserURLs(rt.journal, id), newOrigins(rt.journal, id, body.Data, rt.shapeOf)
	if from != nil {
		urls, values = from.userURLs, from.origins
	}
	counters := newSessionCounters(rt.services.Host.Now, rt.tools.Load)
	counters.events = &events{}
	return &sessionState{counters: counters, grant: grant.New(c), userURLs: urls, origins: values, from: from, moves: newMoves(rt.journal)}
}

// inherit gives a delegated session the current labels and requirements of its
// parent, and returns the record of it, or none if there are none.
func (st *sessionState) inherit() []revert.CallRecord {
	labels, requires := st.from.counters.raised()
	if len(labels)+len(requires) == 0 {
		return nil
	}
	st.counters.label(labels, requires)
	return []revert.CallRecord{{Body: &record.Labelled{Labels: labels, Requires: requires}}}
}

// sessionByID returns a session from this process or from the journal, with at
// most the grant that the tools of this runtime still need.
func (rt *Runtime) sessionByID(ctx context.Context, id string) (*Session, error) {
	body, err := rt.recordOf(ctx, id)
	if err != nil {
		return nil, err
	}
	s := &Session{rt: rt, id: id, limits: rt.limits, data: body.Data}
	if err := canon.Decode(body.Principal, &s.principal); err != nil {
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	s.principal = s.principal.Clone()
	if len(body.Client) > 0 {
		if err := canon.Decode(body.Client, &s.client); err != nil {
			return nil, fmt.Errorf("session %s: client: %w", id, err)
		}
	}
	if s.roots, err = rt.rootsOf(ctx, id); err != nil {
		return nil, err
	}
	if s.state = rt.sessionStates.get(id); s.state != nil {
		return s, nil
	}
	st, err := rt.restore(ctx, id, body)
	if err != nil {
		return nil, err
	}
	s.state = rt.sessionStates.keep(id, st)
	return s, nil
}

func (rt *Runtime) restore(ctx context.Context, id string, body *record.Session) (*sessionState, error) {
	set, err := rt.grantOf(ctx, body)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	var from *sessionState
	if body.Parent != "" {
		parent, err := rt.sessionByID(ctx, body.Parent)
		if err != nil {
			return nil, err
		}
		from = parent.state
		from.origins.follow()
	}
	used := 0
	if body.Uses > 0 {
		if used, err = rt.started(ctx, id); err != nil {
			return nil, err
		}
	}
	st := rt.newSessionState(id, body, set, from, used)
	revoked, why, err := rt.register.gone(ctx, id)
	if err != nil {
		return nil, err
	}
	if revoked {
		st.grant.Revoke(why)
	}
	unfinished, last, err := rt.recount(ctx, id, st.counters)
	if err != nil {
		return nil, err
	}
	return st, st.moves.begin(ctx, rt, unfinished, last)
}

// started counts the calls that started under a session's grant and its
// delegations.
func (rt *Runtime) started(ctx context.Context, id string) (n int, err error) {
	var to []string
	held := map[string]bool{} // these used the grant when they were held
	q := journal.Query{Session: id, Kinds: []record.Kind{record.KindHeld, record.KindStarted, record.KindDelegated}}
	for e, err := range rt.journal.Entries(ctx, q) {
		if err != nil {
			return n, err
		}
		switch e.Header.Kind {
		case record.KindHeld:
			held[e.Header.Call] = true
			n++
			continue
		case record.KindStarted:
			if !held[e.Header.Call] {
				n++
			}
			continue
		default:
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return n, err
		}
		if b, ok := rec.Body.(*record.Delegated); ok {
			to = append(to, b.To)
		}
	}
	for _, child := range to {
		more, err := rt.started(ctx, child)
		if err != nil {
			return n, err
		}
		n += more
	}
	return n, nil
}

// recordOf returns the record that opened a session.
func (rt *Runtime) recordOf(ctx context.Context, id string) (*record.Session, error) {
	if id != "" {
		for e, err := range rt.journal.Entries(ctx, journal.Query{Session: id, Kinds: []record.Kind{record.KindSession}, Limit: 1}) {
			if err != nil {
				return nil, err
			}
			rec, err := record.Unseal(e)
			if err != nil {
				return nil, err
			}
			if opened, ok := rec.Body.(*record.Session); ok {
				return opened, nil
			}
		}
	}
	return nil, fmt.Errorf("session %s: %w", id, journal.ErrNotFound)
}

// ErrUnknownToken says that the token matches no session on the journal.
var ErrUnknownToken = errors.New("no session is resumed by this token")

// token makes the token of a session, and the digest of it that is recorded.
func (rt *Runtime) token(id string) (token, digest string) {
	secret := make([]byte, 32)
	rt.services.Host.Random(secret)
	token = fmt.Sprintf("%s.%x", id, secret)
	return token, tokenDigest(token)
}

func tokenDigest(token string) string {
	return string(canon.Sum("remit/session-token/v1", []byte(token)))
}

// Token returns the secret that resumes the session with Runtime.ResumeSession,
// in this process or a later one. Its holder acts as the session's principal:
// store it as a secret, and never accept it from a model or from the wire. It
// is "" for a session that was found without its token.
func (s *Session) Token() string {
	if s.token == nil {
		return ""
	}
	return s.token()
}

// ResumeSession resumes a session by its token, with the principal, the grant,
// the roots and the counts on the journal. In one process several callers can
// resume it, and share its state. While another process has a transaction of it
// open, ResumeSession fails with revert.ErrBusy. On a node that has none of its
// roots, it fails with a NodeError. Only the options ClaimTimeout
// and Heard are valid, because the grant, the client profile and the data
// are already fixed.
func (rt *Runtime) ResumeSession(ctx context.Context, token string, opts ...SessionOption) (*Session, error) {
	c := sessionConfig{limits: rt.limits}
	for _, o := range opts {
		o(&c)
	}
	if err := c.checkResumed(); err != nil {
		return nil, fmt.Errorf("agent: session: %w", err)
	}
	id, _, _ := strings.Cut(token, ".")
	body, err := rt.recordOf(ctx, id)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return nil, ErrUnknownToken
	case err != nil:
		return nil, fmt.Errorf("agent: session: %w", err)
	case body.Token == "" || subtle.ConstantTimeCompare([]byte(body.Token), []byte(tokenDigest(token))) != 1:
		return nil, ErrUnknownToken
	}
	if len(body.Roots) > 0 && body.State.Node != rt.state.Node { // without its files, each call of it fails
		if err := rt.inCopy(ctx, "", id); err != nil {
			return nil, fmt.Errorf("agent: session %s: %w", id, err)
		}
	}
	if err := rt.checkNotOpenElsewhere(ctx, id); err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	if named, err := rt.otherFolders(ctx, id); err != nil || len(named) > 0 {
		return nil, errors.Join(fmt.Errorf("agent: session %s began in another folder: %w", id, revert.ErrOtherFolder), err)
	}
	s, err := rt.sessionByID(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	s.limits = c.limits
	s.token = func() string { return token }
	return s, s.Heard(ctx, c.heard...)
}

// checkNotOpenElsewhere returns an error if another living process has an open
// transaction of the session. That process has its own counters.
func (rt *Runtime) checkNotOpenElsewhere(ctx context.Context, id string) error {
	open, err := rt.journal.Unfinished(ctx)
	if err != nil {
		return err
	}
	for _, o := range open {
		if o.Owner == rt.journal.Owner() {
			continue
		}
		t, err := revert.Load(ctx, rt.journal, o.Txn)
		if err != nil {
			return err
		}
		if t.Session != id {
			continue
		}
		alive, err := journal.LooksAlive(ctx, rt.journal, o.Owner)
		if err != nil {
			return err
		}
		if alive {
			return fmt.Errorf("session %s has transaction %s open in another process: %w", id, o.Txn, revert.ErrBusy)
		}
	}
	return nil
}

// rootsByName are the roots that a session's transactions see.
type rootsByName = map[string]disk.Root

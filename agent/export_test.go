package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
)

// FactsAt is what a policy would see of a session at a time.
func FactsAt(s *Session, now time.Time) perm.SessionFacts {
	s.state.counters.mu.Lock()
	defer s.state.counters.mu.Unlock()
	return s.state.counters.held(s.id, now)
}

// RebuiltAt is FactsAt of what the journal alone says.
func RebuiltAt(ctx context.Context, s *Session, now time.Time) (perm.SessionFacts, error) {
	again := &Session{rt: s.rt, id: s.id, limits: s.limits, state: &sessionState{counters: newSessionCounters(s.rt.services.Host, s.rt.tools.Load)}}
	if err := s.rt.recount(ctx, s.id, again.state.counters); err != nil {
		return perm.SessionFacts{}, err
	}
	return FactsAt(again, now), nil
}

// AmountOf is the amount that a call was asked to pay.
func (rt *Runtime) AmountOf(ctx context.Context, call string) (string, error) {
	_, c, err := revert.LoadCall(ctx, rt.journal, call)
	if err != nil || c.Asked == nil {
		return "0", err
	}
	var in struct{ Amount json.Number }
	err = json.Unmarshal(c.Asked.Input, &in)
	return string(in.Amount), err
}

// MaxUserURLs is how many URLs a session can be given.
const MaxUserURLs = maxUserURLs

// SessionStates returns how many states of sessions the runtime holds, also
// those that are gone and were not looked for yet.
func SessionStates(rt *Runtime) int {
	rt.sessionStates.mu.Lock()
	defer rt.sessionStates.mu.Unlock()
	return len(rt.sessionStates.of)
}

// SameState reports whether two sessions share their counters and limits.
func SameState(a, b *Session) bool { return a.state == b.state }

package agent

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/remit-dev/remit/history"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// FactsAt is what a policy would see of a session at a time.
func FactsAt(s *Session, now time.Time) perm.SessionFacts {
	s.state.counters.mu.Lock()
	defer s.state.counters.mu.Unlock()
	f := s.state.counters.held(s.id, now)
	f.Tools = perm.NewCountsByTool(maps.Collect(f.Tools.All())) // plain, for comparisons
	f.Past = nil                                                // has an index, which the reads of others make
	return f
}

// RebuiltAt is FactsAt of what the journal alone says.
func RebuiltAt(ctx context.Context, s *Session, now time.Time) (perm.SessionFacts, error) {
	again := &Session{rt: s.rt, id: s.id, limits: s.limits, state: &sessionState{counters: newSessionCounters(s.rt.services.Host.Now, s.rt.tools.Load)}}
	if _, _, err := s.rt.recount(ctx, s.id, again.state.counters); err != nil {
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

// Counters counts the calls of a session that no runtime has.
type Counters struct {
	*sessionCounters
	host *hosttest.Host
}

func NewCounters(h *hosttest.Host) *Counters {
	none := &tool.Registry{}
	return &Counters{newSessionCounters(h.Now, func() *tool.Registry { return none }), h}
}

// Begin counts a call as in flight, and returns the facts without it.
func (c *Counters) Begin(call, tool string, sums map[string]json.Number) perm.SessionFacts {
	c.host.Advance(time.Minute)
	return c.reserve("s", call, record.ToolRef{Name: tool}, sums).Session
}

// End counts a call as ended, at a time that may be before that of others.
func (c *Counters) End(call string, s tool.Status, late time.Duration) {
	c.mu.Lock()
	if s != tool.StatusPending {
		c.calls[call].end(s, c.host.Now().Add(late), true)
	}
	c.mu.Unlock()
	c.release(call, s)
}

// CommitsAsIfUnasked returns the commits of a session as if no policy had decided
// about them.
func CommitsAsIfUnasked(ctx context.Context, j journal.Journal, session string) ([]RecordedDecision, error) {
	r := newReplay(session)
	if err := r.read(ctx, j); err != nil {
		return nil, err
	}
	r.commits = slices.DeleteFunc(r.commits, func(c recordedCommit) bool { return c.Kind == record.KindCommitDecided })
	return r.commitDecisions(ctx, j, true)
}

// Past is the index of a session's calls, without a session.
type Past struct{ calls pastCalls }

// Add counts an ended call.
func (p *Past) Add(call string, c history.Call) {
	p.calls.add(endedCall{at: c.At, call: call, tool: c.Tool, status: tool.Status(c.Outcome)}, &reservedCall{class: c.Effect, resources: c.Resources, args: c.Args})
}

// History returns what a policy sees now.
func (p *Past) History() history.Source { return p.calls.snapshot() }

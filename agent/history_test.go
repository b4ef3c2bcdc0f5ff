package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/agent/replay"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// did is a call as the test itself knows it. The functions below it are the
// judge: plain loops over all calls, with none of the code of remit.
type did struct {
	id, tool, outcome, effect, file string
	at                              time.Time
}

// question is a question about earlier calls. Empty members say nothing.
type question struct{ tool, outcome, effect, file string }

func (q question) members() map[string]string {
	all := map[string]string{}
	for name, value := range map[string]string{"tool": q.tool, "outcome": q.outcome, "effect": q.effect, "resource": q.file} {
		if value != "" {
			all[name] = value
		}
	}
	return all
}

func (q question) holds(c did) bool {
	begins := func(pattern, text, rest string) bool {
		head, wild := strings.CutSuffix(pattern, rest)
		return pattern == "" || pattern == text || wild && strings.HasPrefix(text, head)
	}
	ran := c.outcome != "denied"
	return (q.outcome == c.outcome || q.outcome == "" && ran) && (q.effect == "" || q.effect == c.effect) &&
		begins(q.tool, c.tool, "*") && begins(q.file, c.file, "**")
}

func howMany(all []did, q question, span time.Duration, last int, now time.Time) (n int) {
	for i, c := range all {
		if q.holds(c) && (span == 0 || now.Sub(c.at) < span) && (last == 0 || i >= len(all)-last) {
			n++
		}
	}
	return n
}

func isBefore(all []did, a, b question) bool {
	x, y := -1, -1
	for i, c := range all {
		if a.holds(c) {
			x = i
		}
		if b.holds(c) {
			y = i
		}
	}
	return x >= 0 && x < y
}

// survey asks a history many questions, and returns the answers as one text.
func survey(t require.TestingT, h perm.HistorySource, now time.Time) string {
	var out strings.Builder
	for _, q := range questions() {
		p, err := perm.NewCallPattern(q.members())
		require.NoError(t, err)
		for _, w := range []string{"", "90s", "1h", "3", "1"} {
			window, err := perm.ParseCallWindow(w)
			require.NoError(t, err)
			n, err := h.Count(p, window, now)
			require.NoError(t, err)
			fmt.Fprintf(&out, "%v %q %d\n", q, w, n)
		}
		for _, other := range questions()[:6] {
			o, err := perm.NewCallPattern(other.members())
			require.NoError(t, err)
			before, err := h.Before(p, o)
			require.NoError(t, err)
			fmt.Fprintf(&out, "%v %v %t\n", q, other, before)
		}
	}
	return out.String()
}

// surveyByHand is survey by the plain loops.
func surveyByHand(all []did, now time.Time) string {
	var out strings.Builder
	for _, q := range questions() {
		for _, w := range []struct {
			text string
			span time.Duration
			last int
		}{{"", 0, 0}, {"90s", 90 * time.Second, 0}, {"1h", time.Hour, 0}, {"3", 0, 3}, {"1", 0, 1}} {
			fmt.Fprintf(&out, "%v %q %d\n", q, w.text, howMany(all, q, w.span, w.last, now))
		}
		for _, other := range questions()[:6] {
			fmt.Fprintf(&out, "%v %v %t\n", q, other, isBefore(all, q, other))
		}
	}
	return out.String()
}

func questions() []question {
	return []question{
		{tool: "look"}, {tool: "edit_a"}, {tool: "edit_*"}, {outcome: "denied"}, {file: "file://ws/f1"}, {file: "file://ws/d/**"},
		{}, {outcome: "done"}, {outcome: "failed"}, {outcome: "unknown"}, {effect: "pure"}, {effect: "pivot", tool: "edit_*"},
		{file: "file://ws/**", outcome: "denied"}, {tool: "edit_b", file: "file://ws/d/f2", outcome: "done"}, {tool: "*"}, {tool: "absent"},
	}
}

func byEnd(a, b did) int {
	if c := a.at.Compare(b.at); c != 0 {
		return c
	}
	return strings.Compare(a.id, b.id)
}

// TestHistoryIndex adds calls whose ends come in another order than their
// times, and asks at each moment also as things were earlier.
func TestHistoryIndex(t *testing.T) {
	for seed := range uint64(statcheck.Size(6, 200)) {
		r, now := rand.New(rand.NewPCG(seed, 9)), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		var index agent.Past
		var all []did
		type moment struct {
			history perm.HistorySource
			want    string
			now     time.Time
		}
		var earlier []moment
		for i := range 60 {
			c := did{
				id: fmt.Sprintf("c_%03d", r.IntN(900)*100+i), tool: []string{"look", "edit_a", "edit_b"}[r.IntN(3)], at: now.Add(-time.Duration(r.IntN(3)) * time.Second),
				outcome: []string{"done", "done", "denied", "failed", "unknown"}[r.IntN(5)], effect: []string{"pure", "pivot"}[r.IntN(2)], file: []string{"file://ws/f1", "file://ws/d/f2", "file://ws/d/f3"}[r.IntN(3)],
			}
			all = append(all, c)
			index.Add(c.id, perm.PastCall{Tool: c.tool, Outcome: c.outcome, Effect: c.effect, Resources: []string{c.file}, At: c.at})
			slices.SortFunc(all, byEnd)
			if r.IntN(4) == 0 {
				earlier = append(earlier, moment{index.History(), surveyByHand(all, now), now})
			}
			if len(earlier) > 0 && r.IntN(4) == 0 {
				at := earlier[r.IntN(len(earlier))]
				require.Equal(t, at.want, survey(t, at.history, at.now), "seed %d, call %d", seed, i)
			}
			now = now.Add([]time.Duration{0, time.Second, 40 * time.Second, 20 * time.Minute}[r.IntN(4)])
		}
	}
}

// TestHistoryIndexErased asks about a call of which the journal only has that
// it happened.
func TestHistoryIndexErased(t *testing.T) {
	var index agent.Past
	index.Add("c_1", perm.PastCall{Tool: "send", Outcome: "done", Effect: "pivot"})
	index.Add("c_2", perm.PastCall{Tool: "look", Outcome: "done", Effect: "pure", Resources: []string{"file://ws/a"}})
	for want, members := range map[string]map[string]string{
		"1":     {"tool": "send"},
		"0":     {"tool": "other", "resource": "file://ws/b"},
		"1 ":    {"tool": "look", "resource": "file://ws/a"},
		"error": {"resource": "file://ws/a"}, "error ": {"tool": "send", "resource": "https://a.example/**"},
		"0 ": {"effect": "pure", "resource": "file://ws/c"},
	} {
		p, err := perm.NewCallPattern(members)
		require.NoError(t, err)
		n, err := index.History().Count(p, perm.CallWindow{}, time.Time{})
		if strings.HasPrefix(want, "error") {
			require.ErrorContains(t, err, "was erased", members)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, strings.TrimSpace(want), fmt.Sprint(n), members)
	}
}

// TestHistoryCost asks after 10 and after 10,000 calls: a question must cost the
// same, also one about a file that no call named before.
func TestHistoryCost(t *testing.T) {
	cost := func(calls int) float64 {
		var index agent.Past
		for i := range calls {
			index.Add(fmt.Sprintf("c_%05d", i), perm.PastCall{Tool: fmt.Sprintf("t%d", i%7), Outcome: "done", Effect: "pure", Resources: []string{fmt.Sprintf("file://ws/%d", i)}, At: time.Unix(int64(i), 0)})
		}
		patterns := make([]perm.CallPattern, 0, 3)
		for _, members := range []map[string]string{{"tool": "t*"}, {"effect": "pure", "resource": "file://ws/**"}, {"resource": "file://ws/7"}} {
			p, err := perm.NewCallPattern(members)
			require.NoError(t, err)
			patterns = append(patterns, p)
		}
		window, err := perm.ParseCallWindow("1h")
		require.NoError(t, err)
		n := 0
		ask := func() {
			h := index.History()
			fresh, err := perm.NewCallPattern(map[string]string{"resource": fmt.Sprintf("file://ws/new%d", n)})
			require.NoError(t, err)
			n++
			for _, p := range append(slices.Clip(patterns), fresh) {
				_, err := h.Count(p, window, time.Unix(20_000, 0))
				require.NoError(t, err)
			}
		}
		ask() // makes the indexes
		return testing.AllocsPerRun(50, ask)
	}
	few, many := cost(10), cost(10_000)
	require.InDelta(t, few, many, 2, "%v allocations after 10 calls, %v after 10,000", few, many)
}

// fileTool touches the file of its input, and ends as the input says.
func fileTool(t *testing.T, name string, class effect.Class) tool.Tool {
	tl, err := tool.FromSpec(tool.Spec{
		Name: name, EffectClass: class, Needs: []perm.ResourceAccess{perm.Access(perm.Read, "file://ws/{path}")},
		Input: json.RawMessage(`{"type":"object","required":["path","how"],"properties":{"path":{"type":"string"},"how":{"type":"string"}}}`),
		Execute: func(_ context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			if strings.Contains(string(in), `"fail"`) {
				return tool.Result{}, errors.New("no luck")
			}
			return tool.Result{Text: "ok"}, nil
		},
	})
	require.NoError(t, err)
	return tl
}

// watched keeps what the policy could learn before each call.
type watched struct {
	mu      sync.Mutex
	answers map[string]string
}

func (w *watched) engine(t *testing.T) perm.Engine {
	return perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		w.mu.Lock()
		w.answers[r.Call.ID] = survey(t, r.Session.History.Source(), r.Time)
		w.mu.Unlock()
		if strings.Contains(string(r.Call.Args), `"deny"`) {
			return perm.NewDecision(perm.Deny, perm.Details{}), nil
		}
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
}

// TestHistoryOfSession makes random calls in processes that follow one another,
// and holds what a policy sees before each call against the list that the test
// keeps, and against what the journal tells later.
func TestHistoryOfSession(t *testing.T) {
	for seed := range uint64(statcheck.Size(3, 60)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r, h, ctx, j := rand.New(rand.NewPCG(seed, 5)), hosttest.New(seed), context.Background(), journal.Memory()
			dir := t.TempDir()
			w := &watched{answers: map[string]string{}}
			begin := func() *agent.Runtime {
				return newRuntime(t, agent.Host(h), agent.Journal(j), agent.Root("ws", dir), agent.Policy(w.engine(t)),
					agent.Tools(fileTool(t, "look", effect.Pure), fileTool(t, "edit_a", ""), fileTool(t, "edit_b", effect.Pure)))
			}
			s := newSession(t, begin())
			var all []did
			want := map[string]string{}
			for range 4 {
				tx, err := s.Begin(ctx)
				require.NoError(t, err)
				for range 8 {
					name, path := []string{"look", "edit_a", "edit_b"}[r.IntN(3)], []string{"f1", "d/f2", "d/f3"}[r.IntN(3)]
					how := []string{"ok", "ok", "fail", "deny"}[r.IntN(4)]
					before := surveyByHand(all, h.Now())
					out, _ := tx.Invoke(ctx, name, tool.Args{"path": path, "how": how})
					want[out.Call] = before
					class := map[string]string{"edit_a": "pivot"}[name]
					if class == "" {
						class = "pure"
					}
					all = append(all, did{out.Call, name, string(out.Status), class, "file://ws/" + path, h.Now()})
					h.Advance([]time.Duration{time.Second, 40 * time.Second, 25 * time.Minute}[r.IntN(3)])
				}
				if r.IntN(2) == 0 { // a call that was reverted did happen
					_, _ = tx.Revert(ctx, revert.Options{})
				} else {
					require.NoError(t, tx.Commit(ctx))
				}
				s, err = begin().ResumeSession(ctx, s.Token())
				require.NoError(t, err)
			}
			require.Len(t, w.answers, len(want))
			for call, before := range want {
				require.Equal(t, before, w.answers[call], call)
			}
			for d, err := range agent.RecordedDecisions(ctx, j, s.ID()) {
				require.NoError(t, err)
				for _, req := range d.Requests {
					require.Equal(t, want[d.Call], survey(t, req.Session.History.Source(), req.Time), d.Call)
				}
			}
		})
	}
}

// TestHistoryRules decides by rules, in the session and again from the journal.
func TestHistoryRules(t *testing.T) {
	policy, err := rego.Load(rego.Source{FS: fstest.MapFS{"p.rego": {Data: []byte(`package remit

import data.remit.lib

allow contains "look" if input.tool.name == "look"

allow contains "after a look at this file" if {
	input.tool.name == "edit"
	lib.happened({"tool": "look", "outcome": "done", "resource": input.access.resource.text})
	lib.count({"tool": "edit"}, "10m") < 2
}
`)}}})
	require.NoError(t, err)
	h, ctx, j := hosttest.New(1), context.Background(), journal.Memory()
	rt := newRuntime(t, agent.Host(h), agent.Journal(j), agent.Root("ws", t.TempDir()), agent.Policy(policy), agent.Tools(fileTool(t, "look", effect.Pure), fileTool(t, "edit", effect.Pure)))
	s := newSession(t, rt)
	other := newSession(t, rt)
	call := func(s *agent.Session, name, path string) bool {
		_, err := s.Update(ctx, func(tx *agent.Txn) error {
			_, err := tx.Invoke(ctx, name, tool.Args{"path": path, "how": "ok"})
			return err
		})
		require.True(t, err == nil || errors.Is(err, tool.ErrDenied), err)
		return err == nil
	}
	require.False(t, call(s, "edit", "a"))
	for range 40 { // more than input.session.recent has
		require.True(t, call(s, "look", "b"))
	}
	require.True(t, call(s, "look", "a"))
	for range 40 {
		require.True(t, call(s, "look", "b"))
	}
	require.True(t, call(s, "edit", "a"))
	require.False(t, call(other, "edit", "a"))
	require.False(t, call(s, "edit", "c"))
	require.True(t, call(s, "edit", "b"))
	require.False(t, call(s, "edit", "b"))
	h.Advance(10 * time.Minute)
	require.True(t, call(s, "edit", "b"))
	report, err := replay.Run(ctx, agent.RecordedDecisions(ctx, j, s.ID()), replay.Options{New: policy})
	require.NoError(t, err)
	require.Empty(t, report.Changes)
	require.Empty(t, report.Undecidable)
	require.Equal(t, 87, report.Same)
}

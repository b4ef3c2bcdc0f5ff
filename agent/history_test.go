package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
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
	"github.com/remit-dev/remit/history"
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
	amount                          string // JSON; empty: the call has no such argument
	at                              time.Time
	erased                          bool // only tool, outcome and time are known, and the effect of a call that ran
}

// question is a question about earlier calls. Empty members say nothing.
type question struct{ tool, outcome, effect, file string }

func (q question) query(window, sum string, now time.Time) history.Query {
	return history.Query{Tool: q.tool, Outcome: q.outcome, Effect: q.effect, Resource: q.file, Window: window, Now: now, Sum: sum}
}

func (q question) pattern() history.Query { return q.query("", "", time.Time{}) }

// holds reports whether a call matches, and whether that can be known.
func (q question) holds(c did) (yes, known bool) {
	begins := func(pattern, text, rest string) bool {
		head, wild := strings.CutSuffix(pattern, rest)
		return pattern == "" || pattern == text || wild && strings.HasPrefix(text, head)
	}
	ran := c.outcome != "denied"
	yes = (q.outcome == c.outcome || q.outcome == "" && ran) && begins(q.tool, c.tool, "*")
	classKnown := !c.erased || ran
	if yes = yes && (q.effect == "" || q.effect == c.effect || !classKnown); yes && (c.erased && q.file != "" || !classKnown && q.effect != "") {
		return false, false
	}
	return yes && begins(q.file, c.file, "**"), true
}

// howMany returns the count of the calls that match, and the sum of their
// amounts, as texts.
func howMany(all []did, q question, span time.Duration, last int, now time.Time) (count, sum string) {
	n, latest, total, bad := 0, 0, new(big.Rat), false
	for i, c := range all {
		if span > 0 && now.Sub(c.at) >= span || last > 0 && i < len(all)-last {
			continue
		}
		yes, known := q.holds(c)
		if !known {
			return "erased", "erased"
		}
		if !yes {
			continue
		}
		n, latest = n+1, i+1
		one, isNumber := new(big.Rat).SetString(c.amount)
		switch {
		case c.erased || c.amount != "" && c.amount != "null" && (!isNumber || one.Sign() < 0):
			bad = true
		case isNumber:
			total.Add(total, one)
		}
	}
	count = fmt.Sprint(n, " last ", latest)
	if bad {
		return count, "no number"
	}
	return count, total.RatString()
}

func isBefore(all []did, a, b question) string {
	x, y := -1, -1
	for i, c := range all {
		isA, knownA := a.holds(c)
		isB, knownB := b.holds(c)
		if !knownA || !knownB {
			return "erased"
		}
		if isA {
			x = i
		}
		if isB {
			y = i
		}
	}
	return fmt.Sprint(x >= 0 && x < y)
}

// told returns an answer as a text.
func told(t require.TestingT, err error, answer func() string) string {
	switch {
	case err == nil:
		return answer()
	case strings.Contains(err.Error(), "whose record was erased"):
		return "erased"
	default:
		require.ErrorContains(t, err, "is no number from 0")
		return "no number"
	}
}

// survey asks a history many questions, and returns the answers as one text.
func survey(t require.TestingT, h history.Source, now time.Time) string {
	var out strings.Builder
	for _, q := range questions() {
		for _, w := range []string{"", "90s", "1h", "3", "1"} {
			n, err := h.Find(q.query(w, "", now))
			count := told(t, err, func() string { return fmt.Sprint(n.Count, " last ", n.Last) })
			n, err = h.Find(q.query(w, "/amount", now))
			sum := told(t, err, func() string {
				r, ok := new(big.Rat).SetString(string(n.Sum))
				require.True(t, ok, n.Sum)
				return r.RatString()
			})
			fmt.Fprintf(&out, "%v %q %s, %s\n", q, w, count, sum)
		}
		for _, other := range questions()[:6] {
			a, err := h.Find(q.pattern())
			b, otherErr := h.Find(other.pattern())
			before := told(t, errors.Join(err, otherErr), func() string { return fmt.Sprint(a.Last > 0 && a.Last < b.Last) })
			fmt.Fprintf(&out, "%v %v %s\n", q, other, before)
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
			count, sum := howMany(all, q, w.span, w.last, now)
			fmt.Fprintf(&out, "%v %q %s, %s\n", q, w.text, count, sum)
		}
		for _, other := range questions()[:6] {
			fmt.Fprintf(&out, "%v %v %s\n", q, other, isBefore(all, q, other))
		}
	}
	return out.String()
}

func questions() []question {
	return []question{
		{tool: "look"},
		{tool: "edit_a"},
		{tool: "edit_*"},
		{outcome: "denied"},
		{file: "file://ws/f1"},
		{file: "file://ws/d/**"},
		{},
		{outcome: "done"},
		{outcome: "failed"},
		{outcome: "unknown"},
		{effect: "pure"},
		{effect: "pivot", tool: "edit_*"},
		{file: "file://ws/**", outcome: "denied"},
		{tool: "edit_b", file: "file://ws/d/f2", outcome: "done"},
		{tool: "*"},
		{tool: "absent"},
		{effect: "pure", outcome: "denied"},
	}
}

func argsOf(amount string) json.RawMessage {
	if amount == "" {
		return json.RawMessage(`{}`)
	}
	return json.RawMessage(`{"amount":` + amount + `}`)
}

// randomAmount returns the JSON of an argument, which seldom has no amount.
func randomAmount(r *rand.Rand) string {
	return []string{"", "null", "0.1", "0.2", "12.50", "100000000000000000001", "1e-9", "0", "7", "3", `"12"`, "-1"}[r.IntN(10+r.IntN(3)*r.IntN(2))]
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
			history history.Source
			want    string
			now     time.Time
		}
		var earlier []moment
		for i := range 60 {
			c := did{
				id: fmt.Sprintf("c_%03d", r.IntN(900)*100+i), tool: []string{"look", "edit_a", "edit_b"}[r.IntN(3)], at: now.Add(-time.Duration(r.IntN(3)) * time.Second),
				outcome: []string{"done", "done", "denied", "failed", "unknown"}[r.IntN(5)], effect: []string{"pure", "pivot"}[r.IntN(2)], file: []string{"file://ws/f1", "file://ws/d/f2", "file://ws/d/f3"}[r.IntN(3)],
				amount: randomAmount(r), erased: r.IntN(100) == 0,
			}
			all = append(all, c)
			one := history.Call{Tool: c.tool, Outcome: c.outcome, Effect: c.effect, At: c.at}
			if c.erased && c.outcome == "denied" {
				one.Effect = ""
			}
			if !c.erased {
				one.Resources, one.Args = []string{c.file}, argsOf(c.amount)
			}
			index.Add(c.id, one)
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

// fileTool touches the file of its input, and ends as the input says.
func fileTool(t *testing.T, name string, class effect.Class) tool.Tool {
	tl, err := tool.FromSpec(tool.Spec{
		Name: name, EffectClass: class, Needs: []perm.ResourceAccess{perm.Access(perm.Read, "file://ws/{path}")},
		Input: json.RawMessage(`{"type":"object","required":["path","how"],"properties":{"path":{"type":"string"},"how":{"type":"string"},"amount":{}}}`),
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
		if w.answers[r.Call.ID] == "" { // a held call is decided again when it is released
			w.answers[r.Call.ID] = survey(t, r.Session.Past, r.Time)
		}
		w.mu.Unlock()
		args := string(r.Call.Args)
		switch {
		case strings.Contains(args, `"deny"`):
			return perm.NewDecision(perm.Deny, perm.Details{}), nil
		case strings.Contains(args, `"hold"`):
			return perm.NewDecision(perm.Hold, perm.Details{}), nil
		case strings.Contains(args, `"hide"`):
			return perm.NewDecision(perm.Allow, perm.Details{Redact: []string{"/args/amount"}}), nil
		default:
			return perm.NewDecision(perm.Allow, perm.Details{}), nil
		}
	})
}

// TestHistoryOfSession makes random calls in processes that follow one another,
// and holds what a policy sees before each call against the list that the test
// keeps, and against what the journal tells later.
func TestHistoryOfSession(t *testing.T) {
	for seed := range uint64(statcheck.Size(3, 60)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := newHistoryRun(t, seed)
			for range 4 {
				h.transaction()
			}
			require.Len(t, h.seen.answers, len(h.want))
			for call, before := range h.want {
				require.Equal(t, before, h.seen.answers[call], call)
			}
			replayed := 0
			for d, err := range agent.RecordedDecisions(t.Context(), h.journal, h.session.ID()) {
				require.NoError(t, err)
				for _, req := range d.Requests {
					if !slices.Contains(d.Unknown, "session.history") {
						replayed++
						require.Equal(t, h.want[d.Call], survey(t, req.Session.Past, req.Time), d.Call)
					}
				}
			}
			require.NotZero(t, replayed)
		})
	}
}

// historyRun is a session with random calls, and the list of them that the test
// keeps.
type historyRun struct {
	t       *testing.T
	r       *rand.Rand
	host    *hosttest.Host
	journal journal.Journal
	dir     string
	seen    *watched
	rt      *agent.Runtime
	session *agent.Session
	all     []did
	held    []did
	want    map[string]string
}

func newHistoryRun(t *testing.T, seed uint64) *historyRun {
	h := &historyRun{t: t, r: rand.New(rand.NewPCG(seed, 5)), host: hosttest.New(seed), journal: journal.Memory(), dir: t.TempDir(), seen: &watched{answers: map[string]string{}}, want: map[string]string{}}
	h.rt = h.process()
	h.session = newSession(t, h.rt)
	return h
}

func (h *historyRun) process() *agent.Runtime {
	return newRuntime(h.t, agent.Host(h.host), agent.Journal(h.journal), agent.Root("ws", h.dir), agent.Policy(h.seen.engine(h.t)),
		agent.Tools(fileTool(h.t, "look", effect.Pure), fileTool(h.t, "edit_a", ""), fileTool(h.t, "edit_b", effect.Pure)))
}

// transaction makes calls, commits or reverts them, erases one, and goes on in
// another process.
func (h *historyRun) transaction() {
	ctx := h.t.Context()
	tx, err := h.session.Begin(ctx)
	require.NoError(h.t, err)
	h.held = nil
	for range 8 {
		h.call(tx)
		h.host.Advance([]time.Duration{time.Second, 40 * time.Second, 25 * time.Minute}[h.r.IntN(3)])
	}
	if h.r.IntN(2) == 0 { // a call that was reverted did happen, and a held one is gone
		_, _ = tx.Revert(ctx, revert.Options{})
	} else {
		require.NoError(h.t, tx.Commit(ctx))
		for _, c := range h.held {
			c.at = h.host.Now()
			h.all = append(h.all, c)
		}
		slices.SortFunc(h.all, byEnd)
	}
	rt, same := h.rt, h.r.IntN(3) == 0
	if !same {
		rt = h.process()
	}
	if h.r.IntN(2) == 0 {
		gone := &h.all[h.r.IntN(len(h.all))]
		if !gone.erased {
			if _, err := rt.Erase(ctx, gone.id, "kim", "a name was in it"); err != nil {
				require.ErrorContains(h.t, err, "its outcome is unknown")
			} else {
				gone.erased = true
			}
		}
	}
	if same {
		return
	}
	h.rt = rt
	h.session, err = rt.ResumeSession(ctx, h.session.Token())
	require.NoError(h.t, err)
}

func (h *historyRun) call(tx *agent.Txn) {
	name, path := []string{"look", "edit_a", "edit_b"}[h.r.IntN(3)], []string{"f1", "d/f2", "d/f3"}[h.r.IntN(3)]
	how, amount := []string{"ok", "ok", "fail", "deny", "hide"}[h.r.IntN(5)], randomAmount(h.r)
	c := did{tool: name, effect: "pure", file: "file://ws/" + path, amount: amount}
	if name == "edit_a" {
		c.effect = "pivot"
		if h.r.IntN(3) == 0 {
			how = "hold"
		}
	}
	args := tool.Args{"path": path, "how": how}
	if amount != "" {
		args["amount"] = json.RawMessage(amount)
	}
	if how == "hide" && amount != "" {
		c.amount = `"hidden"`
	}
	if h.r.IntN(8) == 0 { // an invalid call is none
		out, _ := tx.Invoke(h.t.Context(), name, tool.Args{"path": path})
		require.Equal(h.t, tool.StatusInvalid, out.Status)
	}
	before := surveyByHand(h.all, h.host.Now())
	out, _ := tx.Invoke(h.t.Context(), name, args)
	h.want[out.Call] = before
	c.id, c.outcome, c.at = out.Call, string(out.Status), h.host.Now()
	if c.outcome == string(tool.StatusHeld) {
		c.outcome = "done"
		h.held = append(h.held, c)
		return
	}
	h.all = append(h.all, c)
}

// TestHistoryOfRunning asks while a call runs, and while one waits for a
// person.
func TestHistoryOfRunning(t *testing.T) {
	started, end := make(chan struct{}), make(chan struct{})
	slow, err := tool.FromSpec(tool.Spec{
		Name: "slow", EffectClass: effect.Pure, Input: json.RawMessage(`{"type":"object"}`),
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			close(started)
			<-end
			return tool.Result{Text: "ok"}, nil
		},
	})
	require.NoError(t, err)
	var seen []int
	policy := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		if strings.Contains(string(r.Call.Args), `"ask"`) {
			return perm.NewDecision(perm.Ask, perm.Details{}), nil
		}
		if r.Tool.Name == "look" && r.Purpose == perm.PurposeRun {
			a, err := r.Session.Past.Find(history.Query{})
			require.NoError(t, err)
			seen = append(seen, a.Count)
		}
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
	s := newSession(t, newRuntime(t, agent.Root("ws", t.TempDir()), agent.Policy(policy), agent.SuspendForApproval(), agent.Tools(slow, fileTool(t, "look", effect.Pure))))
	tx, err := s.Begin(t.Context())
	require.NoError(t, err)
	done := make(chan error)
	go func() {
		_, err := tx.Invoke(t.Context(), "slow", tool.Args{})
		done <- err
	}()
	<-started
	look := func(how string) tool.Status {
		out, _ := tx.Invoke(t.Context(), "look", tool.Args{"path": "a", "how": how})
		return out.Status
	}
	require.Equal(t, tool.StatusDone, look("ok")) // slow runs
	require.Equal(t, tool.StatusPending, look("ask"))
	require.Equal(t, tool.StatusDone, look("ok")) // slow runs, and one waits
	close(end)
	require.NoError(t, <-done)
	require.Equal(t, tool.StatusDone, look("ok"))
	require.Equal(t, []int{0, 1, 3}, seen)
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

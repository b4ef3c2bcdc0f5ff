package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/filter"
)

// filterBehavior is what a made-up filter does in each hook.
type filterBehavior struct{ before, after, ended string }

// trace is what hooks and tools were called, in order, for each call.
type trace struct {
	mu      sync.Mutex // never held across a wait
	hooks   map[string][]string
	entered map[string]int
	ended   map[string]tool.Outcome // by the first filter's Ended
	journal journal.Journal
	wrong   []string
}

func (tr *trace) note(call, what string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.hooks[call] = append(tr.hooks[call], what)
}

func (tr *trace) say(format string, args ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.wrong = append(tr.wrong, fmt.Sprintf(format, args...))
}

func inputOf(t interface{ FailNow() }, raw []byte) (v string) {
	var in struct{ V string }
	if json.Unmarshal(raw, &in) != nil {
		t.FailNow()
	}
	return in.V
}

func worded(v string) tool.Result {
	raw, _ := json.Marshal(map[string]string{"v": v}) // a text can be written
	return tool.Result{JSON: raw}
}

// filter makes filter i of a world.
func (tr *trace) filter(t *rapid.T, i int, h filterBehavior) filter.Filter {
	f := filter.Filter{Name: fmt.Sprint("f", i)}
	f.Before = func(ctx context.Context, c filter.Call) error {
		tr.note(c.ID(), fmt.Sprint("before ", i))
		if _, _, err := revert.LoadCall(ctx, tr.journal, c.ID()); !errors.Is(err, journal.ErrNotFound) {
			tr.say("filter %d was asked when the journal knew the call", i)
		}
		switch h.before {
		case "deny":
			return errors.New("no " + inputOf(t, c.Input()))
		case "panic":
			panic("no")
		case "answer":
			c.Answer(worded("from " + f.Name))
		case "answer badly":
			c.Answer(tool.Text("no document"))
		case "replace":
			c.Replace(tool.Args{"v": inputOf(t, c.Input()) + "+"})
		case "replace badly":
			c.Replace(tool.Args{"w": 1})
		case "replace with forbidden":
			c.Replace(tool.Args{"v": "forbidden"})
		case "replace by the same":
			c.Replace(json.RawMessage(c.Input()))
		case "both":
			c.Replace(json.RawMessage(c.Input()))
			c.Answer(worded("x"))
		case "end":
			c.EndLoop("enough of " + f.Name)
		}
		return nil
	}
	f.After = func(_ context.Context, c filter.Call, r tool.Result) (tool.Result, error) {
		tr.note(c.ID(), fmt.Sprint("after ", i))
		switch h.after {
		case "change":
			r = worded(resultWord(t, r) + "<" + f.Name)
		case "change badly":
			r = tool.Text("no document")
		case "error":
			return r, errors.New("not this")
		case "panic":
			panic("no")
		case "answer":
			c.Answer(r)
		case "end":
			c.EndLoop("done with " + f.Name)
		}
		return r, nil
	}
	f.Ended = func(ctx context.Context, c filter.Call, o tool.Outcome) {
		tr.note(c.ID(), fmt.Sprint("ended ", i))
		tr.checkEnded(ctx, i, c, o)
		o.Output = append(o.Output[:0], "spoiled"...) // it is a copy
		if h.ended == "panic" {
			panic("no")
		}
	}
	return f
}

// checkEnded holds what an Ended is told against the journal: it is there already.
func (tr *trace) checkEnded(ctx context.Context, i int, c filter.Call, o tool.Outcome) {
	_, rec, err := revert.LoadCall(ctx, tr.journal, c.ID())
	switch {
	case err != nil:
		tr.say("filter %d was told of call %s, and the journal does not have it: %v", i, c.ID(), err)
		return
	case o.Status == tool.StatusDone && (rec.Phase != revert.PhaseDone || rec.Done == nil):
		tr.say("told done, recorded %s", rec.Phase)
	case o.Status == tool.StatusDenied && rec.Denied == nil:
		tr.say("told denied, recorded %s", rec.Phase)
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if i == 0 {
		o.Output = slices.Clone(o.Output)
		tr.ended[c.ID()] = o
	}
}

// words is what the model of a world says of one call.
type words struct {
	status  tool.Status
	stage   string
	filter  string // that refused or answered
	entered int
	raw, to string // of the result; empty: none
	changed bool   // a filter made another of it, which a further one may have made what it was
	final   string // input that ran, or was refused
	hooks   []string
	ends    []string
}

// expectedWords is a plain model of the line with filters, for one call.
func expectedWords(habits []filterBehavior, tool string, in string) (w words) {
	w.final = in
	reached, let, answered := 0, 0, ""
	end := func(status, stage, by string) {
		w.status, w.stage, w.filter = toolStatus(status), stage, by
	}
	defer func() {
		for i := reached - 1; i >= 0; i-- {
			w.hooks = append(w.hooks, fmt.Sprint("ended ", i))
		}
	}()
	if strings.Contains(in, "forbidden") {
		end("denied", "policy", "")
		return w
	}
	for i, h := range habits {
		reached = i + 1
		name := fmt.Sprint("f", i)
		w.hooks = append(w.hooks, fmt.Sprint("before ", i))
		switch h.before {
		case "deny", "panic", "both", "replace badly":
			end("denied", "filter", name)
			return w
		case "answer badly":
			if tool == "echo" {
				end("denied", "filter", name)
				return w
			}
			answered = "no document"
		case "answer":
			answered = "from " + name
		case "replace":
			w.final += "+"
		case "replace with forbidden":
			w.final = "forbidden"
			end("denied", "policy", "")
			return w
		case "end":
			w.ends = append(w.ends, "enough of "+name)
		}
		if answered != "" {
			w.filter = name
			break
		}
		let = i + 1
	}
	w.raw = answered
	if answered == "" {
		w.entered = 1
		if w.final == "fail" {
			end("failed", "", "")
			return w
		}
		w.raw = w.final
	}
	w.to = w.raw
	for i := let - 1; i >= 0; i-- {
		name := fmt.Sprint("f", i)
		w.hooks = append(w.hooks, fmt.Sprint("after ", i))
		switch habits[i].after {
		case "change":
			w.to, w.changed = w.to+"<"+name, true
		case "change badly":
			if tool == "echo" {
				end("verify_failed", "", w.filter)
				return w
			}
			w.to, w.changed = "no document", w.changed || w.to != "no document"
		case "error", "panic", "answer":
			end("verify_failed", "", w.filter)
			return w
		case "end":
			w.ends = append(w.ends, "done with "+name)
		}
	}
	end("done", "", w.filter)
	return w
}

func toolStatus(s string) tool.Status { return tool.Status(s) }

// TestFiltersKeepTheLine runs calls through arbitrary filters, alone and in batches,
// and holds outcomes, journal, counts and world against a plain model of the line.
func TestFiltersKeepTheLine(t *testing.T) {
	pick := func(words ...string) *rapid.Generator[string] { return rapid.SampledFrom(words) }
	befores := pick("", "", "", "", "deny", "panic", "answer", "answer badly", "replace", "replace", "replace badly", "replace with forbidden", "replace by the same", "both", "end")
	afters := pick("", "", "change", "change", "change badly", "error", "panic", "answer", "end")
	statcheck.Checks(t, 100, 3000)
	rapid.Check(t, func(rt *rapid.T) {
		habits := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) filterBehavior {
			return filterBehavior{befores.Draw(r, "before"), afters.Draw(r, "after"), pick("", "panic").Draw(r, "ended")}
		}), 0, 4).Draw(rt, "filters")
		asks := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) agent.BatchCall {
			return agent.BatchCall{Tool: pick("echo", "put").Draw(r, "tool"), Input: tool.Args{"v": pick("alpha", "beta", "forbidden", "fail").Draw(r, "in")}}
		}), 1, 4).Draw(rt, "calls")
		newFiltered(t, rt, habits).check(asks)
	})
}

// filteredRuntime is a runtime with made-up filters.
type filteredRuntime struct {
	*rapid.T
	tr        *trace
	behaviors []filterBehavior
	files     map[string]string // what put left, by call
	rt        *agent.Runtime
	s         *agent.Session
	host      *hosttest.Host
}

func newFiltered(t *testing.T, rt *rapid.T, habits []filterBehavior) *filteredRuntime {
	w := &filteredRuntime{T: rt, behaviors: habits, host: hosttest.New(1), files: map[string]string{}}
	w.tr = &trace{hooks: map[string][]string{}, entered: map[string]int{}, ended: map[string]tool.Outcome{}, journal: journal.Memory()}
	var filters []filter.Filter
	for i, h := range habits {
		filters = append(filters, w.tr.filter(rt, i, h))
	}
	engine := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		effect := perm.Allow
		if strings.Contains(string(r.Call.Args), "forbidden") {
			effect = perm.Deny
		}
		return perm.NewDecision(effect, perm.Details{Revision: "r1", Reasons: []perm.Reason{{Text: "so it is"}}}), nil
	})
	var err error
	w.rt, err = agent.New(quiet(), agent.Host(w.host), agent.Tools(w.tool(t, "echo"), w.tool(t, "put")), agent.Policy(engine), agent.Journal(w.tr.journal), agent.Filters(filters...))
	require.NoError(rt, err)
	w.s, err = w.rt.Session(context.Background(), perm.Principal{ID: "coder"})
	require.NoError(rt, err)
	return w
}

// tool makes echo, which has no effect and an output schema, or put, which has
// neither and takes its effect back itself.
func (w *filteredRuntime) tool(t *testing.T, name string) tool.Tool {
	s := tool.Spec{
		Name: name, EffectClass: effect.Pure,
		Input:  json.RawMessage(`{"type":"object","properties":{"v":{"type":"string"}},"required":["v"],"additionalProperties":false}`),
		Output: json.RawMessage(`{"type":"object","properties":{"v":{"type":"string"}},"required":["v"],"additionalProperties":false}`),
		Execute: func(_ context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			w.tr.mu.Lock()
			w.tr.entered[tc.Call().ID]++
			v := inputOf(t, in)
			if name == "put" && v != "fail" {
				w.files[tc.Call().ID] = v
			}
			w.tr.mu.Unlock()
			if v == "fail" {
				return tool.Result{}, tool.NoEffect(errors.New("it fails"))
			}
			return worded(v), nil
		},
	}
	if name == "put" {
		s.Output, s.EffectClass = nil, effect.Compensable
		s.Revert = func(_ context.Context, rc tool.RevertContext) error {
			w.tr.mu.Lock()
			defer w.tr.mu.Unlock()
			for call, v := range w.files {
				if string(rc.Output) == `{"v":"`+v+`"}` && inputOf(t, rc.Input) == v { // it needs what Execute returned, not what was delivered
					delete(w.files, call)
					return nil
				}
			}
			return errors.New("nothing to revert by this output")
		}
	}
	tl, err := tool.FromSpec(s)
	require.NoError(t, err)
	return tl
}

func (w *filteredRuntime) check(asks []agent.BatchCall) {
	ctx := context.Background()
	tx, err := w.s.Begin(ctx)
	require.NoError(w, err)
	for i := range asks {
		asks[i].ID = fmt.Sprint("call ", i)
	}
	outcomes := tx.InvokeAll(ctx, asks)
	var left []string
	for i, o := range outcomes {
		args, _ := asks[i].Input.(tool.Args)
		in, _ := args["v"].(string)
		w.one(asks[i], o, expectedWords(w.behaviors, asks[i].Tool, in))
		if asks[i].Tool == "put" && o.Status == tool.StatusDone && o.Filter == "" {
			left = append(left, o.Call)
		}
	}
	w.replays(tx, asks, outcomes)
	require.Len(w, w.files, len(left), "what did not verify was reverted")
	live, err := agent.RebuiltAt(ctx, w.s, w.host.Now())
	require.NoError(w, err)
	require.Equal(w, agent.FactsAt(w.s, w.host.Now()), live, "counted once, and as the journal says")
	rep, err := tx.Revert(ctx, revert.Options{})
	require.NoError(w, err)
	require.True(w, rep.Complete())
	require.Empty(w, w.files, "each effect is reverted, by the result that it had")
	_, err = revert.Fsck(ctx, w.tr.journal, revert.FsckOptions{Found: func(p revert.Problem) { w.tr.say("fsck: %+v", p) }})
	require.NoError(w, err)
	require.Empty(w, w.tr.wrong)
}

// one holds an outcome against the model and the journal.
func (w *filteredRuntime) one(ask agent.BatchCall, o tool.Outcome, want words) {
	require.Equal(w, want.status, o.Status, "%+v", o.Error)
	require.Equal(w, want.stage, o.Stage)
	require.Equal(w, want.filter, o.Filter)
	require.Equal(w, want.entered, w.tr.entered[o.Call], "the code is entered once, or not at all")
	require.Equal(w, want.hooks, w.tr.hooks[o.Call])
	require.Equal(w, strings.Join(unique(want.ends), "; "), o.EndLoop)
	if len(w.behaviors) > 0 && len(want.hooks) > 0 {
		told := w.tr.ended[o.Call]
		told.RevertResults, o.RevertResults = nil, nil
		require.Equal(w, told, o, "what the filters were told is what was returned")
	}
	_, c, err := revert.LoadCall(context.Background(), w.tr.journal, o.Call)
	require.NoError(w, err)
	switch o.Status {
	case tool.StatusDone:
		w.done(ask, o, c, want)
		return
	case tool.StatusDenied:
		require.Nil(w, c.Started)
		require.Equal(w, want.filter, c.Denied.Filter)
		require.Equal(w, want.final, inputOf(w, c.Denied.Input))
		require.NotContains(w, o.Text, "no "+want.final, "the text for the model repeats no argument")
	default:
		require.NotEmpty(w, o.Error.Why)
	}
	require.Equal(w, "null", string(o.Output), "no result beside a call that is not done")
	require.Error(w, o.Err())
	require.Empty(w, o.Result)
}

func (w *filteredRuntime) done(ask agent.BatchCall, o tool.Outcome, c *revert.Call, want words) {
	require.Equal(w, want.to, resultWord(w, o.Result))
	require.Equal(w, want.filter, c.Started.AnsweredBy)
	require.Equal(w, want.final, inputOf(w, c.Started.Input))
	require.Len(w, c.Started.Replaced, strings.Count(want.final, "+"))
	recorded := c.Done.Output
	if want.changed {
		recorded = c.Done.Delivered
		require.NotEmpty(w, c.Done.DeliveredBy)
		require.Equal(w, want.to == want.raw, c.Done.OutputDigest == c.Done.DeliveredDigest)
	}
	require.Equal(w, want.changed, c.Done.Delivered != nil)
	var r tool.Result
	require.NoError(w, json.Unmarshal(recorded, &r))
	require.Equal(w, r, o.Result, "what is delivered is what is on the journal")
	if want.filter != "" {
		require.Equal(w, effect.Pure, c.Class(), "an answer claims no effect")
		require.Empty(w, o.Changes)
		require.False(w, c.HasEffects())
	}
}

// resultWord is the word in a result.
func resultWord(t interface{ FailNow() }, r tool.Result) string {
	if r.JSON == nil {
		return r.Text
	}
	return inputOf(t, r.JSON)
}

// replays repeats each call by its ID. The runtime returns the stored outcome
// and runs no filter.
func (w *filteredRuntime) replays(tx *agent.Txn, asks []agent.BatchCall, outcomes []tool.Outcome) {
	before := fmt.Sprint(w.tr.hooks)
	for i, ask := range asks {
		again, _ := tx.Invoke(context.Background(), ask.Tool, ask.Input, agent.WithCallID(ask.ID))
		if again.Error != nil {
			again.Error.Fix = outcomes[i].Error.Fix
		}
		require.Equal(w, outcomes[i], again)
	}
	require.Equal(w, before, fmt.Sprint(w.tr.hooks), "no filter is asked about a stored outcome")
}

func unique(list []string) (out []string) {
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

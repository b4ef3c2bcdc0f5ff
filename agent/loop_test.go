package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/proof/fakemodel"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/wire"
)

// loopBench is a model of one format that plays a script, and tools that write down what they are called with.
type loopBench struct {
	t     *testing.T
	model *fakemodel.Model
	rt    *agent.Runtime
	s     *agent.Session
	loop  agent.Loop

	mu       sync.Mutex
	ran      []string
	kept     []agent.Conversation
	statuses []tool.Status
	block    func(ctx context.Context) // inside of each call
}

func (b *loopBench) note(name string, in json.RawMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ran = append(b.ran, name+" "+string(in))
}

// tools are one that only reads, one that writes, one that may run beside others, and one that has no way back.
func (b *loopBench) tools() []tool.Tool {
	var all []tool.Tool
	for name, s := range map[string]tool.Spec{
		"look":  {EffectClass: effect.Pure},
		"write": {EffectClass: effect.Pivot},
		"ping":  {EffectClass: effect.Pivot, Hints: tool.Hints{Concurrent: true}},
		"ask":   {EffectClass: effect.Pivot, Tags: []string{"ask"}},
		"never": {EffectClass: effect.Pure, Tags: []string{"never"}},
	} {
		s.Name, s.Description = name, "Is called "+name+"."
		s.Input = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
		s.Execute = func(ctx context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			b.note(name, in)
			if b.block != nil {
				b.block(ctx)
			}
			return tool.Text(name + " has seen " + string(in)), nil
		}
		tl, err := tool.FromSpec(s)
		all = append(all, mustTool(b.t, tl, err))
	}
	return all
}

func byTags(_ context.Context, r perm.Request) (perm.Decision, error) {
	effect := perm.Allow
	for _, tag := range r.Tool.Tags {
		effect = map[string]perm.Effect{"ask": perm.Ask, "never": perm.Deny}[tag]
	}
	return perm.NewDecision(effect, perm.Details{Revision: "r1", Reasons: []perm.Reason{{Set: "deny", Text: "the rule of the house", At: "p.rego:1"}}}), nil
}

func newLoopBench(t *testing.T, f wire.Format, script []fakemodel.Turn, opts ...agent.Option) *loopBench {
	b := &loopBench{t: t}
	var err error
	b.model, err = fakemodel.New(string(f), script...)
	require.NoError(t, err)
	b.rt = newRuntime(t, append([]agent.Option{agent.Tools(b.tools()...), agent.Policy(perm.EngineFunc(byTags)), agent.SuspendForApproval()}, opts...)...)
	b.s = newSession(t, b.rt)
	tools, err := b.s.Tools(context.Background())
	require.NoError(t, err)
	a, err := wire.New(f, tools...)
	require.NoError(t, err)
	b.loop = agent.Loop{
		Adapter: a,
		CallModel: func(_ context.Context, p agent.ModelRequest) (json.RawMessage, error) {
			body, err := b.model.Body(p.Messages, p.Tools)
			require.NoError(t, err)
			return b.model.Answer(body)
		},
		Save: func(_ context.Context, c agent.Conversation) error {
			b.kept = append(b.kept, c)
			return nil
		},
		OnResults: func(_ []wire.Call, outcomes []tool.Outcome) {
			for _, o := range outcomes {
				b.statuses = append(b.statuses, o.Status)
			}
		},
	}
	return b
}

func (b *loopBench) user() agent.Conversation {
	return agent.Conversation{Messages: []json.RawMessage{b.model.User("Go on.")}}
}

func (b *loopBench) run(ctx context.Context) (agent.Conversation, error) {
	return b.loop.Run(ctx, begin(b.t, b.s), b.user())
}

func call(name, args string) fakemodel.Call { return fakemodel.Call{Tool: name, Args: args} }

func spoken(text string, calls ...fakemodel.Call) fakemodel.Turn {
	return fakemodel.Turn{Text: text, Calls: calls}
}

// formats runs a test for each provider's format.
func formats(t *testing.T, test func(t *testing.T, f wire.Format)) {
	for _, f := range wire.Formats() {
		t.Run(string(f), func(t *testing.T) { test(t, f) })
	}
}

func TestLoopConverses(t *testing.T) {
	formats(t, func(t *testing.T, f wire.Format) {
		b := newLoopBench(t, f, []fakemodel.Turn{
			spoken("I look.", call("look", `{"n":1}`), call("look", `{"n":2}`), call("write", `{"n":3}`)),
			spoken("", fakemodel.Call{Tool: "write", Args: `{"n":`, Other: `[4]`}, call("nothing", `{"n":1}`), call("write", `{"m":1}`), call("never", `{"n":5}`), call("look", `{"n":1}`)),
			spoken("Done."),
		})
		c, err := b.run(context.Background())
		require.NoError(t, err)
		require.ElementsMatch(t, []string{`look {"n":1}`, `look {"n":2}`}, b.ran[:2])
		require.Equal(t, []string{`write {"n":3}`, `look {"n":1}`}, b.ran[2:])
		ok, bad := tool.StatusDone, tool.StatusInvalid
		require.Equal(t, []tool.Status{ok, ok, ok, bad, bad, bad, tool.StatusDenied, ok}, b.statuses)
		var failed []bool
		for i, told := range b.model.Received() {
			failed = append(failed, told.Failed)
			if told.Failed {
				require.NotContains(t, told.Text, "has seen", i)
			}
		}
		require.Equal(t, []bool{false, false, false, true, true, true, true, false}, failed)
		require.Contains(t, b.model.Received()[4].Text, `there is no tool "nothing"`)
		require.Contains(t, b.model.Received()[6].Text, "the rule of the house")
		require.Contains(t, string(c.Messages[len(c.Messages)-1]), "Done.", "the answer is the last of the history")
		require.Equal(t, "Done.", c.Answer)
		require.Regexp(t, "_tokens|TokenCount|totalTokens|eval_count", string(c.Response), "usage comes with it")
		require.Equal(t, 3, c.Turns)
		require.Equal(t, 6, c.Calls)
		require.False(t, c.Open)
	})
}

// TestAsk checks that Ask begins a conversation, continues one that was answered,
// and refuses one whose calls are open.
func TestAsk(t *testing.T) {
	formats(t, func(t *testing.T, f wire.Format) {
		ctx := context.Background()
		b := newLoopBench(t, f, []fakemodel.Turn{spoken("", call("look", `{"n":1}`)), spoken("One."), spoken("", call("look", `{"n":2}`)), spoken("Two."), spoken("", call("ask", `{"n":3}`))})
		tx := begin(t, b.s)
		c, err := b.loop.Ask(ctx, tx, agent.Conversation{}, "First?")
		require.NoError(t, err)
		require.Equal(t, "One.", c.Answer)
		c, err = b.loop.Ask(ctx, tx, c, "Second?")
		require.NoError(t, err)
		require.Equal(t, "Two.", c.Answer)
		require.Equal(t, []string{`look {"n":1}`, `look {"n":2}`}, b.ran)
		c, err = b.loop.Ask(ctx, tx, c, "Third?")
		require.ErrorIs(t, err, tool.ErrPending)
		require.Empty(t, c.Answer, "an answer belongs to its question")
		same, err := b.loop.Ask(ctx, tx, c, "Fourth?")
		require.ErrorContains(t, err, "continue with Run")
		require.Equal(t, c, same)
		_, err = agent.Loop{}.Ask(ctx, tx, agent.Conversation{}, "x")
		require.Error(t, err)
	})
}

// A model that names calls badly is told so, and what it names well is run.
func TestLoopAnswersBadIDs(t *testing.T) {
	for _, f := range []wire.Format{wire.OpenAIChat, wire.OpenAIResponses, wire.Anthropic, wire.Bedrock} {
		t.Run(string(f), func(t *testing.T) {
			noID := fakemodel.Call{Tool: "look", Args: `{"n":1}`, NoID: true}
			twice := fakemodel.Call{Tool: "look", Args: `{"n":2}`, ID: "same"}
			b := newLoopBench(t, f, nil)
			script, err := fakemodel.New(string(f), spoken("", noID, twice, twice, call("look", `{"n":3}`)))
			require.NoError(t, err)
			body, err := script.Body([]json.RawMessage{script.User("x")}, nil)
			require.NoError(t, err)
			turn, err := script.Answer(body)
			require.NoError(t, err)
			answer, err := fakemodel.New(string(f), spoken("Done."))
			require.NoError(t, err)
			body, err = answer.Body([]json.RawMessage{answer.User("x")}, nil)
			require.NoError(t, err)
			final, err := answer.Answer(body)
			require.NoError(t, err)
			replies := []json.RawMessage{turn, final}
			var sent agent.ModelRequest
			b.loop.CallModel = func(_ context.Context, p agent.ModelRequest) (json.RawMessage, error) {
				sent = p
				r := replies[0]
				replies = replies[1:]
				return r, nil
			}
			_, err = b.run(context.Background())
			require.NoError(t, err)
			require.Equal(t, []string{`look {"n":3}`}, b.ran)
			last := ""
			for _, m := range sent.Messages[2:] {
				last += string(m)
			}
			require.Contains(t, last, "it has no id")
			require.Equal(t, 2, strings.Count(last, "another call of this turn has the same id"))
		})
	}
}

// Ids that a provider gives again in each turn, as some do, and two conversations of one session, are not one call.
func TestLoopTellsTurnsApart(t *testing.T) {
	same := fakemodel.Call{Tool: "write", Args: `{"n":1}`, ID: "call_0"}
	b := newLoopBench(t, wire.OpenAIChat, []fakemodel.Turn{spoken("", same), spoken("", same), spoken("Done."), spoken("", same), spoken("Done.")})
	c, err := b.run(context.Background())
	require.NoError(t, err)
	again, err := b.loop.Run(context.Background(), begin(t, b.s), c)
	require.NoError(t, err)
	require.Equal(t, c.Messages, again.Messages, "it has its answer")
	c.Messages = append(c.Messages, b.model.User("Once more."))
	_, err = b.loop.Run(context.Background(), begin(t, b.s), c)
	require.NoError(t, err)
	require.Len(t, b.ran, 3)
}

func TestLoopWaitsForApproval(t *testing.T) {
	formats(t, func(t *testing.T, f wire.Format) {
		ctx := context.Background()
		b := newLoopBench(t, f, []fakemodel.Turn{
			spoken("", call("write", `{"n":1}`), call("ask", `{"n":2}`), call("write", `{"n":3}`)),
			spoken("Done."),
		})
		tx := begin(t, b.s)
		c, err := b.loop.Run(ctx, tx, b.user())
		require.ErrorIs(t, err, tool.ErrPending)
		require.Len(t, c.Waiting, 1)
		require.Equal(t, []string{`write {"n":1}`}, b.ran, "what comes after the call that waits waits too")
		require.Equal(t, c, b.kept[len(b.kept)-1])
		require.Empty(t, b.statuses)

		again, err := b.loop.Run(ctx, tx, c)
		require.ErrorIs(t, err, tool.ErrPending, "nobody has answered")
		require.Equal(t, c.Waiting, again.Waiting)
		require.Len(t, b.ran, 1)

		_, err = b.loop.Run(ctx, begin(t, b.s), again)
		require.ErrorContains(t, err, "in the midst of a turn in transaction "+tx.ID())

		var stored agent.Conversation // as another process finds it
		raw, err := json.Marshal(again)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &stored))
		require.NoError(t, b.rt.Answer(ctx, agent.Answer{Call: c.Waiting[0], Approved: true, By: "boss"}))
		_, err = b.loop.Run(ctx, tx, stored)
		require.NoError(t, err)
		require.Equal(t, []string{`write {"n":1}`, `ask {"n":2}`, `write {"n":3}`}, b.ran)
		require.Equal(t, []tool.Status{tool.StatusDone, tool.StatusDone, tool.StatusDone}, b.statuses)
		require.Equal(t, `ask has seen {"n":2}`, b.model.Received()[1].Text)
	})
}

func TestLoopTellsOfARefusedApproval(t *testing.T) {
	ctx := context.Background()
	b := newLoopBench(t, wire.Anthropic, []fakemodel.Turn{spoken("", call("ask", `{"n":2}`)), spoken("A pity.")})
	tx := begin(t, b.s)
	c, err := b.loop.Run(ctx, tx, b.user())
	require.ErrorIs(t, err, tool.ErrPending)
	require.NoError(t, b.rt.Answer(ctx, agent.Answer{Call: c.Waiting[0], By: "boss", Why: "not today"}))
	_, err = b.loop.Run(ctx, tx, c)
	require.NoError(t, err)
	require.Empty(t, b.ran)
	require.Equal(t, []tool.Status{tool.StatusDenied}, b.statuses)
	require.True(t, b.model.Received()[0].Failed)
}

// A process that dies between the journal and the model's answer handles the same turn again: whether it kept the model's
// words, or has to hear them again, no call has two effects.
func TestLoopRepeatsNothing(t *testing.T) {
	formats(t, func(t *testing.T, f wire.Format) {
		ctx := context.Background()
		script := []fakemodel.Turn{spoken("", call("write", `{"n":1}`), call("write", `{"n":1}`), call("look", `{"n":2}`)), spoken("Done.")}
		for name, from := range map[string]int{"the turn was kept": 0, "the turn is heard again": -1} {
			t.Run(name, func(t *testing.T) {
				b := newLoopBench(t, f, script)
				died := errors.New("died")
				other := call("write", `{"n":1}`)
				other.ID = "another"
				b.loop.OnResults = nil
				keep, first := b.loop.Save, true
				b.loop.Save = func(ctx context.Context, c agent.Conversation) error {
					if !c.Open && first { // the journal holds the results, and the model has not got them
						first = false
						return died
					}
					return keep(ctx, c)
				}
				tx := begin(t, b.s)
				_, err := b.loop.Run(ctx, tx, b.user())
				require.ErrorIs(t, err, died)
				require.Len(t, b.ran, 3, "two calls that are the same are two calls")
				c := b.kept[0]
				if from < 0 {
					c.Open, c.Response, c.Turns = false, nil, 0
					calls := script[0].Calls // another time they have other ids
					b.model, err = fakemodel.New(string(f), spoken("", call(calls[0].Tool, calls[0].Args), other, call("look", `{ "n": 2 }`)), script[1])
					require.NoError(t, err)
				}
				c, err = b.loop.Run(ctx, tx, c)
				require.NoError(t, err)
				require.Len(t, b.ran, 3)
				require.Equal(t, 3, c.Calls)
				for _, told := range b.model.Received() {
					require.False(t, told.Failed)
					require.Contains(t, told.Text, "has seen")
				}
			})
		}
	})
}

// TestLoopTellsOfWhatWasReverted checks that the loop does not report a call
// as a success after it was reverted.
func TestLoopTellsOfWhatWasReverted(t *testing.T) {
	ctx := context.Background()
	b := newLoopBench(t, wire.Anthropic, []fakemodel.Turn{spoken("", call("write", `{"n":1}`), call("ask", `{"n":1}`)), spoken("Hm.")})
	tx := begin(t, b.s)
	c, err := b.loop.Run(ctx, tx, b.user())
	require.ErrorIs(t, err, tool.ErrPending)
	txn, err := revert.Load(ctx, b.rt.Journal(), tx.ID())
	require.NoError(t, err)
	_, err = tx.Revert(ctx, revert.Options{Calls: []string{txn.Calls[0].Ref.Call}})
	require.ErrorIs(t, err, agent.ErrPartialRevert, "a call that cannot be reverted")
	require.NoError(t, b.rt.Answer(ctx, agent.Answer{Call: c.Waiting[0], Approved: true, By: "boss"}))
	_, err = b.loop.Run(ctx, tx, c)
	require.NoError(t, err)
	require.Equal(t, []tool.Status{tool.StatusUnknown, tool.StatusDone}, b.statuses)
}

func TestLoopOrder(t *testing.T) {
	for _, tt := range []struct {
		name  string
		order agent.Concurrency
		most  int // calls at once
	}{
		{"reads together", agent.ConcurrentReads, 3},
		{"in sequence", agent.Sequential, 1},
		{"all together", agent.FullyConcurrent, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newLoopBench(t, wire.Anthropic, []fakemodel.Turn{
				spoken("", call("look", `{"n":1}`), call("ping", `{"n":2}`), call("look", `{"n":3}`), call("write", `{"n":4}`), call("write", `{"n":5}`), call("look", `{"n":6}`)),
				spoken("Done."),
			})
			b.loop.Order = tt.order
			var mu sync.Mutex
			now, most := 0, 0
			full := make(chan struct{})
			b.block = func(ctx context.Context) {
				mu.Lock()
				now++
				if most = max(most, now); now == tt.most {
					select {
					case <-full:
					default:
						close(full)
					}
				}
				mu.Unlock()
				<-full // the widest group is the first one, in each order
				mu.Lock()
				now--
				mu.Unlock()
			}
			_, err := b.run(context.Background())
			require.NoError(t, err)
			require.Equal(t, tt.most, most)
			require.Equal(t, 6, len(b.ran))
			if tt.order != agent.FullyConcurrent {
				require.Equal(t, []string{`write {"n":4}`, `write {"n":5}`, `look {"n":6}`}, b.ran[3:])
			}
			for i, told := range b.model.Received() {
				require.Contains(t, told.Text, `{"n":`+string(rune('1'+i))+`}`, "the order of results is that of the calls")
			}
		})
	}
}

func TestLoopEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	b := newLoopBench(t, wire.OpenAIChat, []fakemodel.Turn{spoken("", call("look", `{"n":1}`), call("write", `{"n":2}`)), spoken("Done.")})
	b.block = func(context.Context) { cancel() }
	tx := begin(t, b.s)
	c, err := b.loop.Run(ctx, tx, b.user())
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, c.Open)
	require.Len(t, b.ran, 1)
	b.block = nil
	_, err = b.loop.Run(context.Background(), tx, c)
	require.NoError(t, err)
	require.Len(t, b.ran, 2)
	require.Equal(t, 2, len(b.model.Received()))

	b.loop.CallModel = func(ctx context.Context, _ agent.ModelRequest) (json.RawMessage, error) { return nil, ctx.Err() }
	_, err = b.loop.Run(ctx, tx, b.user())
	require.ErrorIs(t, err, context.Canceled)
}

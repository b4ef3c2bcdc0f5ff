package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/filter"
)

func TestBadFilters(t *testing.T) {
	none := func(context.Context, filter.Call) error { return nil }
	for says, filters := range map[string][]filter.Filter{
		"a name is":         {{Before: none}},
		"has no hook":       {{Name: "idle"}},
		`are named "twice"`: {{Name: "twice", Before: none}, {Name: "twice", Before: none}},
	} {
		_, err := agent.New(quiet(), agent.Filters(filters...))
		require.ErrorContains(t, err, says)
	}
}

// sender is a tool whose calls can be held, and says what it was given.
func sender(t *testing.T, sent *[]string) tool.Tool {
	tl, err := tool.CreateWith("send", "", nil, func(_ context.Context, _ ctxperm.ToolContext, in string) (string, error) {
		*sent = append(*sent, in)
		return "sent " + in, nil
	}, tool.Effect(effect.Deferrable))
	return mustTool(t, tl, err)
}

// TestFiltersOfHeldCalls: a held call is filtered when it is held, and again when it is
// released; then it can be refused, which leaves it in the queue, and nothing else.
func TestFiltersOfHeldCalls(t *testing.T) {
	ctx, seen, sent, react := context.Background(), []string{}, []string{}, func(filter.Call) error { return nil }
	hold := perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Hold, perm.Details{}), nil
	})
	f := filter.Filter{
		Name: "watch",
		Before: func(_ context.Context, f filter.Call) error {
			if !f.Released() {
				f.Replace("to all")
				return nil
			}
			seen = append(seen, "released with "+string(f.Input())+" after "+f.Decision().Effect)
			return react(f)
		},
		After: func(_ context.Context, _ filter.Call, r tool.Result) (tool.Result, error) {
			r.Text += ", as the filter saw"
			return r, nil
		},
		Ended: func(_ context.Context, _ filter.Call, o tool.Outcome) { seen = append(seen, string(o.Status)) },
	}
	rt := newRuntime(t, agent.Tools(sender(t, &sent)), agent.Policy(hold), agent.Filters(f))
	tx := begin(t, newSession(t, rt))
	held, err := tx.Invoke(ctx, "send", "to one")
	require.NoError(t, err)
	require.Equal(t, tool.StatusHeld, held.Status)
	for says, r := range map[string]func(filter.Call) error{
		"not now":            func(filter.Call) error { return errors.New("not now") },
		"cannot be answered": func(f filter.Call) error { f.Answer(tool.Text("x")); return nil },
		"it panicked":        func(filter.Call) error { panic("no") },
	} {
		react = r
		err := tx.Commit(ctx)
		require.ErrorIs(t, err, agent.ErrNotReleased)
		require.ErrorIs(t, err, tool.ErrDenied)
		require.ErrorContains(t, err, says)
		require.Empty(t, sent)
	}
	react = func(filter.Call) error { return nil }
	require.NoError(t, tx.Commit(ctx))
	require.Equal(t, []string{"to all"}, sent)
	last := tx.Released()[3]
	require.Equal(t, "sent to all, as the filter saw", last.Text)
	require.Equal(t, "held", seen[0])
	require.Equal(t, []string{`released with "to all" after hold`, "done"}, seen[len(seen)-2:])
	_, c, err := revert.LoadCall(ctx, rt.Journal(), held.Call)
	require.NoError(t, err)
	require.Len(t, c.Started.Replaced, 1)
	require.Equal(t, []string{"watch"}, c.Done.DeliveredBy)
	fsckClean(t, rt)
}

// TestReplacedBeforeItWaited: what was approved is what runs, also by a filter that
// would change it each time, in another process.
func TestReplacedBeforeItWaited(t *testing.T) {
	ctx, st, sent := context.Background(), newStore(), []string{}
	more := filter.Filter{Name: "more", Before: func(_ context.Context, f filter.Call) error {
		var in string
		if err := json.Unmarshal(f.Input(), &in); err != nil {
			return err
		}
		f.Replace(in + "+")
		return nil
	}}
	asksOnceReplaced := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		if strings.Contains(string(r.Call.Args), "+") {
			return perm.NewDecision(perm.Ask, perm.Details{}), nil
		}
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
	life := func(filters ...filter.Filter) (*agent.Runtime, func()) {
		j := st.open(nil)
		rt, err := agent.New(quiet(), agent.Tools(sender(t, &sent)), agent.Policy(asksOnceReplaced), agent.SuspendForApproval(), agent.Journal(j), agent.Filters(filters...))
		require.NoError(t, err)
		return rt, func() { require.NoError(t, errors.Join(rt.Close(), j.Close())) }
	}
	rt, end := life(more)
	tx := begin(t, newSession(t, rt))
	asked, _ := tx.Invoke(ctx, "send", "x", agent.WithCallID("1"))
	require.Equal(t, tool.StatusPending, asked.Status)
	end()
	rt, end = life(more)
	defer end()
	require.NoError(t, rt.Answer(ctx, agent.Answer{Call: asked.Call, Approved: true, By: "boss"}))
	tx, err := rt.ResumeTxn(ctx, tx.ID())
	require.NoError(t, err)
	out, err := tx.Resume(ctx, asked.Call)
	require.NoError(t, err)
	require.Equal(t, "sent x+", out.Text)
	again, err := tx.Invoke(ctx, "send", "x", agent.WithCallID("1"))
	require.NoError(t, err, "the caller gave x, whatever ran")
	require.Equal(t, out.Text, again.Text)
	other, _ := tx.Invoke(ctx, "send", "x+", agent.WithCallID("1"))
	require.Equal(t, tool.StatusInvalid, other.Status)
	require.Equal(t, []string{"x+"}, sent)
	fsckClean(t, rt)
}

// TestJournalFailsAroundFilters makes each append fail in turn. The runtime
// never returns a result that the journal does not hold, and a denial stays a
// denial.
func TestJournalFailsAroundFilters(t *testing.T) {
	ctx := context.Background()
	for _, how := range []string{"answer", "deny", "after", "refuse"} {
		for n := 1; ; n++ {
			fails, failed := nth(n, true, everything)
			st, sent := newStore(), []string{}
			j := st.open(fails)
			f := filter.Filter{
				Name: "f", Before: func(_ context.Context, f filter.Call) error {
					switch how {
					case "answer":
						f.Answer(tool.Text("from the filter"))
					case "deny":
						return errors.New("no")
					}
					return nil
				},
				After: func(_ context.Context, _ filter.Call, r tool.Result) (tool.Result, error) {
					if how == "refuse" {
						return r, errors.New("no")
					}
					r.Text = "other"
					return r, nil
				},
			}
			rt, err := agent.New(quiet(), agent.Tools(sender(t, &sent)), agent.Policy(allowAll()), agent.Journal(j), agent.Filters(f))
			require.NoError(t, err)
			var out tool.Outcome
			if s, err := rt.Session(ctx, perm.Principal{ID: "coder"}); err == nil {
				if tx, err := s.Begin(ctx); err == nil {
					out, _ = tx.Invoke(ctx, "send", "x")
				}
			}
			hit := failed()
			require.NoError(t, errors.Join(rt.Close(), j.Close()))
			if out.Call != "" {
				want := map[string]tool.Status{"answer": tool.StatusDone, "deny": tool.StatusDenied, "after": tool.StatusDone, "refuse": tool.StatusVerifyFailed}[how]
				_, c, err := revert.LoadCall(ctx, st.mem, out.Call)
				switch {
				case !hit:
					require.Equal(t, want, out.Status, how)
				case out.Status == tool.StatusDone:
					require.NoError(t, err)
					require.NotNil(t, c.Done, "%s: told done when append %d failed", how, n)
				case how == "deny":
					require.Equal(t, tool.StatusDenied, out.Status)
				}
				if how == "answer" || how == "deny" {
					require.Empty(t, sent)
				}
				if how == "refuse" {
					require.NotEqual(t, tool.StatusDone, out.Status)
				}
			}
			if !hit {
				break
			}
		}
	}
}

// TestPolicyRedactsWhatFiltersDeliver: what a filter puts into a result, or says, is
// held to the policy's redact like all else.
func TestPolicyRedactsWhatFiltersDeliver(t *testing.T) {
	ctx, shown := context.Background(), ""
	look, err := tool.Create("look", "", func(context.Context, string) (string, error) { return "fine", nil }, tool.Pure())
	e := mustLoad(t, rego.Options{Modules: map[string]string{"p.rego": "package remit\nredact contains \"/args\" if true\nallow contains \"all\" if true"}})
	leak := filter.Filter{
		Name: "leak", Before: func(_ context.Context, f filter.Call) error {
			shown = string(f.RedactedInput())
			f.EndLoop("seen " + string(f.Input()))
			return nil
		},
		After: func(_ context.Context, f filter.Call, _ tool.Result) (tool.Result, error) {
			return tool.Text("it was " + string(f.Input())), nil
		},
		Ended: func(_ context.Context, _ filter.Call, o tool.Outcome) { shown += o.Text },
	}
	rt := newRuntime(t, agent.Tools(mustTool(t, look, err)), agent.Policy(e), agent.Filters(leak))
	out, err := begin(t, newSession(t, rt)).Invoke(ctx, "look", "hunter2hunter2")
	require.NoError(t, err)
	require.Contains(t, out.Text, "(hidden)")
	all, err := json.Marshal(out)
	require.NoError(t, err)
	_, c, err := revert.LoadCall(ctx, rt.Journal(), out.Call)
	require.NoError(t, err)
	record, err := json.Marshal([]any{c.Started, c.Done})
	require.NoError(t, err)
	require.NotContains(t, string(all)+string(record)+shown, "hunter2")
}

// TestFiltersSeeBatches: once around all calls, who are denied where it is refused.
func TestFiltersSeeBatches(t *testing.T) {
	ctx, seen, refuse := context.Background(), []string{}, ""
	look, err := tool.Create("look", "", func(_ context.Context, in string) (string, error) { return in, nil }, tool.Pure())
	f := filter.Filter{
		Name: "batches",
		Batch: func(_ context.Context, b filter.Batch) error {
			seen = append(seen, "begins")
			if b.Turn() != 1 || len(b.Calls()) != 2 {
				return errors.New("not the batch that was made")
			}
			if refuse == "panic" {
				panic("no")
			}
			return nil
		},
		Before: func(_ context.Context, f filter.Call) error {
			index, count := f.BatchPosition()
			if f.Turn() > 0 && (count != 2 || index > 1) {
				return errors.New("not its place")
			}
			return nil
		},
		BatchEnded: func(_ context.Context, _ filter.Batch, outcomes []tool.Outcome) {
			for _, o := range outcomes {
				seen = append(seen, string(o.Status))
			}
			panic("nobody is harmed")
		},
	}
	for _, refuse = range []string{"", "panic"} {
		seen = nil
		rt := newRuntime(t, agent.Tools(mustTool(t, look, err)), agent.Policy(allowAll()), agent.Filters(f))
		tx := begin(t, newSession(t, rt))
		_, err := tx.Invoke(ctx, "look", "alone")
		require.NoError(t, err)
		outcomes := tx.InvokeAll(ctx, []agent.BatchCall{{Tool: "look", Input: "a"}, {Tool: "look", Input: 5}})
		want := tool.StatusDone
		if refuse != "" {
			want = tool.StatusDenied
			require.Equal(t, "batches", outcomes[0].Filter)
			require.Contains(t, outcomes[0].Text, "it refused the batch")
		}
		require.Equal(t, want, outcomes[0].Status)
		require.Equal(t, tool.StatusInvalid, outcomes[1].Status)
		require.Equal(t, []string{"begins", string(want), "invalid"}, seen)
		require.Empty(t, tx.InvokeAll(ctx, nil))
	}
}

// TestValuesGoOn: what a filter hands on in a context comes to the tool, and the end of
// the caller's patience does too.
func TestValuesGoOn(t *testing.T) {
	type key struct{}
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), key{}, "outer"))
	defer cancel(nil)
	look, err := tool.Create("look", "", func(ctx context.Context, in string) (string, error) {
		if in == "stop" {
			cancel(errors.New("enough"))
		}
		word, _ := ctx.Value(key{}).(string)
		return word, ctx.Err()
	}, tool.Pure())
	f := filter.Filter{Name: "f", Before: func(_ context.Context, f filter.Call) error {
		f.SetContext(context.WithValue(context.Background(), key{}, "inner"))
		return nil
	}}
	rt := newRuntime(t, agent.Tools(mustTool(t, look, err)), agent.Policy(allowAll()), agent.Filters(f))
	tx := begin(t, newSession(t, rt))
	out, err := tx.Invoke(ctx, "look", "go")
	require.NoError(t, err)
	require.Equal(t, "inner", out.Text)
	_, err = tx.Invoke(ctx, "look", "stop")
	require.ErrorIs(t, err, tool.ErrCancelled)
}

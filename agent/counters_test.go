package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

const paySchema = `{"type":"object","additionalProperties":false,"properties":{"amount":{"type":"number"},"fee":{"type":"number"},"how":{"type":"string"}}}`

// payTool ends as its argument says, and counts two sums.
func payTool(t *testing.T, changes ...func(*tool.Spec)) tool.Tool {
	s := tool.Spec{
		Name: "pay", Input: json.RawMessage(paySchema), Counters: map[string]string{"spend": "amount", "fees": "fee"},
		EffectClass: effect.Pivot,
		Execute: func(_ context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			var a struct{ How string }
			if err := json.Unmarshal(in, &a); err != nil {
				return tool.Result{}, err
			}
			switch a.How {
			case "fail":
				return tool.Result{}, errors.New("lost")
			case "nothing":
				return tool.Result{}, tool.NoEffect(errors.New("refused at the door"))
			case "panic":
				panic("no")
			}
			return tool.Result{Text: a.How}, nil
		},
		Verify: func(_ context.Context, s verify.Subject) verify.Verdict {
			switch {
			case len(s.Output) == 0 || string(s.Output) == "null":
				return verify.Verdict{}
			case string(s.Output) == `"wrong"`:
				return verify.Absent("it is not there")
			}
			return verify.Applied("")
		},
	}
	for _, c := range changes {
		c(&s)
	}
	tl, err := tool.FromSpec(s)
	return mustTool(t, tl, err)
}

// decides denies, asks and allows as the call's argument says.
func decides() perm.Engine {
	return perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		var a struct{ How string }
		_ = json.Unmarshal(r.Call.Args, &a)
		effect := map[string]perm.Effect{"deny": perm.Deny, "ask": perm.Ask}
		e, ok := effect[a.How]
		if !ok {
			e = perm.Allow
		}
		return perm.NewDecision(e, perm.Details{Reasons: []perm.Reason{{Text: "said so"}}}), nil
	})
}

// TestCountsAreThoseOfTheJournal makes random calls, alone and side by side, over
// random spans of time, and holds what the session counted against what the
// journal says, and both against a sum made by hand.
func TestCountsAreThoseOfTheJournal(t *testing.T) {
	for seed := range uint64(statcheck.Size(4, 40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r, h, ctx := rand.New(rand.NewPCG(seed, 1)), hosttest.New(seed), context.Background()
			look, err := tool.Create("look", "", func(_ context.Context, in string) (string, error) { return in, nil }, tool.Pure())
			rt := newRuntime(t, agent.Host(h), agent.Tools(payTool(t), mustTool(t, look, err)), agent.Policy(decides()), agent.SuspendForApproval())
			s := newSession(t, rt)
			tx, spent := begin(t, s), new(big.Rat)
			var pending []string
			seen, erased := map[tool.Status]int{}, 0
			var calls []string
			note := func(o tool.Outcome, amount string) {
				seen[o.Status]++
				if o.Call != "" && r.IntN(3) == 0 {
					calls = append(calls, o.Call)
				}
				switch o.Status {
				case tool.StatusPending:
					pending = append(pending, o.Call)
				case tool.StatusDone, tool.StatusUnknown, tool.StatusVerifyFailed:
					n, _ := new(big.Rat).SetString(amount)
					spent.Add(spent, n)
				default: // nothing was spent
				}
			}
			for range 60 {
				var batch []agent.BatchCall
				var cost []string
				for range 1 + r.IntN(4) {
					how := []string{"ok", "fail", "nothing", "panic", "deny", "ask", "wrong", "bad", "look"}[r.IntN(9)]
					amount := fmt.Sprintf("%d.%02d", r.IntN(50), r.IntN(100))
					ask := agent.BatchCall{Tool: "pay", Input: tool.Args{"amount": json.Number(amount), "how": how}}
					switch how {
					case "bad":
						ask.Input = tool.Args{"amount": "-1"}
					case "look":
						ask, amount = agent.BatchCall{Tool: "look", Input: "x"}, "0"
					}
					batch, cost = append(batch, ask), append(cost, amount)
				}
				for i, o := range tx.InvokeAll(ctx, batch) {
					note(o, cost[i])
				}
				h.Advance([]time.Duration{0, time.Second, 25 * time.Second, 11 * time.Minute, 5 * time.Hour}[r.IntN(5)])
				if len(pending) > 0 && r.IntN(2) == 0 {
					_ = rt.Answer(ctx, agent.Answer{Call: pending[0], Approved: r.IntN(2) == 0, By: "boss"})
					o, _ := tx.Resume(ctx, pending[0])
					pending = pending[1:]
					a, _ := rt.AmountOf(ctx, o.Call)
					note(o, a)
				}
				if r.IntN(6) == 0 {
					require.NoError(t, tx.Commit(ctx))
					tx, pending = begin(t, s), nil
					for _, call := range calls { // an erasure gives no budget back
						if _, err := rt.Erase(ctx, call, "boss", "a test"); err == nil {
							erased++
						} else {
							require.ErrorIs(t, err, revert.ErrNotEnded)
						}
					}
					calls = nil
				}
				now := h.Now()
				live := agent.FactsAt(s, now)
				rebuilt, err := agent.RebuiltAt(ctx, s, now)
				require.NoError(t, err)
				require.Equal(t, live, rebuilt)
				if sum, ok := live.Tools.Of("pay"); ok {
					got, valid := new(big.Rat).SetString(string(sum.Sums["spend"]))
					require.True(t, valid)
					require.Zero(t, got.Cmp(spent), "%s is not %s", sum.Sums["spend"], spent.FloatString(4))
				}
			}
			for _, st := range []tool.Status{tool.StatusDone, tool.StatusDenied, tool.StatusPending, tool.StatusFailed, tool.StatusUnknown, tool.StatusVerifyFailed, tool.StatusInvalid} {
				require.NotZero(t, seen[st], "%s never happened", st)
			}
			require.NotZero(t, erased)
		})
	}
}

// TestWindowsForget: what happened long ago is in the whole session alone, and a
// policy finds zeros where nothing was counted.
func TestWindowsForget(t *testing.T) {
	h, ctx := hosttest.New(1), context.Background()
	rt := newRuntime(t, agent.Host(h), agent.Tools(payTool(t)), agent.Policy(decides()))
	s := newSession(t, rt)
	spend := func() (out [4]string) {
		c, _ := agent.FactsAt(s, h.Now()).Tools.Of("pay")
		for i, tally := range []perm.Counts{c.Windows["1m"], c.Windows["1h"], c.Windows["24h"], c.Counts} {
			out[i] = fmt.Sprintf("%d %s", tally.Run, tally.Sums["spend"])
		}
		return out
	}
	require.Equal(t, [4]string{"0 0", "0 0", "0 0", "0 0"}, spend())
	tx := begin(t, s)
	pay := func(amount string) {
		_, err := tx.Invoke(ctx, "pay", tool.Args{"amount": json.Number(amount), "how": "ok"})
		require.NoError(t, err)
	}
	pay("0.1")
	h.Advance(23*time.Hour + 30*time.Minute)
	pay("0.2")
	h.Advance(10 * time.Minute)
	pay("1e-7")
	require.Equal(t, [4]string{"1 1e-7", "2 0.2000001", "3 0.3000001", "3 0.3000001"}, spend())
	h.Advance(time.Hour)
	require.Equal(t, [4]string{"0 0", "0 0", "2 0.2000001", "3 0.3000001"}, spend())
	_, err := tx.Revert(ctx, revert.Options{})
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.Equal(t, [4]string{"0 0", "0 0", "2 0.2000001", "3 0.3000001"}, spend(), "what was spent is not given back")
}

func TestCountersThatCannotCount(t *testing.T) {
	for want, counters := range map[string]map[string]string{
		`counter "spend": "sum" is no argument`:           {"spend": "sum"},
		`counter "spend": the schema of argument "how"`:   {"spend": "how"},
		`counter "Spend": a name is lower-case`:           {"Spend": "amount"},
		`counter "spend.x": a name is lower-case letters`: {"spend.x": "amount"},
	} {
		s := payTool(t).Spec()
		s.Counters = counters
		_, err := tool.FromSpec(s)
		require.ErrorContains(t, err, want)
	}
	rt := newRuntime(t, agent.Tools(payTool(t)), agent.Policy(allowAll()))
	_, err := begin(t, newSession(t, rt)).Invoke(t.Context(), "pay", tool.Args{"amount": -1})
	require.ErrorIs(t, err, tool.ErrInvalid)
	require.ErrorContains(t, err, `argument "amount": it is counted as "spend", so valid is a number that is not negative`)
}

// TestCountedCallsAreDurable: a call that raises a counter is on stable storage
// when its outcome is seen, also one without an effect.
func TestCountedCallsAreDurable(t *testing.T) {
	for _, counted := range []bool{true, false} {
		tl := payTool(t, func(s *tool.Spec) {
			s.EffectClass = effect.Pure
			if !counted {
				s.Counters = nil
			}
		})
		j := &durable{Journal: journal.Memory()}
		rt := newRuntime(t, agent.Tools(tl), agent.Policy(allowAll()), agent.Journal(j))
		tx := begin(t, newSession(t, rt))
		for _, how := range []string{"ok", "fail"} {
			j.n = 0
			_, _ = tx.Invoke(t.Context(), "pay", tool.Args{"amount": 1, "how": how})
			require.Equal(t, counted, j.n > 0)
		}
	}
}

// durable counts batches that were to be durable.
type durable struct {
	journal.Journal
	n int
}

func (d *durable) Append(ctx context.Context, b journal.Batch) error {
	if b.Durable {
		d.n++
	}
	return d.Journal.Append(ctx, b)
}

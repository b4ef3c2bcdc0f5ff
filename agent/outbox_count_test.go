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
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// wires is a tool that pays at the commit, and counts what it pays. What its calls
// come to is said in their order.
func wires(t *testing.T, ends *[]error) tool.Tool {
	tl, err := tool.FromSpec(tool.Spec{
		Name: "wire", EffectClass: effect.Deferrable, Counters: map[string]string{"spend": "amount"},
		Input: json.RawMessage(`{"type":"object","properties":{"amount":{"type":"number"}},"required":["amount"],"additionalProperties":false}`),
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			err := (*ends)[0]
			*ends = (*ends)[1:]
			return tool.Text("paid"), err
		},
	})
	return mustTool(t, tl, err)
}

// TestHeldCallsAreCountedOnce makes random transactions of held calls, which are
// released, tried again, dropped and lost, and holds what the session counted
// against what the journal says, and both against a sum made by hand.
func TestHeldCallsAreCountedOnce(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r, h, ctx := rand.New(rand.NewPCG(seed, 5)), hosttest.New(seed), context.Background()
			var ends []error
			rt := newRuntime(t, agent.Host(h), agent.Tools(wires(t, &ends)), agent.Policy(holdAll()))
			s := newSession(t, rt)
			spent, run, failed := new(big.Rat), 0, 0
			held := map[string]*big.Rat{}
			look := func(at string) {
				now := h.Now()
				live := agent.FactsAt(s, now)
				rebuilt, err := agent.RebuiltAt(ctx, s, now)
				require.NoError(t, err)
				require.Equal(t, live, rebuilt, at)
				want := new(big.Rat).Set(spent)
				for _, a := range held {
					want.Add(want, a)
				}
				c, _ := live.Tools.Of("wire")
				got, valid := new(big.Rat).SetString(string(c.Sums["spend"]))
				require.True(t, valid)
				require.Zero(t, got.Cmp(want), "%s: %s is not %s", at, c.Sums["spend"], want.FloatString(2))
				require.Equal(t, [3]int{run, failed, len(held)}, [3]int{c.Run, c.Failed, c.InFlight}, at)
			}
			for range 14 {
				tx := begin(t, s)
				var ids []string
				amounts := map[string]*big.Rat{}
				for range r.IntN(5) {
					amount := fmt.Sprintf("%d.%02d", r.IntN(50), r.IntN(100))
					out := holds(t, tx, "wire", tool.Args{"amount": json.Number(amount)})
					ids = append(ids, out.Call)
					amounts[out.Call], _ = new(big.Rat).SetString(amount)
					held[out.Call] = amounts[out.Call]
					look("held")
				}
				if len(ids) > 0 && r.IntN(3) == 0 {
					_, err := s.Revert(ctx, ids[0], revert.Options{})
					require.NoError(t, err)
					delete(held, ids[0])
					look("dropped")
					ids = ids[1:]
				}
				h.Advance([]time.Duration{0, time.Minute, 5 * time.Hour}[r.IntN(3)])
				tried := map[string]bool{}
				for n := 0; ; n++ {
					if r.IntN(6) == 0 || n > 9 {
						_, err := tx.Revert(ctx, revert.Options{})
						require.True(t, err == nil || errors.Is(err, agent.ErrPartialRevert), "%v", err)
						for _, id := range ids {
							if _, waits := held[id]; waits && tried[id] {
								failed++ // what it was tried for counts, and adds nothing
							}
							delete(held, id)
						}
						look("reverted")
						break
					}
					ends = nil
					stops := false
					for _, id := range ids {
						if held[id] == nil {
							continue
						}
						end := []error{nil, nil, tool.NoEffect(errors.New("no")), errors.New("lost")}[r.IntN(4)]
						ends = append(ends, end)
						switch {
						case end == nil:
							run++
							spent.Add(spent, amounts[id])
							delete(held, id)
						case end.Error() == "lost":
							failed++
							spent.Add(spent, amounts[id])
							delete(held, id)
							stops = true
						default:
							tried[id], stops = true, true
						}
						if stops {
							break
						}
					}
					err := tx.Commit(ctx)
					require.Equal(t, stops, err != nil, "%v", err)
					look("released")
					if err == nil {
						break
					}
				}
			}
			require.Positive(t, run)
			require.Positive(t, failed)
		})
	}
}

// TestBudgetsCountWhatIsHeld: a place in a budget is taken when a call is held, and
// given back when it is dropped.
func TestBudgetsCountWhatIsHeld(t *testing.T) {
	var ends []error
	limit := perm.Limit{Budget: "transfers", Max: "10", Sum: "spend"}
	engine := perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Hold, perm.Details{Limits: []perm.Limit{limit}}), nil
	})
	rt := newRuntime(t, agent.Tools(wires(t, &ends)), agent.Policy(engine))
	s := newSession(t, rt)
	tx := begin(t, s)
	first := holds(t, tx, "wire", tool.Args{"amount": 6})
	_, err := tx.Invoke(t.Context(), "wire", tool.Args{"amount": 5})
	require.ErrorIs(t, err, tool.ErrDenied)
	require.ErrorContains(t, err, "has 4 left")
	_, err = s.Revert(t.Context(), first.Call, revert.Options{})
	require.NoError(t, err)
	holds(t, tx, "wire", tool.Args{"amount": 10})
	ends = []error{tool.NoEffect(errors.New("no")), nil}
	require.ErrorIs(t, tx.Commit(t.Context()), agent.ErrNotReleased)
	require.NoError(t, tx.Commit(t.Context()), "its own reservation is not in its way")
	_, err = begin(t, s).Invoke(t.Context(), "wire", tool.Args{"amount": 1})
	require.ErrorContains(t, err, "has 0 left")
}

package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
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
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// policy makes a random policy over what the calls of this test differ in.
func policy(t *testing.T, r *rand.Rand) *rego.Engine {
	rules := []string{
		fmt.Sprintf(`allow contains "small" if input.call.args.amount < %d`, r.IntN(60)),
		`allow contains "looks" if input.tool.name == "look"`,
	}
	for _, rule := range []string{
		fmt.Sprintf(`deny contains "large" if input.call.args.amount > %d`, 20+r.IntN(40)),
		fmt.Sprintf(`deny contains "many" if input.session.tools.pay.run > %d`, r.IntN(60)),
		fmt.Sprintf(`deny contains "fast" if input.session.tools.pay.windows["1m"].run > %d`, r.IntN(6)),
		fmt.Sprintf(`deny contains "spent" if input.session.tools.pay.sums.spend > %d`, r.IntN(900)),
		fmt.Sprintf(`deny contains "beside" if input.session.tools.pay.in_flight > %d`, r.IntN(3)),
		fmt.Sprintf(`ask contains "middle" if input.call.args.amount == %d`, r.IntN(50)),
		fmt.Sprintf(`hold contains "later" if input.call.args.amount == %d`, r.IntN(50)),
		`deny contains "again" if input.session.recent[count(input.session.recent)-1].status == "denied"`,
		`deny contains "tainted" if "t" in input.session.labels`,
		`label contains "t" if input.call.args.amount == 13`,
		fmt.Sprintf(`deny contains "late" if input.txn.calls > %d`, r.IntN(40)),
		fmt.Sprintf(`limit contains {"budget": "b", "max": %d, "sum": "spend"} if input.tool.name == "pay"`, 100+r.IntN(900)),
		`deny contains "time" if input.time > "2026-01-02T00:00:00Z"`,
		`require contains "revert" if input.call.args.amount > 40`,
	} {
		if r.IntN(3) == 0 {
			rules = append(rules, rule)
		}
	}
	e, err := rego.New(rego.Options{Sources: []rego.Source{{FS: fstest.MapFS{"p.rego": {Data: []byte("package remit\n\n" + strings.Join(rules, "\n\n") + "\n")}}}}})
	require.NoError(t, err)
	return e
}

// asked remembers what the policy was asked before each call.
type asked struct {
	mu   sync.Mutex
	last map[string]perm.Request // by call: the last decision counts
}

func (a *asked) by(e perm.Engine) perm.Engine {
	return perm.EngineFunc(func(ctx context.Context, r perm.Request) (perm.Decision, error) {
		if r.Purpose == perm.PurposeRun && !r.Access.Dynamic {
			a.mu.Lock()
			a.last[r.Call.ID] = r
			a.mu.Unlock()
		}
		return e.Decide(ctx, r)
	})
}

// TestReplayAgrees makes random calls under a random policy, and compares a
// backtest under others with deciding each call anew by hand.
func TestReplayAgrees(t *testing.T) {
	for seed := range uint64(statcheck.Size(2, 100)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r, h, ctx := rand.New(rand.NewPCG(seed, 3)), hosttest.New(seed), context.Background()
			pay, err := tool.FromSpec(tool.Spec{
				Name: "pay", Input: json.RawMessage(`{"type":"object","required":["amount"],"properties":{"amount":{"type":"number"}}}`),
				Counters: map[string]string{"spend": "amount"},
				Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
					return tool.Result{Text: "paid"}, nil
				},
			})
			require.NoError(t, err)
			look, err := tool.FromSpec(tool.Spec{
				Name: "look", Input: json.RawMessage(`{"type":"object","required":["amount"],"properties":{"amount":{"type":"number"}}}`), EffectClass: effect.Pure,
				Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
					return tool.Result{}, nil
				},
			})
			require.NoError(t, err)
			j, seen, old := journal.Memory(), &asked{last: map[string]perm.Request{}}, policy(t, r)
			rt, err := agent.New(agent.Log(slog.New(slog.DiscardHandler)), agent.Host(h), agent.Journal(j), agent.Tools(pay, look), agent.Policy(seen.by(old)), agent.SuspendForApproval())
			require.NoError(t, err)
			defer func() { require.NoError(t, rt.Close()) }()
			s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
			require.NoError(t, err)
			for range 6 {
				tx, err := s.Begin(ctx)
				require.NoError(t, err)
				for range 8 {
					var batch []agent.BatchCall
					for range 1 + r.IntN(3) {
						batch = append(batch, agent.BatchCall{Tool: []string{"pay", "pay", "look"}[r.IntN(3)], Input: tool.Args{"amount": r.IntN(60)}})
					}
					tx.InvokeAll(ctx, batch)
					h.Advance([]time.Duration{time.Second, time.Minute, 5 * time.Hour}[r.IntN(3)])
				}
				_ = tx.Commit(ctx)
			}
			same, err := replay.Run(ctx, agent.RecordedDecisions(ctx, j, s.ID()), replay.Options{New: old})
			require.NoError(t, err)
			require.Empty(t, same.Changes)
			require.Empty(t, same.Undecidable)
			require.Equal(t, len(seen.last), same.Same)
			for range 20 {
				other := policy(t, r)
				got, err := replay.Run(ctx, agent.RecordedDecisions(ctx, j, s.ID()), replay.Options{New: other, Old: old})
				require.NoError(t, err)
				want := replay.Report{}
				for _, req := range seen.last {
					was, is := byHand(t, old, req), byHand(t, other, req)
					switch {
					case is == was:
						want.Same++
					case is > was:
						want.Loosened++
					default:
						want.Tightened++
					}
				}
				require.Equal(t, []int{want.Same, want.Loosened, want.Tightened}, []int{got.Same, got.Loosened, got.Tightened})
				n := 0
				for _, c := range got.Changes {
					n += c.Count
				}
				require.Equal(t, want.Loosened+want.Tightened, n)
			}
		})
	}
}

// byHand decides as the runtime does, by its documentation.
func byHand(t *testing.T, e perm.Engine, r perm.Request) perm.Effect {
	d, err := e.Decide(context.Background(), r)
	require.NoError(t, err)
	var args struct{ Amount json.Number }
	require.NoError(t, json.Unmarshal(r.Call.Args, &args))
	for _, l := range d.Limits() {
		if l.Over(r.Session, r.Tool.Name, map[string]json.Number{"spend": args.Amount}) != "" {
			return perm.Deny
		}
	}
	for _, need := range d.Details().Requires {
		if need.Text == "revert" && !r.Tool.CanRevert && r.Call.EffectClass != "pure" {
			return perm.Deny
		}
	}
	return d.Effect()
}

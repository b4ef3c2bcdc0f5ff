package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// witness remembers what the policy was asked about the start of each call.
type witness struct {
	mu   sync.Mutex
	seen map[string]bool // requests as JSON
}

func (w *witness) engine() perm.Engine {
	base := decides()
	return perm.EngineFunc(func(ctx context.Context, r perm.Request) (perm.Decision, error) {
		if r.Purpose == perm.PurposeRun && !r.Access.Dynamic {
			w.mu.Lock()
			w.seen[asJSON(r)] = true
			w.mu.Unlock()
		}
		d, err := base.Decide(ctx, r)
		if r.Call.Batch.Index == 1 && err == nil {
			details := d.Details()
			details.Labels = []string{fmt.Sprintf("l%d", r.Txn.Calls%5)}
			d = perm.NewDecision(d.Effect(), details)
		}
		return d, err
	})
}

// asJSON is a request as a policy reads it.
func asJSON(r perm.Request) string {
	raw, err := json.Marshal(r.Filled())
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// TestRecordedDecisionsAreThose makes random calls, alone and side by side, in
// several processes after each other, and reads back from the journal alone what
// the policy was asked.
func TestRecordedDecisionsAreThose(t *testing.T) {
	for seed := range uint64(statcheck.Size(6, 60)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r, h, ctx := rand.New(rand.NewPCG(seed, 7)), hosttest.New(seed), context.Background()
			look, err := tool.Create("look", "", func(_ context.Context, in string) (string, error) { return in, nil }, tool.Pure())
			tools := []tool.Tool{payTool(t), mustTool(t, look, err)}
			j, w := journal.Memory(), &witness{seen: map[string]bool{}}
			process := func() *agent.Runtime {
				return newRuntime(t, agent.Host(h), agent.Journal(j), agent.Tools(tools...), agent.Policy(w.engine()), agent.SuspendForApproval())
			}
			rt := process()
			s := newSession(t, rt)
			token := s.Token()
			tx, err := s.Begin(ctx, agent.ForPrompt(agent.Prompt{Client: "c", ID: "p1", Text: "do it"}))
			require.NoError(t, err)
			var pending []string
			for range 40 {
				var batch []agent.BatchCall
				for range 1 + r.IntN(5) {
					how := []string{"ok", "fail", "nothing", "panic", "deny", "ask", "wrong", "bad", "look"}[r.IntN(9)]
					ask := agent.BatchCall{Tool: "pay", Input: tool.Args{"amount": json.Number(fmt.Sprint(r.IntN(50))), "how": how}}
					switch how {
					case "bad":
						ask.Input = tool.Args{"amount": "-1"}
					case "look":
						ask = agent.BatchCall{Tool: "look", Input: "x"}
					}
					batch = append(batch, ask)
				}
				for _, o := range tx.InvokeAll(ctx, batch) {
					if o.Status == tool.StatusPending {
						pending = append(pending, o.Call)
					}
				}
				if r.IntN(3) == 0 { // it can end without a record of a decision
					gone, cancel := context.WithCancel(ctx)
					cancel()
					_, _ = tx.Invoke(gone, "pay", tool.Args{"amount": json.Number("3"), "how": "ok"})
				}
				h.Advance([]time.Duration{0, time.Second, 25 * time.Second, 11 * time.Minute, 5 * time.Hour}[r.IntN(5)])
				if len(pending) > 0 && r.IntN(2) == 0 {
					_ = rt.Answer(ctx, agent.Answer{Call: pending[0], Approved: r.IntN(2) == 0, By: "boss"})
					_, _ = tx.Resume(ctx, pending[0])
					pending = pending[1:]
				}
				if r.IntN(8) > 0 {
					continue
				}
				require.NoError(t, tx.Commit(ctx))
				pending = nil
				if r.IntN(2) == 0 {
					rt = process()
					s, err = rt.ResumeSession(ctx, token)
					require.NoError(t, err)
				}
				tx = begin(t, s)
			}
			requests := 0
			for d, err := range agent.RecordedDecisions(ctx, j, s.ID()) {
				require.NoError(t, err)
				require.Empty(t, d.Unknown)
				require.NotEmpty(t, d.Requests)
				for _, req := range d.Requests {
					require.True(t, w.seen[asJSON(req)], "the policy was not asked %s", asJSON(req))
					requests++
				}
			}
			require.Equal(t, len(w.seen), requests)
		})
	}
}

// losing accepts no record of a kind.
type losing struct {
	journal.Journal
	kind record.Kind
}

func (j losing) Append(ctx context.Context, b journal.Batch) error {
	if slices.ContainsFunc(b.Entries, func(e record.Entry) bool { return e.Header.Kind == j.kind }) {
		return errors.New("no space left")
	}
	return j.Journal.Append(ctx, b)
}

// TestRecordedDecisionsAfterALostRecord: a call whose decision is not on the
// journal still counts in what later decisions saw.
func TestRecordedDecisionsAfterALostRecord(t *testing.T) {
	ctx, j, w := context.Background(), losing{journal.Memory(), record.KindDenied}, &witness{seen: map[string]bool{}}
	rt := newRuntime(t, agent.Host(hosttest.New(1)), agent.Journal(j), agent.Tools(payTool(t)), agent.Policy(w.engine()))
	s := newSession(t, rt)
	for _, how := range []string{"ok", "deny", "ok", "ok"} {
		_, _ = begin(t, s).Invoke(ctx, "pay", tool.Args{"amount": json.Number("3"), "how": how})
	}
	n := 0
	for d, err := range agent.RecordedDecisions(ctx, j, s.ID()) {
		require.NoError(t, err)
		require.Empty(t, d.Unknown)
		require.True(t, w.seen[asJSON(d.Requests[0])], "the policy was not asked %s", asJSON(d.Requests[0]))
		n++
	}
	require.Equal(t, 3, n)
}

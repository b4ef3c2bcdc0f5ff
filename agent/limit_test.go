package agent_test

import (
	"context"
	"encoding/json"
	"math/big"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

const budgets = `package remit
allow contains "all" if true
limit contains {"budget": "payments an hour", "max": 100, "sum": "spend", "window": "1h"} if input.tool.name == "pay"
limit contains {"budget": "payments", "max": 150.3, "sum": "spend"} if input.tool.name == "pay"
`

// TestBudgetsHoldAcrossRacesAndRestarts checks that parallel calls do not
// exceed a budget. A denial names the budget and what is left. A restart keeps
// the sums.
func TestBudgetsHoldAcrossRacesAndRestarts(t *testing.T) {
	ctx, h, state := context.Background(), hosttest.New(1), filepath.Join(t.TempDir(), "state")
	open := func() (*agent.Runtime, func()) {
		j, err := sqlite.Open(ctx, state)
		require.NoError(t, err)
		e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": budgets}})
		rt, err := agent.New(quiet(), agent.Host(h), agent.Tools(payTool(t)), agent.Policy(e), agent.Journal(j))
		require.NoError(t, err)
		return rt, func() {
			require.NoError(t, rt.Close())
			require.NoError(t, j.Close())
		}
	}
	rt, end := open()
	s := newSession(t, rt)
	txns := []*agent.Txn{begin(t, s), begin(t, s)}
	var mu sync.Mutex
	var all sync.WaitGroup
	spent, denied := new(big.Rat), 0
	for i := range 40 {
		all.Go(func() {
			_, err := txns[i%2].Invoke(ctx, "pay", tool.Args{"amount": json.Number("9.9"), "how": "ok"})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				require.ErrorIs(t, err, tool.ErrDenied)
				denied++
				return
			}
			spent.Add(spent, big.NewRat(99, 10))
		})
	}
	all.Wait()
	require.Equal(t, "99", spent.FloatString(0), "neither more than the budget, nor less")
	require.Equal(t, 30, denied)
	pay := func(tx *agent.Txn, amount string) error {
		out, err := tx.Invoke(ctx, "pay", tool.Args{"amount": json.Number(amount), "how": "ok"})
		if err != nil {
			require.Equal(t, "policy", out.Stage)
			require.Equal(t, "deny", out.Decision.Effect)
			require.Equal(t, "limit", out.Decision.Reasons[0].Set)
		}
		return err
	}
	require.ErrorContains(t, pay(txns[0], "1.01"), `the budget "payments an hour" of 100 of spend in 1h has 1 left, less than this call needs (p.rego:3)`)
	require.NoError(t, pay(txns[0], "1"))
	id := txns[0].ID()
	end()

	rt, end = open()
	defer end()
	tx, err := rt.ResumeTxn(ctx, id)
	require.NoError(t, err)
	require.ErrorContains(t, pay(tx, "0.01"), "has 0 left")
	h.Advance(2 * time.Hour)
	require.NoError(t, pay(tx, "50.2"))
	require.ErrorContains(t, pay(tx, "0.2"), `the budget "payments" of 150.3 of spend a session has 0.1 left`)
	require.NoError(t, pay(tx, "0.1"))
}

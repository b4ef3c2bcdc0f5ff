package agent_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/tool"
)

// TestABudgetIsNotSpentTwice lets many calls race for three places. The ones that
// got a place stay in flight until all have been decided.
func TestABudgetIsNotSpentTwice(t *testing.T) {
	const places, n = 3, 40
	ctx := context.Background()
	var entered atomic.Int32
	var decided sync.WaitGroup
	release := make(chan struct{})
	slow, err := tool.Create("slow", "Waits.", func(ctx context.Context, in string) (string, error) {
		entered.Add(1)
		decided.Done()
		<-release
		return in, nil
	}, tool.Pure())
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": `package remit
spent := object.get(input.session.tools, [input.tool.name, "run"], 0) + object.get(input.session.tools, [input.tool.name, "in_flight"], 0)
deny contains "the budget is spent" if spent >= 3
allow contains "the rest" if true`}})
	rt := newRuntime(t, agent.Tools(mustTool(t, slow, err)), agent.Policy(e))
	s := newSession(t, rt)
	txns := []*agent.Txn{begin(t, s), begin(t, s)}
	decided.Add(n)
	var denied atomic.Int32
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if _, err := txns[i%2].Invoke(ctx, "slow", "x"); err != nil {
				denied.Add(1)
				decided.Done()
			}
		})
	}
	decided.Wait()
	close(release)
	all.Wait()
	require.EqualValues(t, places, entered.Load(), "neither more than the budget, nor fewer")
	require.EqualValues(t, n-places, denied.Load())
	_, err = txns[0].Invoke(ctx, "slow", "x")
	require.ErrorIs(t, err, tool.ErrDenied, "what ran stays counted")
}
